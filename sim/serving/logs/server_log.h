// Counts of speculative decoding from the logs and metrics of servers. A reader takes the text line by line and ignores
// everything else in it; it prints nothing and throws nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace specsim::logs {

enum class LogKind {
  vllm_log,       // "SpecDecoding metrics:" of vLLM's V1 engine, counts of the interval since the line before
  vllm_v0_log,    // "Speculative metrics:" of vLLM's V0 engine, totals since its start
  vllm_counters,  // vllm:spec_decode_* of /metrics, totals
  vllm_v0_counters,
  vllm_bench,            // of vllm bench serve, printed or saved, a run
  vllm_offline,          // the summary of its example spec_decode.py, a run
  vllm_answers,          // its answers with --per-request-spec-decode-metrics
  lmdeploy_counters,     // lmdeploy:spec_decode_*, vLLM's counters by another name
  sglang_log,            // "Decode batch ... accept len:", an average of some steps
  sglang_gauges,         // sglang:spec_accept_length of /metrics, the latest of these averages
  sglang_bench,          // "Accept length:" of sglang.bench_serving, a run
  sglang_answers,        // meta_info of its answers and of "Finish:" lines
  sglang_server_info,    // /get_server_info, the mean since its start
  llama_requests,        // "draft acceptance", one request per line
  llama_totals,          // "statistics draft:", totals of a server
  llama_example,         // n_drafted, n_accept of llama-speculative
  llama_answers,         // "timings" of the server's answers, one request each
  llama_spec_bench,      // the table of ik_llama.cpp's llama-spec-bench, one run per line
  trtllm_steps,          // specDecodingStats of TensorRT-LLM's iteration statistics
  trtllm_counters,       // trtllm_spec_decode_* of /prometheus/metrics, totals
  trtllm_bench,          // "DECODING STATISTICS" in the output of trtllm-bench, averages over the requests of a run
  trtllm_bench_serving,  // "Avg Decoded Tokens per Iter" of its benchmark_serving, likewise
  tabby_answers,         // tabbyAPI's "Draft:" and usage
  aiperf_report,         // AIPerf's table and its JSON, a run
  aiperf_records,        // its profile_export.jsonl, one request per line
  answer_files           // answers of Spec-Bench and EAGLE
};
// The servers whose logs are supported, and which of them writes a kind.
const std::vector<std::string>& server_names();
std::string server_name(LogKind kind);
// "SpecDecoding metrics lines of vLLM".
std::string describe(LogKind kind);

// One line's share, or a counter's growth: rounds that had a draft, the draft tokens that they accepted, and how many draft
// tokens were judged until a rejection or the end (0 if positions are not given).
struct Sample {
  double rounds = 0.0;
  double accepted = 0.0;
  double judged = 0.0;
};

// The acceptance at one context: the mean of the sequences that a line is of.
struct AtContext {
  double context = 0.0;   // cached tokens of a sequence
  double rounds = 0.0;    // with a draft
  double accepted = 0.0;  // draft tokens
};

// Sums over all lines of one kind and one draft length; lines weigh by their rounds.
struct ReportedAcceptance {
  LogKind kind = LogKind::vllm_log;
  std::string name;           // distinguishes it from others of its kind: llama.cpp's drafter, a model; "" if nothing does
  int draft_length = 0;       // 0: not in the text
  bool drafts_whole = false;  // every round drafted draft_length tokens
  std::size_t lines = 0;
  std::size_t first_line = 0;  // counted from 1
  std::size_t last_line = 0;
  // not all lines give the drafted tokens, or the acceptance at each position: these sums then have
  bool some_without_drafted = false;
  bool some_without_positions = false;  // nothing
  // answers that the lines are of, each with a last draft that may be short; 0: not in the text
  double answers = 0.0;
  std::size_t restarts = 0;         // how often a counter decreased because its server restarted
  double rounds = 0.0;              // rounds with a draft; 0: not in the text
  bool rounds_counted = true;       // false: an estimate, only usable as a weight
  double drafted = 0.0;             // draft tokens; 0: not in the text
  double accepted = 0.0;            // draft tokens up to the first rejection; 0 also if only a length is given
  std::vector<double> accepted_at;  // rounds that accepted the draft token of this position; empty: not in the text
  double alone_accepted = 0.0;      // draft tokens accepted regardless of those before them, of `drafted`: V0 of vLLM
  std::vector<Sample> samples;
  std::vector<AtContext> contexts;  // line by line; empty: not in the text
  // Printed figures that contradict the counts next to them, beyond their rounding.
  std::size_t contradictions = 0;      // lines with such figures
  std::size_t last_contradiction = 0;  // the last of these lines
  std::string first_contradiction;     // "line 7: mean acceptance length 2.70, but 169 accepted tokens of 99 rounds"
};

