// A program against the installed library: the first row of an experiment.
#include <specsim/specsim.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const specsim::api::Results results = specsim::api::run_file(argv[1], {.set = {{"rounds", "20000"}}});
  std::printf("%zu cells, tokens per round %.6f\n", results.rows.size(), results.rows.front().number("tokens_per_round"));
}
