"""The page of scripts/results/serving.py."""
import statistics

# Common causes of the misses of the committed table.
LARGER_MISSES = [
    "**A full cache (256 requests at once).** Too many simulated requests have a first token. Their number is throughput times output length",
    "times TPOT. TTFT is the rest of the clients' wait: 256 requests over the throughput, minus their stay. This doubles the error.", "",
    "| setting | requests with a first token | TTFT |",
    "|---|---|---|",
    "| 1.7B draft, draft length 1 | 1 % too many | -4 % |",
    "| 1.7B draft, draft lengths 5 and 6 | 3 % too many | -6 % at 6 |",
    "| EAGLE-3 | 1.5 % too many | -5 to -8 % |",
    "| without speculation | 3 % too many | -10 % |", "",
    "The record's logs count the running requests every ten seconds. With the 1.7B draft the mean of a cell is 107 to 133; the simulation has 125",
    "to 131. One such count varies by 15, so the logs do not show which rule is missing.", "",
    "**128 requests at once.** Eight requests wait, and one more request that fits is 10 % of TTFT. Steps of 700 rows and more are too fast.", "",
    "**Odd numbers of rows.** One term of the GPU's calibration (`odd_rows_penalty`) adds 9 % to products of 129 to 192, 257 to 384 and 513 to",
    "768 rows. The median gap between chunks contradicts it, here with EAGLE-3 and 128 requests:", "",
    "| rows | error of the gap | error without the term |",
    "|---|---|---|",
    "| 384 | 8 % too long | 1 % |",
    "| 512 | right | 10 % |",
    "| 640 | 9 % too long | 1 % |", "",
    "Without the term steps with prompts would get faster, and they are too fast already: the 99th percentile of gaps is 10 to 30 % too low below",
    "128 requests. TTFT at 64 and 128 requests would fall by another 4 %. The term stays until the missing term of prompts is found.",
]

TERMS = {"tpot": "TPOT", "throughput": "throughput", "ttft": "TTFT"}


def percent(value):
    return f"{100 * value:.1f} %"


def spread(rows, figure):
    """Median, 90th percentile and worst of the absolute errors."""
    errors = sorted(abs(row[f"{figure}_error"]) for row in rows)
    if not errors:
        return "-"
    return f"{percent(statistics.median(errors))}, {percent(errors[min(int(0.9 * len(errors)), len(errors) - 1)])}, {percent(errors[-1])}"


def by_ttft(rows):
    return [row for row in rows if row["ttft_measured"] < 1000], [row for row in rows if row["ttft_measured"] >= 1000]


def term(row):
    """The part of the model that a missed cell points at."""
    words = []
    rows = row["concurrency"] * (row["draft_length"] + 1)
    if abs(row["tpot_error"]) > 0.1:
        words.append(f"time of the pass over {rows} rows" if rows > 128 else
                     "fixed time of a step" if row["price"] == "fitted" else "reading weights: the GPU's memory reaches less of its bandwidth than its relative's")
    if abs(row["throughput_error"]) > 0.1:
        words.append("the last requests of a short run" if row["dataset"] == "mt-bench" and abs(row["tpot_error"]) < 0.07 else "as TPOT")
    if abs(row["ttft_error"]) > 0.1:
        if row["ttft_measured"] >= 1000 or row["preemptions"]:
            words.append("the queue: requests that fit the cache at once, and step time")
        elif row["concurrency"] == 1:
            words.append("the front end and a prefill of one prompt")
        else:
            words.append("how many prompts share a step (which requests end together)")
    return "; ".join(words)


def summary(rows, groups):
    lines = ["| predicted cells | number | TPOT: median, 90 %, worst | throughput | mean TTFT below 1 s | mean TTFT above 1 s |", "|---|---|---|---|---|---|"]
    for name, some in groups:
        low, high = by_ttft(some)
        lines.append(f"| {name} | {len(some)} | {spread(some, 'tpot')} | {spread(some, 'throughput')} | {spread(low, 'ttft')} | {spread(high, 'ttft')} |")
    return lines


