#include "sim/answers/tune/runs.h"
#include "sim/experiments/run/counts_file.h"
#include "sim/experiments/run/journal.h"
#include "sim/experiments/run/runner.h"
#include "sim/experiments/spec/spec.h"
#include "sim/foundation/base/checksum.h"
#include "sim/foundation/base/error.h"
#include "sim/foundation/config/value.h"
#include "sim/foundation/report/manifest.h"
#include "sim/foundation/rng/address.h"
#include "sim/hardware/latency/llama_bench.h"
#include "sim/rounds/decode/counts.h"
#include "sim/rounds/families/acceptance_record.h"
#include "sim/serving/arrivals/arrivals.h"
#include "sim/serving/logs/findings.h"
#include "sim/serving/logs/line_scan.h"
#include "tests/fuzz/fuzzers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace specsim::fuzz {

namespace {

decode::Counts some_counts() { return {3, 2, 4, 5}; }

void feed_trace(std::string_view bytes) {
  Diagnostics diagnostics;
  using families::RecordForm;
  const auto records = families::read_acceptance_records(
      file_of(bytes), {"case", 0, 0}, "",
      {RecordForm::accepted, RecordForm::rounds, RecordForm::overlap, RecordForm::distributions}, diagnostics);
  diagnostics.throw_if_any();
  require(!records.empty(), "a trace without mistakes has requests");
  for (const families::AcceptanceRecord& record : records)
    if (record.form == RecordForm::accepted)
      for (int length = 1; length <= record.draft_length && length <= 8; ++length)
        for (const int accepted : families::walked_rounds(record, length))
          require(accepted >= 0 && accepted <= length, "no round accepts more than it drafts");
}

// A config that names the file.
void read_with(const std::string& section) {
  Diagnostics diagnostics;
  config::Value config = config::parse_text(
      "experiment: t\npair: {vocab: 20, target: {family: zipf, exponent: 1.1}, draft: {from: target, transform: temperature, "
      "value: 0.7}}\n"
      "decode: {drafter: {kind: chain, draft_length: 3}}\nrounds: 300\n" +
          section,
      "case.yaml", diagnostics);
  static_cast<void>(spec::read_experiment(std::move(config), "case.yaml", {}, diagnostics));
  diagnostics.throw_if_any();
}

void feed_cost_table(std::string_view bytes) { read_with(fmt::format("cost: {{model: table, file: {}}}\n", file_of(bytes))); }
void feed_context_trace(std::string_view bytes) {
  read_with(fmt::format("context: {{process: trace, file: {}}}\n", file_of(bytes)));
}

void feed_llama_bench(std::string_view bytes) {
  Diagnostics diagnostics;
  static_cast<void>(cost::read_llama_bench("case", std::string(bytes), diagnostics));
  diagnostics.throw_if_any();
}

void feed_client_files(std::string_view bytes) {
  Diagnostics diagnostics;
  for (const tune::Run& run : tune::read_runs(file_of(bytes), diagnostics)) {
    require(run.concurrency || run.rate, "a run states its load");
    require(static_cast<int>(run.position_rates.size()) <= run.draft_length,
            "no run accepts at positions that it does not draft");
  }
  diagnostics.throw_if_any();
}

// Lines with the checksums of this journal; lines that begin with `!` without one.
void feed_journal(std::string_view bytes) {
  const run::Origin origin{"identity 1/1", "0.1.0 (commit)", {{"trace.jsonl", "0123456789abcdef"}}};
  const std::string title = "specsim journal " + origin.run;
  const std::uint64_t seed = rng::hash_text(title);
  std::string text;
  const auto add = [&](std::string_view body) { text += fmt::format("{} #{:016x}\n", body, rng::hash_text(body, seed)); };
  bool first = true;
  while (!bytes.empty()) {
    const std::string_view line = bytes.substr(0, bytes.find('\n'));
    bytes.remove_prefix(std::min(bytes.size(), line.size() + 1));
    if (first && !line.starts_with('?')) {
      add(title);
      add("program " + origin.program);
      add("input 0123456789abcdef trace.jsonl");
    }
    first = false;
    if (line.starts_with('!'))
      text += std::string(line.substr(1)) + "\n";
    else
      add(line);
  }
  decode::Counts sum = some_counts();
  const auto replay = [&](const run::Record& record) {
    decode::Counts counts = some_counts();
    if (!run::unpack_counts(record.counts, counts)) return;
    decode::Counts again = some_counts();
    require(run::unpack_counts(run::pack_counts(counts), again) && again == counts, "counts are what they were packed from");
    if (run::inconsistency(counts).empty()) sum.add(counts);
  };
  run::Journal journal(file_of(text), origin, true, replay);
  journal.append(0, 1, run::pack_counts(some_counts()));
}

void feed_counts(std::string_view bytes) {
  decode::Counts a = some_counts();
  decode::Counts b = some_counts();
  const std::map<std::pair<std::string, std::size_t>, decode::Counts*> cells = {{{"a", 0}, &a}, {{"a", 1}, &b}};
  run::add_counts_csv("counts.csv", std::string(bytes), cells);
  static_cast<void>(run::inconsistency(a));
  static_cast<void>(run::inconsistency(b));
  decode::Counts c = some_counts();
  decode::Counts d = some_counts();
  run::add_counts_csv("again.csv", run::counts_csv({{"a", 0, &a}, {"a", 1, &b}}), {{{"a", 0}, &c}, {{"a", 1}, &d}});
  require(a == c && b == d, "counts are what they were written from");
}

void feed_manifest(std::string_view bytes) {
  std::string text(bytes);
  if (!text.starts_with('#')) text += fmt::format("\nchecksum: \"{}\"\n", checksum(text + "\n"));
  const report::Manifest manifest = report::read_manifest(file_of(text));
  const report::Manifest again = report::read_manifest(file_of(report::manifest_text(manifest)));
  require(again.configs == manifest.configs && again.results == manifest.results && again.shard == manifest.shard &&
              again.identity == manifest.identity && again.inputs == manifest.inputs,
          "a manifest is what it was written from");
}

// The counts in a log are possible, and reading them takes no more memory than allowed.
void feed_server_log(std::string_view bytes) {
  logs::LogReader reader({.growth_alone = !bytes.empty() && bytes.front() == '-'});
  reader.add_text(bytes);
  const logs::LogContents contents = reader.finish();
  require(contents.lines <= static_cast<std::size_t>(std::count(bytes.begin(), bytes.end(), '\n')) + 1, "lines are lines");
  for (const logs::ReportedAcceptance& one : contents.found) {
    require(one.rounds >= 0.0 && one.drafted >= 0.0 && one.accepted >= 0.0, "counts are no less than 0");
    require(one.accepted_at.size() <= logs::kMostPositions + 1, "positions are those of a draft");
    for (const double count : one.accepted_at) require(count >= -1e-6 * one.rounds, "counts by position are no less than 0");
    require(one.first_line >= 1 && one.first_line <= one.last_line && one.last_line <= contents.lines,
            "lines have their numbers");
    const logs::Findings findings = logs::find(one);
    for (const logs::Figure* figure : {&findings.mean_length, &findings.alpha, &findings.acceptance_rate})
      require(!std::isinf(figure->value) && !std::isinf(figure->low) && !std::isinf(figure->high), "figures are finite");
    require(logs::plan_options(findings).find("nan") == std::string::npos, "options are numbers");
  }
}

// Counters of a server that restarts: each pair of bytes is a scrape's drafts and accepted tokens. The total over all its lives
// is at least the largest difference of two scrapes, and at most the sum of all scrapes.
void feed_counters(std::string_view bytes) {
  std::string text;
  double all = 0.0;
  double most = 0.0;
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
    const int drafts = 1 + static_cast<unsigned char>(bytes[i]);
    const int accepted = std::min(drafts, static_cast<int>(static_cast<unsigned char>(bytes[i + 1])));
    text += fmt::format(
        "vllm:spec_decode_num_drafts_total{{engine=\"0\"}} {0}\nvllm:spec_decode_num_draft_tokens_total{{engine=\"0\"}} {0}\n"
        "vllm:spec_decode_num_accepted_tokens_total{{engine=\"0\"}} {1}\n",
        drafts, accepted);
    all += drafts;
    most = std::max(most, static_cast<double>(drafts));
  }
  if (text.empty()) return;
  logs::LogReader reader;
  reader.add_text(text);
  const logs::LogContents contents = reader.finish();
  require(contents.found.size() <= 1, "one server");
  if (contents.found.empty()) return;
  const logs::ReportedAcceptance& one = contents.found.front();
  require(one.rounds >= most && one.rounds <= all, "counters that restart add up");
  require(one.accepted <= one.drafted, "no more is accepted than drafted");
}

