#include "sim/cli/gpu_passes.h"

#include "sim/base/output.h"
#include "sim/cli/command.h"

#include <fmt/format.h>

#include <algorithm>

namespace specsim::cli {

void GpuPasses::measure_bandwidth() {
  const std::size_t bytes = std::min(std::size_t{4} << 30, setup_.device->free_memory() / 4);
  const cuda::Bandwidth bandwidth = cuda::measure_bandwidth(*setup_.device, bytes, setup_.options.quick ? 5 : 15);
  read_rate_ = bandwidth.read_rate();
  GrowingTable table(setup_.options.out + "/bandwidth.csv", "what,bytes,ms,ms_quartile_1,ms_quartile_3,samples,gb_per_s");
  table.add(fmt::format("read,{},{},{:.6g}", bandwidth.bytes, spread_text(bandwidth.read), 1e-9 * bandwidth.read_rate()));
  table.add(fmt::format("copy,{},{},{:.6g}", 2 * bandwidth.bytes, spread_text(bandwidth.copy), 1e-9 * bandwidth.copy_rate()));
  table.write();
  print_output("reads {:.1f} GB/s, copies {:.1f} GB/s (read and written)\n", 1e-9 * bandwidth.read_rate(),
               1e-9 * bandwidth.copy_rate());
  flush_output();
}

void GpuPasses::time_passes() {
  const std::vector<std::size_t>& contexts = setup_.contexts;
  GrowingTable passes(setup_.options.out + "/passes.csv",
                      "model,weights,tokens,batch,context,ms,ms_quartile_1,ms_quartile_3,samples,bytes,gb_per_s,share_of_read_"
                      "bandwidth,logits_hash");
  GrowingTable costs(setup_.options.out + "/cost_table.csv", "model,tokens,batch,context,ms");
  std::vector<std::size_t> table_tokens = {1};
  for (const int k : setup_.options.draft_lengths) table_tokens.push_back(static_cast<std::size_t>(k) + 1);
  std::vector<std::size_t> target_tokens = table_tokens;
  if (!setup_.trained())
    for (const std::size_t more : {8U, 16U, 32U, 64U, 128U})
      if (more == 8 || !setup_.options.quick) target_tokens.push_back(more);
  std::sort(target_tokens.begin(), target_tokens.end());
  target_tokens.erase(std::unique(target_tokens.begin(), target_tokens.end()), target_tokens.end());
  print_output("{:<7}{:>7}{:>6}{:>9}{:>11}{:>10}{:>8}\n", "model", "tokens", "batch", "context", "ms", "GB/s", "share");
  // Only contexts that every batch fits make a table without holes.
  const auto holds = [&](const OnDevice& m, std::size_t batch, std::size_t context) {
    const std::size_t logits = kMostRows * m.config.vocab * sizeof(float);
    return setup_.fits(cuda::cache_bytes(m.config, batch, context + kMargin) + logits);
  };
  for (const std::size_t batch : setup_.options.batches)
    for (const std::size_t context : contexts) {
      // Asked while no cache is there: beside one, the largest would seem not to fit.
      const bool every_batch = holds(setup_.target, setup_.options.batches.back(), context);
      for (OnDevice* const m : {&setup_.target, &setup_.draft}) {
        if (!holds(*m, batch, context)) {
          print_output("{:<7}{:>7}{:>6}{:>9}  left out: its cache does not fit\n", m == &setup_.target ? "target" : "draft",
                       "all", batch, context);
          continue;
        }
        cuda::PassTimer timer(*m->model, batch, std::min(context + kMargin, setup_.limits.context));
        for (const std::size_t tokens : m == &setup_.target ? target_tokens : std::vector<std::size_t>{1, 2}) {
          if (batch * tokens > setup_.limits.rows || context + tokens > setup_.limits.context ||
              context + tokens > m->config.context)
            continue;
          const int repetitions = setup_.options.repetitions;
          const auto result = timer.time(tokens, m == &setup_.target ? tokens : 1, context, repetitions, 3);
          const char* const name = m == &setup_.target ? "target" : "draft";
          const double rate = static_cast<double>(result.bytes) / result.seconds.median;
          passes.add(fmt::format("{},{},{},{},{},{},{},{:.6g},{:.4f},{:016x}", name, to_text(m->weights->origin), tokens, batch,
                                 context, spread_text(result.seconds), result.bytes, 1e-9 * rate, rate / read_rate_,
                                 result.logits_hash));
          print_output("{:<7}{:>7}{:>6}{:>9}{:>11.4f}{:>10.1f}{:>8.3f}\n", name, tokens, batch, context,
                       1e3 * result.seconds.median, 1e-9 * rate, rate / read_rate_);
          ++timed_;
          const bool in_table = m == &setup_.draft || std::count(table_tokens.begin(), table_tokens.end(), tokens) > 0;
          if (in_table && every_batch)
            costs.add(fmt::format("{},{},{},{},{:.6g}", name, tokens, batch, context, 1e3 * result.seconds.median));
        }
        passes.write();
        costs.write();
        flush_output();
      }
    }
}

void GpuPasses::time_terms() {
  GrowingTable table(setup_.options.out + "/terms.csv",
                     "what,batch,draft_length,ms,ms_quartile_1,ms_quartile_3,samples,launches,share_of_round");
  const int repetitions = setup_.options.repetitions;
  const auto add = [&](const std::string& what, std::size_t batch, int k, const llm::Spread& spread) {
    table.add(fmt::format("{},{},{},{},,", what, batch, k, spread_text(spread)));
  };
  for (const std::size_t batch : setup_.options.batches)
    for (const int k : setup_.lengths()) {
      const cuda::Terms terms = cuda::measure_terms(*setup_.device, setup_.target.config.vocab, batch, k, {}, repetitions);
      if (k > 0) {
        add("draw", batch, k, terms.draw);
        add("accept_greedy", batch, k, terms.accept_greedy);
        add("accept_block", batch, k, terms.accept_block);
      }
      add("accept", batch, k, terms.accept);
      terms_[{batch, k}] = k * terms.draw.median + terms.accept.median;
      table.write();
    }
  // With filters: a draw of a distribution that is cut.
  const int longest = setup_.options.draft_lengths.back();
  const cuda::Terms cut =
      cuda::measure_terms(*setup_.device, setup_.target.config.vocab, 1, longest, {.top_k = 50, .top_p = 0.95}, repetitions);
  add("draw_top_k_top_p", 1, longest, cut.draw);
  add("accept_top_k_top_p", 1, longest, cut.accept);
  const llm::Spread empty = cuda::time_empty_launch(*setup_.device, repetitions);
  add("empty_launch", 1, 0, empty);
  // The host: a round as the host sees it less what the device takes, and the same launches without a graph. Next to nothing is
  // cached, so that rounds are the shortest, and what is not passes is the largest share of them.
  for (const std::size_t batch : setup_.options.batches) {
    for (const int k : {0, longest}) {
      std::size_t launches = 0;
      for (const bool graphs : {false, true}) {
        cuda::Rounds rounds(*setup_.target.model, k > 0 ? setup_.draft.model.get() : nullptr,
                            {.draft_length = k, .batch = batch, .capacity = kMargin, .graphs = graphs},
                            rng::make_key(setup_.options.seed, 1));
        std::vector<double> outside;
        std::vector<double> inside;
        for (int i = 0; i < setup_.options.repetitions + 2; ++i) {
          rounds.pretend(2);
          const std::size_t launched = setup_.device->launches();
          const double wall_begin = llm::now(llm::Clock::wall);
          const double on_device = setup_.device->seconds([&] { rounds.enqueue(); });
          rounds.fetch();
          const double wall = llm::now(llm::Clock::wall) - wall_begin;
          if (!graphs) launches = setup_.device->launches() - launched;
          if (i < 2) continue;
          inside.push_back(on_device);
          outside.push_back(wall - on_device);
        }
        const llm::Spread host = llm::spread(outside);
        const llm::Spread round = llm::spread(inside);
        add(graphs ? "host" : "host_without_graph", batch, k, host);
        table.add(
            fmt::format("{},{},{},{},{},", graphs ? "round" : "round_without_graph", batch, k, spread_text(round), launches));
        if (!graphs) continue;
        if (k == 0) host_[batch] = host.median;
        const double all = round.median + host.median;
        const double launching = static_cast<double>(launches) * empty.median + host.median;
        const double sampling = terms_.at({batch, k});
        table.add(
            fmt::format("host_and_launches,{},{},{:.6g},,,,{},{:.4f}", batch, k, 1e3 * launching, launches, launching / all));
        table.add(fmt::format("draws_and_acceptance,{},{},{:.6g},,,,,{:.4f}", batch, k, 1e3 * sampling, sampling / all));
        print_output(
            "batch {}, draft length {}: the host, {} launches and the gaps between them are {:.2f} % of a round (goal: "
            "at most 3 %), draws and acceptance {:.2f} % (goal: at most 2 %)\n",
            batch, k, launches, 100.0 * launching / all, 100.0 * sampling / all);
      }
      table.write();
    }
  }
  flush_output();
}

void GpuPasses::time_streams() {
  const std::size_t context = setup_.contexts.front();
  const std::unique_ptr<cuda::Device> other = setup_.device->another_stream();
  if (!setup_.fits(cuda::work_bytes(setup_.draft.config, setup_.limits) +
                   cuda::cache_bytes(setup_.target.config, 1, context + kMargin)))
    return;
  cuda::DeviceModel draft(*other, setup_.draft.weights, setup_.limits);
  cuda::PassTimer target_timer(*setup_.target.model, 1, context + kMargin);
  cuda::PassTimer draft_timer(draft, 1, context + kMargin);
  const auto verify = target_timer.record(static_cast<std::size_t>(setup_.options.draft_lengths.back()) + 1, 1, context);
  const auto guess = draft_timer.record(1, 1, context);
  const auto wall = [&](int verifies, int guesses) {
    std::vector<double> seconds;
    for (int i = 0; i < setup_.options.repetitions + 1; ++i) {
      const double begin = llm::now(llm::Clock::wall);
      for (int k = 0; k < std::max(verifies, guesses); ++k) {
        if (k < verifies) setup_.device->replay(*verify);
        if (k < guesses) other->replay(*guess);
      }
      setup_.device->finish();
      other->finish();
      if (i > 0) seconds.push_back(llm::now(llm::Clock::wall) - begin);
    }
    return llm::spread(seconds);
  };
  constexpr int kVerifies = 4;
  const llm::Spread alone = wall(kVerifies, 0);
  const llm::Spread guess_alone = wall(0, kVerifies);
  const int guesses = std::max(1, static_cast<int>(alone.median / guess_alone.median * kVerifies));
  const llm::Spread guesses_alone = wall(0, guesses);
  const llm::Spread both = wall(kVerifies, guesses);
  GrowingTable table(setup_.options.out + "/streams.csv",
                     "what,target_passes,draft_passes,ms,ms_quartile_1,ms_quartile_3,samples");
  table.add(fmt::format("target,{},0,{}", kVerifies, spread_text(alone)));
  table.add(fmt::format("draft,0,{},{}", guesses, spread_text(guesses_alone)));
  table.add(fmt::format("both at once,{},{},{}", kVerifies, guesses, spread_text(both)));
  table.write();
  print_output("two streams: target {:.3f} ms, draft {:.3f} ms, both {:.3f} ms\n", 1e3 * alone.median, 1e3 * guesses_alone.median,
               1e3 * both.median);
  flush_output();
}

}  // namespace specsim::cli
