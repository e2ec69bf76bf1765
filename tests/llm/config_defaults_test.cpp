// Defaults of transformers for keys that config.json omits.
#include "sim/lab/llm/model_config.h"
#include "tests/support/temporary_file.h"

#include <catch2/catch.hpp>

namespace specsim::config_defaults_test {

TEST_CASE("missing keys of a config.json have transformers' defaults", "[llm]") {
  // LlamaConfig of transformers 4: rope_theta 10000.0, rms_norm_eps 1e-6, num_key_value_heads as attention heads, head_dim as
  // hidden_size / num_attention_heads, tie_word_embeddings false, no biases, bos_token_id 1. Mutants: any other default.
  const tests::TemporaryFile file(
      R"({"model_type": "llama", "hidden_size": 32, "intermediate_size": 70, "num_hidden_layers": 3,
"num_attention_heads": 4, "vocab_size": 50, "max_position_embeddings": 128})");
  const llm::ModelConfig model = llm::read_model_config(file.path());
  CHECK(model.rope_theta == 10000.0);
  CHECK(model.norm_epsilon == 1e-6);
  CHECK(model.kv_heads == 4);
  CHECK(model.head_dim == 8);
  CHECK_FALSE(model.tied_embeddings);
  CHECK_FALSE(model.qkv_bias);
  CHECK_FALSE(model.qk_norm);
  CHECK(model.begin_token == 1);
  CHECK(model.rope_scaling.method == llm::RopeScaling::Method::none);
}

}  // namespace specsim::config_defaults_test