def drafts_of(rows):
    return [("all", rows)] + [(draft, [row for row in rows if row["draft"] == draft]) for draft in dict.fromkeys(row["draft"] for row in rows)]


def misses(rows):
    missed = [row for row in rows if max(abs(row[f"{name}_error"]) for name in TERMS) > 0.1]
    lines = ["", f"In {len(missed)} of {len(rows)} cells TPOT, throughput or TTFT is off by more than 10 %.", ""]
    if missed:
        lines += ["| cell | TPOT | throughput | TTFT | likely cause |", "|---|---|---|---|---|"]
    for row in missed:
        errors = " | ".join(f"{100 * row[f'{name}_error']:+.1f} %" for name in TERMS)
        lines.append(f"| `{row['id']}` | {errors} | {term(row)} |")
    return lines


def page(table, fitted, others, crossed, runs):
    free = [row for row in table if row["price"] == "roofline" and row["draft_length"]]
    close = [row for row in table if row["price"] == "fitted" and row["role"] == "predicted"]
    lines = ["# Real servers", "",
             "How well does [`specsim serve`](../../docs/guides/serving.md) predict real servers? `scripts/results/serving.py` compares it with servers",
             "that others measured. `table.csv` and `runs.csv` have all values. An error is simulated over measured, minus one.", "",
             "## Published cells of vLLM with speculation", "",
             "[tomasruizt/vllm-scripts](https://github.com/tomasruizt/vllm-scripts) measured two targets at draft lengths 1 to 8, with 1 to 256 requests",
             "at once:", "",
             "- Qwen3-32B on one H100 of 94 GB, with a draft model of 1.7B or an EAGLE-3 head",
             "- Llama-3.3-70B on two GPUs of 80 GB, with a draft model of 1B", "",
             "The inputs are the size of the cache, acceptance by position, mean lengths and the server's options. The spread of acceptance among requests",
             "comes from the percentiles of TPOT with up to 64 requests at once, where no cache is full. Each cell is the mean of three seeds.", "",
             "### The roofline, nothing fitted", "",
             "The files of the GPUs and models are unchanged (`kernels: none`). A request takes 12 ms from the client to the engine.", "",
             "The record does not name the two GPUs of the Llama server. Their memory and their time per step without speculation at one request are those",
             "of an H100 PCIe. The record states that they have no direct link, so they communicate through host memory (assumed: 25 GB/s and 27 us). The",
             "model lacks the separate protocol of small all-reduces, which has less latency and half the bandwidth. The estimate is therefore some",
             "percent too slow for one request at once, and too fast for 16.", ""]
    lines += summary(free, drafts_of(free))
    lines += ["", "### The roofline, a few values fitted to the rows without speculation", "",
              "Values of the GPU and the front end are fitted for each server, to its rows *without* speculation. One number per drafter, the host time of",
              "a draft pass, is fitted to one cell (draft length 3, one request at once).", ""]
    lines += summary(close, drafts_of(close))
    lines += ["", "![errors of the cells](errors.png)", "", "| model | fitted | to what |", "|---|---|---|"]
    for one in fitted:
        lines.append(f"| {one['model']} | " + ", ".join(f"{name} {value:g}" for name, value in one["figures"].items()) + f" | {one['to']} |")
    lines += ["", "The next table tests the drafter's number. It is fitted to the cell of another draft length, and predicts the cells of all other draft",
              "lengths (one seed).", "",
              "| draft | fitted to draft length | cells of the others | TPOT: median, 90 %, worst | throughput |", "|---|---|---|---|---|"]
    for one in others:
        lines.append(f"| {one['draft']} | {one['to']} | {len(one['rows'])} | {spread(one['rows'], 'tpot')} | {spread(one['rows'], 'throughput')} |")
    lines += ["", "Assumptions where the record has no data:", "",
              "- An edit's output is as long as the code that it edits, up to a factor, so long prompts have long outputs. Outputs end at 200 tokens, the",
              "  limit of vLLM's benchmark for this data set.",
              "- Prompts vary by 60 tokens, as the means of the record's growing subsets do.",
              "- MT-bench's prompts are as long as its questions.", "",
              "Findings:", "",
              "- Requests that differ in acceptance do not end together. This avoids preemptions and makes the queue longer.",
              "- Rows cost whole tiles, so 384 rows take as long as 320.",
              "- A front end that handles one request after another changes nothing at up to 5 ms each, because requests wait for the next step anyway. It",
              "  was left out.",
              "- Kernel measurements fit worse than the GPU's calibration, and were not used. The server's products at 256 rows and more are a fifth slower",
              "  than kernels measured alone.", "",
              "## Where speculation stops paying", "",
              "The table shows the smallest number of requests at once at which the server emits fewer tokens per second with speculation than without. It",
              "was measured, simulated with the fitted values, and simulated with nothing fitted.", "",
              "| target | requests | draft | draft length | measured | fitted | nothing fitted | steps of the grid between |", "|---|---|---|---|---|---|---|---|"]
    free_crossings = {row[:4]: row for row in crossed["roofline"]}
    for row in crossed["fitted"]:
        other = free_crossings[row[:4]]
        lines.append("| " + " | ".join(str(cell) for cell in row[:6]) + f" | {other[5]} | {row[6]}, {other[6]} |")
    lines += ["", "## Misses above 10 %", ""] + LARGER_MISSES + ["", "### Values fitted to the rows without speculation"] + misses(close)
    lines += ["", "### Nothing fitted"] + misses(free)
    lines += ["", "## Two vLLM runs, request by request", "",
              "casys-kaist/LLMServingSim (MIT) recorded 300 requests of ShareGPT sessions, ten per second. This is far above the rate that the server",
              "sustains. Times are in ms, the duration in s; each cell of the table is simulated / measured.", "",
              "- The three numbers of a step are fitted to the TPOT of the run, in ten groups of 30 requests in order of arrival, and to its duration. TTFT",
              "  and end-to-end latency are predicted.",
              "- The record counts from when the engine takes a request out of its inbox, between two steps. The simulation counts from the arrival. The",
              "  wait in the inbox has its own column.",
              "- In the second run two engines share experts, 64 of 128 each (`data_parallel_size 2`, `enable_expert_parallel`). A step lasts as long as",
              "  the slower engine's, so a prompt on one engine delays the other's tokens. A layer's rows cross PCIe before and after its experts",
              "  (`expert_parallel: 2`). The three numbers do not depend on the other engine's prompts.", "",
              "No value of the roofline is fitted to these runs, but its terms were chosen after the errors had been seen. Earlier versions were 8.4 and 28",
              "% off in TPOT. Terms measured elsewhere reduced these errors:", "",
              "- FlashAttention 2 reads single rows next to a chunk of a prompt without sharing keys among the heads of a group.",
              "- Attention over unequal contexts takes 1.08 and 1.05 times as long as over equal ones on these GPUs (1.2 on those that the engine was",
              "  fitted to).",
              "- The experts' kernels reach only a part of the RTX PRO 6000's bandwidth, plus 21.7 us per layer outside their products.",
              "- The two engines synchronise every step and exchange rows.", "",
              "The link's 16 GB/s and 20 us are the record's authors' figures. Clients in the engine's own process are assumed to cost nothing. The",
              "engine's file has 28 us per sequence and step for clients, from HTTP servers; the third row of each run includes it. TTFT of the second run",
              "is the wait after 256 requests, so TPOT's error enters it several times.", "",
              "| run | time from | TTFT | wait in the inbox, not counted | TPOT | end to end | duration | preemptions |", "|---|---|---|---|---|---|---|---|"]
    for row in runs:
        cells = [f"{row[f'{figure}_simulated']:.6g} / {row[f'{figure}_measured']:.6g} ({100 * row[f'{figure}_error']:+.1f} %)"
                 for figure in ("ttft", "tpot", "e2el", "duration")]
        cells.insert(1, f"{row['inbox_measured']:.3g}")
        cells.insert(0, row["price"])
        lines.append(f"| {row['run']} | " + " | ".join(cells) + f" | {row['preemptions']} |")
    return "\n".join(lines) + "\n"
