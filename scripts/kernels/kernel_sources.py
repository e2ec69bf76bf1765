"""The tables that scripts/kernels/fit_kernels.py reads measured kernels from, and their names for things."""

# Tables that this project measured itself, and the kernels among them that an engine runs over several tokens.
OWN_TABLES = "results/gpu/*/kernels/attention*.csv"
OWN_PRODUCTS = "results/gpu/*/kernels/products_w4a16.csv"
LATENT_TABLES = "configs/kernels/tables/attention_latent*.csv.xz"  # made by scripts/kernels/latent_table.mjs
MORE_EXPERTS = "moe_more"  # further layers of the collectors that filled moe_aic
WHOSE = {"machete": "vllm", "marlin": "sglang"}  # vLLM uses Machete on Hopper for GPTQ, AWQ and compressed-tensors; SGLang has Marlin
WALK = "FlashAttention 2 varlen paged"
PACKED = "FlashAttention 3 decode"
OWN_KERNELS = (WALK, PACKED)

TABLE_OF = {"product": "gemm_aic", "attention_decode": "attention_decode_aic", "attention_prefill": "attention_prefill_aic",
            "attention_verify": "attention_verify", "attention_latent": "attention_latent_aic", "experts": "moe_aic", "allreduce": "allreduce_aic"}
SHIPPED = ("ai-dynamo/aiconfigurator 095f58a51c4c (Apache-2.0), Vidur 7d47513363ec and LLMServingSim 5daddb21a545 (MIT), "
           "vLLM flash-attention 193, flashinfer 1832, ROCm/aiter e4048607a535 (MIT), results/gpu")


# Types of AITER's tables. Those in bf16 are of two shapes: too few for an estimate.
AITER_TYPES = {"float8_blockscale": "fp8_block", "fp8/int8": "fp8", "float8_e4m3fnuz": "fp8"}
AITER_EXPERTS = {"QuantType.No": "bfloat16", "QuantType.per_1x128": "fp8_block"}
AITER_SKEW = 1.01  # it draws random experts for its tokens
