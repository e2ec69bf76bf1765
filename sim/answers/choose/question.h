// The question of specsim choose: the settings to try, the load, the limits, and the figure that ranks.
#pragma once

#include "sim/answers/load/from_options.h"
#include "sim/answers/plan/acceptance_curve.h"
#include "sim/hardware/presets/presets.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace specsim::choose {

enum class Objective { cost, tokens, joules };

// A way to draft, or not to.
struct DraftChoice {
  std::string label;   // "no speculation", "n-gram", or the model's name
  std::string model;   // as cost.draft takes it; none where no model drafts
  std::string source;  // source of its acceptance
  bool drafts = false;
  plan::AcceptanceCurve curve;
  std::string text;         // of the table's rounds; "": not stated, or alpha was given
  bool other_text = false;  // the table is not on the wanted kind of text
  bool unverified = false;  // the table is marked as unverified
  // [draft_length]: standard deviation of the logarithm of tokens per round between published texts; empty: none.
  std::vector<double> error;
};

struct Question {
  std::vector<std::string> hardware;
  std::string target;
  std::string engine = "vllm";
  std::vector<std::string> types;             // of the target's weights; "": that of its file
  std::vector<std::string> cache_bits;        // of the cache; "": that of its file
  std::vector<std::int64_t> tensor_parallel;  // GPUs that share the target
  std::vector<std::int64_t> expert_parallel;  // engines that share the experts, 1: none
  std::vector<std::int64_t> replicas;         // engines that decode
  // [hour of a day]: requests per second. If there are any, each setting has the fewest engines that keep the limits in the
  // busiest hour, instead of `replicas`, and load.rate is the rate of that hour.
  std::vector<double> rates_by_hour;
  std::vector<std::int64_t> prefill;  // engines that only compute prompts; 0: every engine does both
  std::int64_t most_gpus = 8;         // of all engines
  std::vector<DraftChoice> drafts;
  std::vector<std::int64_t> lengths;  // draft lengths; empty: each setting's best
  load::ServeRequest load;            // rate, concurrency or trace; prompt, output; slo
  Objective objective = Objective::cost;
  std::size_t shown = 8;  // settings that are simulated and ranked
  // Changes of a GPU by options: its power limit and its cost per hour.
  std::function<std::vector<cost::PresetChoice::Change>(const std::string& hardware)> changes;
  std::optional<double> power_cap;
  std::function<std::optional<double>(const std::string& hardware)> price;
};

// Which drafts to take for a target.
struct DraftQuestion {
  std::string target;
  std::vector<std::string> named;       // names, "ngram", "none"; {"all"}: all that fit
  std::map<std::string, double> alpha;  // by name; "": of every draft without a table
  std::string text = "chat";            // tables on this kind of text are preferred
  int longest = 8;
};
struct DraftChoices {
  std::vector<DraftChoice> drafts;
  std::vector<std::string> left_out;  // drafts that fit and have no published acceptance
};
// The drafts that fit the target with their acceptance: by `alpha`, or by a table of configs/acceptance of that pair. Throws
// BadInput for a name that is no draft of the target, or that has no acceptance.
DraftChoices draft_choices(const DraftQuestion& question);

}  // namespace specsim::choose
