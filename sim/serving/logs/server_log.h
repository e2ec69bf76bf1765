// What servers say of speculative decoding in their logs and metrics, as counts. A reader takes the text line by line, with
// whatever else stands between and around; nothing is printed and nothing is thrown.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace specsim::logs {

enum class Kind {
  vllm_log,       // "SpecDecoding metrics:" of vLLM's V1 engine, counts of the interval since the line before
  vllm_v0_log,    // "Speculative metrics:" of vLLM's V0 engine, totals since its start
  vllm_counters,  // vllm:spec_decode_* of /metrics, totals
  vllm_v0_counters,
  vllm_bench,            // of vllm bench serve, printed or saved, a run
  vllm_offline,          // the summary of its example spec_decode.py, a run
  vllm_answers,          // its answers with --per-request-spec-decode-metrics
  lmdeploy_counters,     // lmdeploy:spec_decode_*, vLLM's counters by another name
  sglang_log,            // "Decode batch ... accept len:", an average of some steps
  sglang_gauges,         // sglang:spec_accept_length of /metrics, the same average, the last one made
  sglang_bench,          // "Accept length:" of sglang.bench_serving, a run
  sglang_answers,        // meta_info of its answers and of "Finish:" lines
  sglang_server_info,    // /get_server_info, the mean since its start
  llama_requests,        // "draft acceptance", a request a line
  llama_totals,          // "statistics draft:", totals of a server
  llama_example,         // n_drafted, n_accept of llama-speculative
  llama_answers,         // "timings" of the server's answers, a request each
  llama_spec_bench,      // the table of ik_llama.cpp's llama-spec-bench, a run a line
  trtllm_steps,          // specDecodingStats of TensorRT-LLM's iteration statistics
  trtllm_counters,       // trtllm_spec_decode_* of /prometheus/metrics, totals
  trtllm_bench,          // "DECODING STATISTICS" of what trtllm-bench prints, averages over the requests of a run
  trtllm_bench_serving,  // "Avg Decoded Tokens per Iter" of its benchmark_serving, likewise
  tabby_answers,         // tabbyAPI's "Draft:" and usage
  aiperf_report,         // AIPerf's table and its JSON, a run
  aiperf_records,        // its profile_export.jsonl, a request a line
  answer_files           // answers of Spec-Bench and EAGLE
};
// The servers whose logs are read, and which of them writes a kind.
const std::vector<std::string>& server_names();
std::string server_name(Kind kind);
// "SpecDecoding metrics lines of vLLM".
std::string describe(Kind kind);

// One line's share, or a counter's growth: rounds that had a draft, the draft tokens that they accepted, and how many draft
// tokens were judged until a rejection or the end (0 where positions are not told).
struct Sample {
  double rounds = 0.0;
  double accepted = 0.0;
  double judged = 0.0;
};

// All that lines of one kind and one draft length say together. Sums, so lines weigh as many rounds as they stand for.
struct ReportedAcceptance {
  Kind kind = Kind::vllm_log;
  std::string name;           // what tells it from others of its kind: llama.cpp's drafter, a model; "" where nothing does
  int draft_length = 0;       // 0: the text does not say it
  bool drafts_whole = false;  // every round drafted draft_length tokens
  std::size_t lines = 0;
  std::size_t first_line = 0;  // counted from 1
  std::size_t last_line = 0;
  bool some_without_drafted = false;    // not all lines say how much was drafted, or accepted at each position: the sums then say
  bool some_without_positions = false;  // nothing
  double answers = 0.0;                 // answers that the lines are of, each with a last draft that may be short; 0: not told
  std::size_t restarts = 0;             // how often a counter fell, since its server started anew
  double rounds = 0.0;                  // rounds with a draft; 0: the text does not tell
  bool rounds_counted = true;           // false: an estimate, good as a weight alone
  double drafted = 0.0;                 // draft tokens; 0: not told
  double accepted = 0.0;                // draft tokens up to the first rejection; 0 too where nothing is told but a length
  std::vector<double> accepted_at;      // rounds that accepted the draft token of this position; empty: not told
  double alone_accepted = 0.0;          // draft tokens accepted whatever became of those before them, of `drafted`: V0 of vLLM
  std::vector<Sample> samples;
  // Printed figures that do not follow from the counts beside them, within their rounding.
  std::size_t contradictions = 0;      // lines with such figures
  std::size_t last_contradiction = 0;  // the last of these lines
  std::string first_contradiction;     // "line 7: mean acceptance length 2.70 beside 169 accepted tokens of 99 rounds"
};

