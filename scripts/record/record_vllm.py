#!/usr/bin/python3
"""Records the tokens that vLLM accepts, round by round: JSON lines that `specsim fit` and `specsim plan --trace` read.

    scripts/record/record_vllm.py PROMPTS OUT --model MODEL --speculative '{"method": "eagle", "model": "...", "num_speculative_tokens": 3}'

PROMPTS: JSON lines with "prompt" and optionally "kind"; or a text with one prompt per line. Each prompt is sent once. OUT gets one line per
prompt: {"request": 0, "kind": ..., "draft_length": D, "rounds": [accepted, ...]}.

The engine is stepped in this process (VLLM_ENABLE_V1_MULTIPROCESSING as set). Every step of a request emits its accepted tokens and one
token of the target. The first step, which computes the prompt, is no round. The last step of each request is left out, since the
request's end may cut it.

Not run against vLLM itself: tested with a stand-in for the interfaces of vLLM 0.9 and later that it uses (EngineArgs with
speculative_config, LLMEngine.from_engine_args, add_request, step, has_unfinished_requests; SamplingParams with output_kind DELTA).
Exit status: 0 success, 2 bad arguments or input, 77 vLLM is not installed.
"""
import json

from recording import parser_of, read_prompts, stop, write


def run(options, vllm, kinds):
    """[request]: the tokens that each of its steps emitted."""
    engine = vllm.LLMEngine.from_engine_args(vllm.EngineArgs(
        model=options.model, speculative_config=options.speculative, tensor_parallel_size=options.tensor_parallel,
        max_num_seqs=options.batch, **options.engine))
    params = vllm.SamplingParams(temperature=options.temperature, max_tokens=options.tokens, seed=options.seed,
                                 ignore_eos=options.ignore_eos, output_kind=vllm.sampling_params.RequestOutputKind.DELTA)
    steps = [[] for _ in kinds]
    for i, (prompt, _) in enumerate(kinds):
        engine.add_request(str(i), prompt, params)
    while engine.has_unfinished_requests():
        for output in engine.step():
            emitted = len(output.outputs[0].token_ids)
            if emitted > 0:  # a step that computes a part of a prompt emits nothing
                steps[int(output.request_id)].append(emitted)
    return steps


def records(steps, kinds, draft_length):
    for i, (emitted, (_, kind)) in enumerate(zip(steps, kinds)):
        rounds = [count - 1 for count in emitted[1:-1]]
        if any(accepted > draft_length for accepted in rounds):
            stop(f"request {i} got {max(rounds) + 1} tokens in a step that drafted {draft_length}: steps of this engine are joined")
        if rounds:
            yield {"request": i, **({"kind": kind} if kind else {}), "draft_length": draft_length, "rounds": rounds}


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--speculative", required=True, type=json.loads, help="vLLM's speculative_config, as JSON")
    parser.add_argument("--engine", type=json.loads, default={}, help="more of vLLM's EngineArgs, as JSON")
    parser.add_argument("--batch", type=int, default=64, help="requests at once, at most")
    parser.add_argument("--tensor-parallel", type=int, default=1)
    parser.add_argument("--ignore-eos", action="store_true", help="outputs of equal length")
    options = parser.parse_args()
    draft_length = options.speculative.get("num_speculative_tokens") if isinstance(options.speculative, dict) else None
    if not isinstance(draft_length, int) or draft_length < 1:
        stop("--speculative has no num_speculative_tokens, allowed: an object with it")
    prompts = read_prompts(options.prompts)
    try:
        import vllm
        import vllm.sampling_params
    except ImportError as missing:
        stop(f"vLLM is not installed ({missing})", 77)
    write(options.out, records(run(options, vllm, prompts), prompts, draft_length))


if __name__ == "__main__":
    main()
