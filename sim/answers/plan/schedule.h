// A draft length for every batch: the best one goes up and down with tiles and captured sizes, and a server wants few ranges.
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
  double loss = 0.0;  // share of the best speedup here that following it gives up
};

// Plans at every place that fits into memory and that the cost model covers, in the order of the grid.
std::vector<ScanPoint> scan(const cost::CostModel& cost, const AcceptanceCurve& curve, const std::vector<double>& grid,
                            const std::function<cost::Workload(double)>& workload_at);

// Whether tables of a scan show the place: powers of two alone, since those between them are for the recommendation.
bool is_shown(double place);

// Fills in ScanPoint::smooth, by choose_lengths of draft_lengths.h, and ScanPoint::loss.
void smooth(std::vector<ScanPoint>& points);

// The ranges of a grid of batches on which the recommendation is one draft length.
std::vector<LengthRange> ranges_of(const std::vector<ScanPoint>& points);

// True where the best draft length rises somewhere along the grid.
bool rises(const std::vector<ScanPoint>& points);

// Where the smoothed one rises, and what never rising would lose.
struct SmoothRise {
  double at = 0.0;     // the first batch of the longer draft
  double loss = 0.0;   // the largest share of the best speedup of a batch that lengths which never rise give up
  double worst = 0.0;  // the batch at which they do
};
std::optional<SmoothRise> smooth_rise(const std::vector<ScanPoint>& points);

// 1, 2, 4, ... and between two of them some more, those one above a power of two among them: there another tile or captured size
// begins. `from` and `to` are whole.
std::vector<double> fine_batches(double from, double to);
// The grid from, 2 from, 4 from, ..., to.
std::vector<double> doubling(double from, double to);

}  // namespace specsim::plan