struct LogContents {
  std::vector<ReportedAcceptance> found;
  std::size_t lines = 0;
  std::size_t idle = 0;      // lines that count no draft
  std::size_t unread = 0;    // lines that begin like one of the above and cannot be read
  std::string first_unread;  // "line 12: no number behind \"Accepted:\""
};

// What the reader takes for granted where the text does not say it.
struct ReaderOptions {
  bool growth_alone = false;  // counters count what they grew by since the first time they are seen, not what they stood at
  int sglang_interval = 40;   // decode steps that an SGLang line averages (--decode-log-interval)
};

// Counters of one server: what they counted over all its lives. They all start anew when the server does, so the values of one
// moment (a scrape, or a line with several of them) are settled together: where one of them fell, all of them began at 0, those
// too that stand higher by now than before.
class RisingCounts {
 public:
  // A value of the moment that is being read. What it grew by is added to `total`, which must stay where it is, by settle().
  // `derived`: worked out from rounded figures, so that a fall means nothing.
  void see(const std::string& name, double value, double& total, bool derived = false);
  // When the counter began, in seconds since 1970: a later time than the last one is a restart, even where nothing fell.
  void began(const std::string& name, double time);
  // Whether the moment that is being read has a value (or a beginning) of this counter already: another moment has come.
  [[nodiscard]] bool has(const std::string& name) const { return now_.contains(name); }
  [[nodiscard]] bool has_beginning(const std::string& name) const { return beginnings_now_.contains(name); }
  // Ends the moment. A counter's first value counts whole unless `growth_alone`.
  void settle(bool growth_alone);
  [[nodiscard]] std::size_t restarts() const { return restarts_; }
  [[nodiscard]] bool knows(const std::string& name) const {
    return last_.contains(name) || now_.contains(name) || beginnings_.contains(name) || beginnings_now_.contains(name);
  }

 private:
  struct Value {
    double value = 0.0;
    double* total = nullptr;
    bool derived = false;
  };
  std::map<std::string, Value> now_;
  std::map<std::string, double> beginnings_now_;
  std::map<std::string, double> last_;  // 0 after a restart
  std::map<std::string, double> beginnings_;
  std::size_t restarts_ = 0;
};

struct Reader;
class Report;
class JsonText;

// Who reads JSON takes what it finds.
class JsonUser {
 public:
  virtual void on_report(const Reader& reader, Report& report) = 0;
  // Lines of a log that are a string of it, as containers' JSON logs have them.
  virtual void on_log_text(const std::string& text) = 0;
  // A counter of Prometheus' answers to queries, as /metrics has it, and when it was read.
  virtual void on_metric(double time, std::string line) = 0;
  virtual void on_unread(const std::string& why) = 0;

 protected:
  ~JsonUser() = default;
};

class LogReader : private JsonUser {
 public:
  explicit LogReader(ReaderOptions options = {});
  ~LogReader();
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;
  void add_line(std::string_view line);
  // Text of many lines, for whoever has it at hand.
  void add_text(std::string_view text);
  LogContents finish();

  // What the table of readers calls where a report is more than counts to add.
  void take_vllm_v0(const Reader& reader, Report& report);
  void take_sglang(const Reader& reader, Report& report);
  void take_llama_request(const Reader& reader, Report& report);
  void take_llama_totals(const Reader& reader, Report& report);

