// A draft length for every batch. The best length changes up and down with tiles and captured sizes, but a server needs few
// ranges.
#pragma once

#include "sim/answers/plan/draft_lengths.h"
#include "sim/answers/plan/planner.h"

#include <functional>
#include <optional>
#include <vector>

namespace specsim::plan {

// A plan at one place of a grid of batches or contexts.
struct ScanPoint {
  double at = 0.0;  // batch, or context
  Plan plan;
  int smooth = 0;     // draft length of the smoothed recommendation
  double loss = 0.0;  // share of the best speedup here that `smooth` gives up
};

// Plans at every place that fits into memory and that the cost model covers, in the order of the grid.
std::vector<ScanPoint> scan(const cost::CostModel& cost, const AcceptanceCurve& curve, const std::vector<double>& grid,
                            const std::function<cost::Workload(double)>& workload_at);

// The best draft length at each batch and context; nullopt where no draft fits or the cost model does not cover it.
struct LengthGrid {
  std::vector<double> batches;
  std::vector<double> contexts;
  std::vector<std::vector<std::optional<int>>> best;  // [batch][context]
};
LengthGrid scan_lengths(const cost::CostModel& cost, const AcceptanceCurve& curve, std::vector<double> batches,
                        std::vector<double> contexts);

// Whether tables of a scan show the place: powers of two only, since the places between them only serve the recommendation.
bool is_shown(double place);

// Fills in ScanPoint::smooth, by choose_lengths of draft_lengths.h, and ScanPoint::loss.
void smooth(std::vector<ScanPoint>& points);

// The ranges of batches with the same recommended draft length.
std::vector<LengthRange> ranges_of(const std::vector<ScanPoint>& points);

// True if the best draft length rises somewhere along the grid.
bool rises(const std::vector<ScanPoint>& points);

// The batch at which the smoothed length rises, and the loss without a rise.
struct SmoothRise {
  double at = 0.0;     // the first batch of the longer draft
  double loss = 0.0;   // the largest share of a batch's best speedup that lengths without a rise give up
  double worst = 0.0;  // the batch with that loss
};
std::optional<SmoothRise> smooth_rise(const std::vector<ScanPoint>& points);

// 1, 2, 4, ... and some batches in between, including the one above each power of two, where another tile or captured size
// begins. `from` and `to` are integers.
std::vector<double> fine_batches(double from, double to);
// The grid from, 2 from, 4 from, ..., to.
std::vector<double> doubling(double from, double to);

}  // namespace specsim::plan
