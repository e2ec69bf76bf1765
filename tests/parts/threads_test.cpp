// Commands and runs of the library on several threads at once, as Python calls them: each prints what it prints alone. Under the
// thread sanitizer this shows state that two calls share.
#include "sim/doors/api/specsim.h"
#include "sim/doors/cli/command.h"
#include "sim/doors/cli/output_form.h"
#include "sim/foundation/base/context.h"
#include "sim/foundation/base/error.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

namespace specsim::threads_test {

namespace {

using Words = std::vector<std::string>;

const std::vector<Words>& calls() {
  static const std::vector<Words> list = {{"plan", "--alpha", "0.7", "--longest", "3"},
                                          {"theory", "--alpha", "0.8", "--draft-length", "4"},
                                          {"serve", "configs/serve/chat.yaml", "--requests", "20", "--threads", "1"},
                                          {"check", "configs/quickstart.yaml", "--set", "rounds=2000", "--threads", "2"},
                                          {"compare", "configs/quickstart.yaml", "--rounds", "1024", "--threads", "2"},
                                          {"pass", "--hardware", "h100-sxm", "--model", "llama-3.1-8b", "--batch", "8"},
                                          {"import", "tests/data/logs/vllm.log"},
                                          {"describe", "llama-3.1-8b"},
                                          {"theory", "--alpha", "3"},
                                          {"run"}};
  return list;
}

// The output of a call and its status, or what is wrong with it.
std::string shown(const Words& words) {
  const auto& commands = cli::commands();
  const auto found =
      std::find_if(commands.begin(), commands.end(), [&](const cli::Command& one) { return one.name == words.front(); });
  Context own;  // as the package for Python gives each call one
  const WithContext within(own);
  try {
    const cli::JsonOutput output = cli::run_for_json(*found, Words(words.begin() + 1, words.end()));
    return std::to_string(static_cast<int>(output.status)) + " " + output.text;
  } catch (const BadInput& wrong) {
    return wrong.what();
  }
}

// data.csv of a run by the library.
std::string rows_of() {
  api::Options options;
  options.threads = 2;
  options.set = {{"rounds", "2000"}};
  return api::run_file("configs/quickstart.yaml", options).csv;
}

}  // namespace

TEST_CASE("commands on several threads print what each prints alone", "[parts][threads]") {
  std::vector<std::string> alone;
  for (const Words& words : calls()) alone.push_back(shown(words));
  constexpr std::size_t kGiven = 8;  // these calls compute something; the others are refused
  for (std::size_t i = 0; i < alone.size(); ++i) {
    CAPTURE(calls()[i].front(), alone[i]);
    CHECK((alone[i].starts_with("0 {") || alone[i].starts_with("3 {")) == (i < kGiven));
  }
  CHECK(alone[8].find("allowed: ") != std::string::npos);
  const std::string run_alone = rows_of();
  constexpr std::size_t kThreads = 4;
  std::vector<std::string> wrong(kThreads);
  std::vector<std::thread> threads;
  for (std::size_t number = 0; number < kThreads; ++number)
    threads.emplace_back([&, number] {
      for (std::size_t turn = 0; turn < calls().size(); ++turn) {
        const std::size_t which = (3 * number + turn) % calls().size();
        if (shown(calls()[which]) != alone[which]) wrong[number] += calls()[which].front() + " ";
      }
      if (rows_of() != run_alone) wrong[number] += "api::run ";
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& one : wrong) CHECK(one.empty());
}

}  // namespace specsim::threads_test