 private:
  static constexpr double kNotSaid = std::numeric_limits<double>::quiet_NaN();
  // A line that lacks figures: a terminal may have broken it, and the next ones be its rest.
  struct Held {
    bool open = false;
    std::size_t line = 0;
    std::string why;  // it cannot be read alone; "": it says nothing
    std::string text;
    std::vector<std::pair<std::size_t, std::string>> more;  // with their numbers
  };
  struct Piece {  // what the last piece of an answer counted, and where that is among the samples
    Sample sample;
    double drafted = 0.0;
    std::vector<double> accepted_at;
    std::size_t place = 0;
  };
  struct LlamaSlot {
    double emitted = 0.0;     // tokens of its request, from the line "eval time"
    std::size_t request = 0;  // its line's number among llama_requests_, from 1; 0: none yet
  };
  struct SglangLine {
    double requests;
    double length;
    double rate;  // NaN: not printed
  };
  // What one scrape says of one set of labels; NaN: not yet.
  struct SglangGauges {
    double requests = kNotSaid;
    double length = kNotSaid;
    double rate = kNotSaid;
    double steps = kNotSaid;
    double draft_tokens = kNotSaid;
  };
  // What the counters of one server grew by, over all other labels.
  struct Counters {
    ReportedAcceptance lines;
    bool broken = false;  // one of its lines could not be read, so that the others do not fit together
    std::map<std::string, double, std::less<>> grown;  // by metric
    std::map<std::size_t, double> accepted_at;         // by position
    std::string server;                                // its labels, but for those of engines and positions
  };
  // What a drafter of llama.cpp counted since its totals were settled.
  struct LlamaTotals {
    double rounds = 0.0;
    double accepted = 0.0;
    double drafted = 0.0;
    std::map<std::size_t, double> accepted_at;  // by position
  };
  // trtllm-bench's figures by statistic: "AVERAGE", "P50", ...
  struct TrtllmReport {
    double requests = kNotSaid;
    std::size_t line = 0;  // its last
    std::map<std::string, double, std::less<>> drafted;
    std::map<std::string, double, std::less<>> accepted;
    std::map<std::string, double, std::less<>> rate;
    std::map<std::string, double, std::less<>> length;
  };

  ReportedAcceptance& of(Kind kind, int draft_length, const std::string& name = "");
  void seen(ReportedAcceptance& acceptance);
  void contradict(ReportedAcceptance& acceptance, const std::string& what);
  void cannot_read(const std::string& why);
  void add_sample(ReportedAcceptance& acceptance, const Sample& sample);

  void read_line(std::string_view line);
  void read_text(std::string_view line);
  bool go_on(std::string_view line);
  void drop_held();
  void read_blocks(std::string_view line);
  void end_block(std::size_t reader);
  void take(const Reader& reader, Report& report);
  void add_report(const Reader& reader, Report& report);
  void on_report(const Reader& reader, Report& report) override { take(reader, report); }
  void on_log_text(const std::string& text) override;
  void on_metric(double time, std::string line) override;
  void on_unread(const std::string& why) override { cannot_read(why); }
  void read_series();
  bool read_sglang_gauge(std::string_view line);
  void end_scrape(const std::string& labels);
  void read_llama_slot(std::string_view line);
  void settle_llama_totals();
  void read_spec_bench(std::string_view line);
  bool read_trtllm_bench(std::string_view line);
  void end_trtllm_report();
  bool read_counter(std::string_view line);
  void finish_sglang();
  void finish_sglang_gauges();
  void finish_sglang_lines(Kind kind, const std::vector<SglangLine>& lines, double rounding, int told);
  void finish_counters();
  void finish_vllm_counters(const Counters& counters);
  void finish_vllm_v0_counters(const Counters& counters);
  void finish_trtllm_counters(const Counters& counters);
  bool refuse_counters(const ReportedAcceptance& all, double accepted);

  ReaderOptions options_;
  LogContents contents_;
  std::size_t line_ = 0;  // that is being read
  Held held_;
  std::string before_;                                         // the line before, where it is as long as a broken one
  std::vector<std::unique_ptr<Report>> blocks_;                // that have begun, by reader
  std::vector<std::unique_ptr<JsonText>> json_;                // of the text, and of log lines within its JSON
  std::size_t level_ = 0;                                      // which of them reads
  std::map<std::string, Piece> pieces_;                        // of answers, by reader and id
  std::vector<std::pair<double, std::string>> series_;         // counters of an answer to a query, by time
  std::vector<std::string> columns_;                           // of the table of llama-spec-bench that is being read
  std::size_t name_bytes_ = 0;                                 // of the counters that servers_ know
  std::map<std::string, RisingCounts> servers_;                // by what tells servers apart: labels, llama.cpp, a draft length
  std::map<std::pair<Kind, std::string>, Counters> counters_;  // by the label model_name, as text
  std::vector<SglangLine> sglang_;
  std::vector<SglangLine> sglang_scrapes_;
  std::map<std::string, SglangGauges> gauges_now_;     // by labels, of the scrape that is being read
  std::map<std::string, SglangGauges> gauges_before_;  // what the scrape before said
  std::set<std::pair<double, double>> sglang_shapes_;  // steps and draft tokens of the scrapes
  std::map<std::string, LlamaSlot> llama_slots_;       // by what a line says of its slot
  std::map<std::string, LlamaTotals> llama_totals_;    // by what lines of totals call their drafters
  TrtllmReport trtllm_report_;
};

}  // namespace specsim::logs
