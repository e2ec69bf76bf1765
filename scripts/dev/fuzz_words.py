"""Building blocks of scripts/fuzz's inputs, and the limits that programs must keep."""
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STATUSES = range(7)  # sim/foundation/base/exit_code.h
BAD_INPUT, INTERNAL_ERROR = 2, 5
SECONDS = 20  # most processor time of one input
TIMED_OUT = 70  # libFuzzer's status
MEMORY = 4 << 30
SANITIZERS = {"ASAN_OPTIONS": f"exitcode=99:detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=65536:hard_rss_limit_mb={MEMORY >> 20}",
              "UBSAN_OPTIONS": "exitcode=99:print_stacktrace=1"}
NUMBERS = ["0", "-1", "1", "2", "-0", "0.5", "1e9", "1e-9", "1e308", "1e18", "1e15", "9007199254740993", "5e-324", "1e-310", "-1e400", ".nan", ".inf", "nan", "18446744073709551615", "18446744073709551616",
           "9223372036854775807", "-9223372036854775808", "2147483648", "4294967296", "0x10", "010", "1_000", "1e", "٣", "1.0000000000000002", "3.4e38", "100000000"]
TEXTS = ["", "~", "null", "true", "{}", "[]", "[[]]", "{a: b}", "'", '"', "- x", "&a [*a]", "*b", "!!binary aGk=", "<<", "a: b: c", "\u202eabc", "\x1b[31m", "\x00", "\ud83d".encode("utf-16", "surrogatepass").decode("utf-16", "replace"),
         "x" * 5000, "/dev/null", "/dev/zero", "/", ".", "../..", "{" * 300, "[" * 3000, "%s%n", "tests/data/trace_small.jsonl"]
KERNELS = """gpu,engine,version,dtype,kernel,n,k,m,us,set_over_l2
a100-80gb-sxm,sglang,0.5.10,bfloat16,sglang,4096,4096,1,20.1,6
h100-sxm,vllm,0.19,bfloat16,vllm,4096,14336,128,61.5,9
h100-sxm,vllm,0.19,fp8,vllm,28672,4096,16,40,4
"""
PRESETS = ("engines", "hardware", "kernels", "models")  # folders of configs that hold no experiments
OPTIONS = ["--set", "--out", "--threads", "--seed", "--shard", "--resume", "--force", "--dry-run", "--quiet", "--trace", "--help", "--alpha", "--batch", "--hardware", "--target", "--draft",
           "--longest", "--rounds", "--context", "--draft-length", "--cost-ratio", "--acceptance-rate", "--csv", "--model", "--role", "--requests", "--print-config", "--objective", "--mean-acceptance-length"]
COMMANDS = ["run", "check", "audit", "plan", "compare", "theory", "pass", "fit", "list", "describe", "merge", "reference", "help", "plot", "validate", "calibrate", "serve", "kernels", "import"]