// A trace of requests in any form: sorted, with lengths and hashes that its prompts can have.
void feed_request_trace(std::string_view bytes) {
  Diagnostics diagnostics;
  const arrivals::ArrivalsEntry* const entry = arrivals::arrival_processes().find("trace", {}, diagnostics);
  const config::Value parameters = config::parse_text(fmt::format("{{file: {}}}", file_of(bytes)), "case.yaml", diagnostics);
  const config::Arguments arguments = config::read_arguments(parameters, entry->info.parameters, {}, "trace", diagnostics);
  diagnostics.throw_if_any();
  const auto process = entry->make(arguments, diagnostics);
  diagnostics.throw_if_any();
  arrivals::RequestTrace trace;
  process->fill(trace, rng::make_key(1, 1));
  require(!trace.requests.empty(), "a trace without mistakes has requests");
  for (std::size_t i = 0; i < trace.requests.size(); ++i) {
    const arrivals::Request& one = trace.requests[i];
    require(i == 0 || trace.requests[i - 1].due <= one.due, "requests are in order");
    require(one.prompt >= 1 && one.output >= 1, "requests have tokens");
    require(one.follows <= trace.requests.size() && std::size_t{one.first_hash} + one.hashes <= trace.hashes.size(),
            "what a request names is there");
    require(std::uint64_t{one.hashes} * trace.hash_tokens < std::uint64_t{std::max(one.prompt, one.hashed)} + trace.hash_tokens,
            "hashes are of the prompt");
  }
}

}  // namespace

const std::vector<Fuzzer>& record_fuzzers() {
  static const std::vector<Fuzzer> list = {{"trace", feed_trace},
                                           {"cost_table", feed_cost_table},
                                           {"context_trace", feed_context_trace},
                                           {"llama_bench", feed_llama_bench},
                                           {"client_files", feed_client_files},
                                           {"journal", feed_journal},
                                           {"counts", feed_counts},
                                           {"manifest", feed_manifest},
                                           {"server_log", feed_server_log},
                                           {"counters", feed_counters},
                                           {"request_trace", feed_request_trace}};
  return list;
}

}  // namespace specsim::fuzz