struct LogContents {
  std::vector<ReportedAcceptance> found;
  std::size_t lines = 0;
  std::size_t idle = 0;      // lines that count no draft
  std::size_t unread = 0;    // lines that begin like one of the above and cannot be read
  std::string first_unread;  // "line 12: no number after \"Accepted:\""
};

// Assumptions of the reader for information that is not in the text.
struct ReaderOptions {
  bool growth_alone = false;  // counters count their growth since the first time they are seen, not their first value
  int sglang_interval = 40;   // decode steps that an SGLang line averages (--decode-log-interval)
};

// Counters of one server: totals over all its restarts. All of them restart at 0 when the server does, so the values of one
// moment (a scrape, or a line with several of them) are evaluated together: if one of them decreased, all of them restarted at 0,
// also those that are higher by now than before. An engine of the server whose counters have a time at which they began is a
// process of its own: it restarts alone, and another time means another process.
class RisingCounts {
 public:
  class Engine {
   public:
    // A counter's value at the current moment. settle() adds its growth to `total`, which must keep its address as long as
    // moments may lack counters that others have. `derived`: computed from rounded figures, so that a decrease means nothing.
    void see(const std::string& name, double value, double& total, bool derived = false) {
      now_[name] = {value, &total, derived, 0.0};
    }
    // When the counter began, in seconds since 1970.
    void began(const std::string& name, double time) { beginnings_now_[name] = time; }
    // Whether the current moment has a value (or a beginning) of this counter already, which means that a new moment has begun.
    [[nodiscard]] bool has(const std::string& name) const { return now_.contains(name); }
    [[nodiscard]] bool has_beginning(const std::string& name) const { return beginnings_now_.contains(name); }

   private:
    friend class RisingCounts;
    struct Value {
      double value = 0.0;
      double* total = nullptr;
      bool derived = false;
      double counted = 0.0;  // of this process, in `total`
    };
    // From one start of its counters to the next.
    struct Process {
      [[nodiscard]] double latest_beginning() const;
      void forget();  // takes back what it added to the totals

      std::map<std::string, Value> last;
      std::map<std::string, double> beginnings;
      bool from_zero = false;       // its first values are new
      std::set<std::string> lacks;  // counters of the process before that this one, seen once, does not have: it may be cut
    };
    enum class Step { goes_on, fell, later_process, other_process };
    void find_process();
    [[nodiscard]] bool fell() const;
    void begin_process(RisingCounts& server);
    void settle(bool growth_alone, RisingCounts& server);
    void count(bool growth_alone, RisingCounts& server);
    [[nodiscard]] std::set<std::string> lacking() const;  // counters of the current process that the moment does not have

    std::map<std::string, Value> now_;
    std::map<std::string, double> beginnings_now_;
    std::vector<Process> processes_;
    std::size_t current_ = 0;
    std::size_t restarts_seen_ = 0;  // of the server
    double dropped_ = -1.0;          // the latest beginning of a process that is no longer known
    Step step_ = Step::goes_on;      // of the current moment
    bool unknown_ = false;           // the current moment may be of a process that is no longer known
    bool noted_ = false;             // has values of the current moment
  };

