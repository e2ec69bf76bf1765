#!/usr/bin/python3
"""Records the tokens that assisted generation of transformers accepts, round by round: JSON lines for `specsim fit` and `specsim plan --trace`.

    scripts/record/record_transformers.py PROMPTS OUT --model MODEL --assistant DRAFT [--draft-length 5] [--temperature 1]

PROMPTS: JSON lines with "prompt" and optionally "kind"; or a text with one prompt per line. OUT gets one line per prompt:
{"request": 0, "draft_length": D, "rounds": [accepted, ...], "drafted": [...]}; "drafted" is present if rounds drafted fewer than D.

Every round ends with a call of the candidate generator's update_candidate_strategy(input_ids, scores, num_matches). The script records
there: num_matches of len(scores[0]) - 1 drafted tokens were accepted. The schedule of draft lengths and the confidence threshold are
switched off. --assistant none drafts with prompt lookup. The last round of each request is left out, since the request's end may cut it.

Not run against transformers itself: tested with a stand-in for the interfaces of transformers 4.46 and later that it uses
(AutoModelForCausalLM, AutoTokenizer, generate with assistant_model or prompt_lookup_num_tokens, CandidateGenerator).
Exit status: 0 success, 2 bad arguments or input, 77 transformers is not installed.
"""
import json

from recording import parser_of, read_prompts, stop, write


def watch(generators, on_round):
    """Every candidate generator reports its rounds, and otherwise behaves as before."""
    for kind in generators:
        if "update_candidate_strategy" not in vars(kind):
            continue
        before = kind.update_candidate_strategy

        def told(self, input_ids, scores, num_matches, _before=before):
            on_round(int(num_matches), len(scores[0]) - 1)
            return _before(self, input_ids, scores, num_matches)

        kind.update_candidate_strategy = told


def classes_below(base):
    for kind in base.__subclasses__():
        yield kind
        yield from classes_below(kind)


def run(options, transformers, generators, prompts):
    """[request]: (accepted, drafted) of each round."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(options.model)
    model = transformers.AutoModelForCausalLM.from_pretrained(options.model, **options.load)
    how = {"max_new_tokens": options.tokens, "do_sample": options.temperature > 0}
    if options.temperature > 0:
        how["temperature"] = options.temperature
    if options.assistant == "none":
        how["prompt_lookup_num_tokens"] = options.draft_length
    else:
        assistant = transformers.AutoModelForCausalLM.from_pretrained(options.assistant, **options.load)
        assistant.generation_config.num_assistant_tokens = options.draft_length
        assistant.generation_config.num_assistant_tokens_schedule = "constant"
        assistant.generation_config.assistant_confidence_threshold = 0.0
        how["assistant_model"] = assistant
    rounds = []
    watch(set(classes_below(generators.CandidateGenerator)), lambda accepted, drafted: rounds[-1].append((accepted, drafted)))
    transformers.set_seed(options.seed)
    for prompt, _ in prompts:
        rounds.append([])
        model.generate(**tokenizer(prompt, return_tensors="pt").to(model.device), **how)
    return rounds


def records(rounds, prompts, draft_length):
    for i, (own, (_, kind)) in enumerate(zip(rounds, prompts)):
        whole = [(accepted, drafted) for accepted, drafted in own[:-1] if drafted > 0]
        if not whole:
            continue
        record = {"request": i, **({"kind": kind} if kind else {}), "draft_length": draft_length, "rounds": [accepted for accepted, _ in whole]}
        if any(drafted != draft_length for _, drafted in whole):
            record["drafted"] = [drafted for _, drafted in whole]
        yield record


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--assistant", required=True, help="the draft model, or none for prompt lookup")
    parser.add_argument("--draft-length", type=int, default=5)
    parser.add_argument("--load", type=json.loads, default={}, help="more of from_pretrained's arguments, as JSON: {\"device_map\": \"auto\"}")
    options = parser.parse_args()
    if options.draft_length < 1:
        stop(f"--draft-length is {options.draft_length}, allowed: at least 1")
    prompts = read_prompts(options.prompts)
    try:
        import transformers
        from transformers.generation import candidate_generator
    except ImportError as missing:
        stop(f"transformers is not installed ({missing})", 77)
    write(options.out, records(run(options, transformers, candidate_generator, prompts), prompts, options.draft_length))


if __name__ == "__main__":
    main()