  // The engine with this label; "": the server has one engine. The engine's values belong to the current moment.
  [[nodiscard]] Engine& engine(const std::string& name = "") { return engines_[name]; }
  // Names an engine that has values of the current moment.
  void note(Engine& engine) {
    if (!std::exchange(engine.noted_, true)) noted_.push_back(&engine);
  }
  // Ends the moment. A counter's first value counts fully unless `growth_alone`. A moment without counters that the engine's
  // others have was cut, and is left out.
  void settle(bool growth_alone);
  // The last moment has been settled.
  void finish();
  [[nodiscard]] std::size_t restarts() const { return restarts_; }
  // Moments that were left out since the last call.
  [[nodiscard]] std::size_t take_left_out() { return std::exchange(left_out_, 0); }
  // Whether counters of one engine come apart, so that none of its moments has all of them.
  [[nodiscard]] bool apart() const { return apart_; }

 private:
  std::map<std::string, Engine> engines_;
  std::vector<Engine*> noted_;
  std::size_t restarts_ = 0;
  std::size_t left_out_ = 0;
  bool apart_ = false;
};

struct MetricLine;
struct Reader;
class Report;
class JsonText;

// A consumer of the JSON that was found.
class JsonUser {
 public:
  virtual ~JsonUser() = default;
  virtual void on_report(const Reader& reader, Report& report) = 0;
  // Lines of a log inside a JSON string, as in containers' JSON logs.
  virtual void on_log_text(const std::string& text) = 0;
  // A value of a counter from Prometheus' answers to queries, with its time; `series`: its name and labels as in /metrics.
  virtual void on_metric(double time, const std::string& series, std::string_view value) = 0;
  virtual void on_unread(const std::string& why) = 0;
};

class LogReader final : private JsonUser {
 public:
  explicit LogReader(ReaderOptions options = {});
  ~LogReader() override;
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;
  void add_line(std::string_view line);
  // Adds the beginning of a very long line, up to a carriage return.
  void add_part(std::string_view part);
  // Adds a text of many lines.
  void add_text(std::string_view text);
  LogContents finish();

  // Functions of the table of readers for reports that need more than adding counts.
  void take_vllm_v0(const Reader& reader, Report& report);
  void take_sglang(const Reader& reader, Report& report);
  void take_llama_request(const Reader& reader, Report& report);
  void take_llama_totals(const Reader& reader, Report& report);

 private:
  static constexpr double kNotSaid = std::numeric_limits<double>::quiet_NaN();
  // An incomplete line: a terminal may have broken it, and the next lines may be its rest.
  struct Held {
    bool open = false;
    std::size_t line = 0;
    std::string why;  // the line alone cannot be read; "": it has no information
    std::string text;
    std::vector<std::pair<std::size_t, std::string>> more;  // with their numbers
  };
  struct Piece {  // counts of the last piece of an answer, and its index among the samples
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
    double rate;               // NaN: not printed
    double cached = kNotSaid;  // tokens of all requests
  };
  // The values of one scrape for one set of labels; NaN: not yet.
  struct SglangGauges {
    double requests = kNotSaid;
    double length = kNotSaid;
    double rate = kNotSaid;
    double steps = kNotSaid;
    double draft_tokens = kNotSaid;
  };
  // The growth of one server's counters, summed over all other labels.
  struct Counters {
    ReportedAcceptance lines;
    bool broken = false;                               // one of its lines could not be read, so that the others are incomplete
    std::map<std::string, double, std::less<>> grown;  // by metric
    std::map<std::size_t, double> accepted_at;         // by position
  };
  // The counters of one server.
  struct Scraped {
    RisingCounts counts;
    Counters* sums = nullptr;
    std::size_t line = 0;                                      // the last one of its current moment
    double moment = -std::numeric_limits<double>::infinity();  // the time at which it began, if times are given
    double spacing = std::numeric_limits<double>::infinity();  // the shortest time between two values of one counter
  };
  // One counter: a name with its labels.
  struct Counter {
    std::uint32_t index = 0;  // in counter_list_
    Scraped* server = nullptr;
    RisingCounts::Engine* engine = nullptr;
    Counters* sums = nullptr;
    double* total = nullptr;                                 // nullptr: cannot be counted
    bool beginning = false;                                  // its value is the time at which another counter began
    bool whole = false;                                      // its values are whole numbers
    double time = std::numeric_limits<double>::quiet_NaN();  // of the value that was evaluated last
  };
  struct TimedValue {
    double time = 0.0;
    double value = 0.0;
    std::uint32_t counter = 0;  // its index in counter_list_
    std::uint32_t line = 0;
  };
  // The counts of a llama.cpp drafter since its totals were last evaluated.
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

  ReportedAcceptance* known(LogKind kind, int draft_length, const std::string& name);
  ReportedAcceptance& of(LogKind kind, int draft_length, const std::string& name = "");
  void seen(ReportedAcceptance& acceptance);
  void contradict(ReportedAcceptance& acceptance, const std::string& what);
  void cannot_read(const std::string& why);
  void add_sample(ReportedAcceptance& acceptance, const Sample& sample);

  void read_pieces(std::string_view line);
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
  void on_metric(double time, const std::string& series, std::string_view value) override;
  void on_unread(const std::string& why) override { cannot_read(why); }
  bool read_sglang_gauge(std::string_view line);
  void end_scrape(const std::string& labels);
  void read_llama_slot(std::string_view line);
  void settle_llama_totals();
  void read_spec_bench(std::string_view line);
  bool read_trtllm_bench(std::string_view line);
  void end_trtllm_report();
  bool read_counter(std::string_view line);
  struct FoundCounter {
    bool is_counter = false;
    const std::string* name = nullptr;  // nullptr: beyond a limit, which was reported
    Counter* counter = nullptr;
  };
  FoundCounter find_counter(std::string_view line, std::optional<MetricLine>& read);
  void take_count(const FoundCounter& found, double value, double time);
  void see_count(const std::string& name, Counter& counter, double value);
  void settle_scrape(Scraped& server);
  void report_left_out(Scraped& server);
  void read_timed_values();
  void finish_sglang();
  void finish_sglang_gauges();
  void finish_sglang_lines(LogKind kind, const std::vector<SglangLine>& lines, double rounding, int told);
  void finish_counters();
  void finish_vllm_counters(const Counters& counters);
  void finish_vllm_v0_counters(const Counters& counters);
  void finish_trtllm_counters(const Counters& counters);
  bool refuse_counters(const Counters& counters, const ReportedAcceptance& all, double accepted);

  ReaderOptions options_;
  LogContents contents_;
  std::size_t line_ = 0;  // that is being read
  Held held_;
  std::string before_;                           // the line before, if it is as long as a broken one
  std::vector<std::unique_ptr<Report>> blocks_;  // that have begun, by reader
  std::vector<std::unique_ptr<JsonText>> json_;  // of the text, and of log lines within its JSON
  std::size_t level_ = 0;                        // which of them reads
  std::map<std::string, Piece> pieces_;          // of answers, by reader and id
  std::string series_;                           // the last one of an answer to a query
  FoundCounter series_counter_;                  // its counter
  std::vector<std::string> columns_;             // of the table of llama-spec-bench that is being read
  // by the data that distinguishes servers: labels, llama.cpp, a draft length
  std::map<std::string, RisingCounts> servers_;
  std::map<std::string, Scraped> scraped_;                   // by labels, except for those of engines and positions
  std::unordered_map<std::string, Counter> known_counters_;  // by name and labels
  std::vector<std::pair<const std::string, Counter>*> counter_list_;
  std::vector<TimedValue> timed_;                                 // evaluated at the end, by time
  std::map<std::pair<LogKind, std::string>, Counters> counters_;  // by the label model_name, as text
  std::vector<SglangLine> sglang_;
  std::vector<SglangLine> sglang_scrapes_;
  std::map<std::string, SglangGauges> gauges_now_;     // by labels, of the scrape that is being read
  std::map<std::string, SglangGauges> gauges_before_;  // values of the previous scrape
  std::set<std::pair<double, double>> sglang_shapes_;  // steps and draft tokens of the scrapes
  std::map<std::string, LlamaSlot> llama_slots_;       // by the line's slot
  std::map<std::string, LlamaTotals> llama_totals_;    // by the drafter's name in lines of totals
  TrtllmReport trtllm_report_;
};

}  // namespace specsim::logs
