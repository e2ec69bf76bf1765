// Spans of simulated time, written as a Chrome trace: JSON that Perfetto (ui.perfetto.dev) and chrome://tracing open.
//
// Each lane is a thread of one process, named and sorted in the order in which lanes were made; each span is a complete event
//   ("ph": "X"), each counter an event of figures ("ph": "C"). Times are microseconds with all six decimals of the picoseconds,
//   as text: nothing is rounded.
// Order. Spans are written in the order of the calls; viewers sort them. Spans of one lane must not overlap except by nesting,
//   or viewers draw them wrongly: the lanes of sim/hardware/engine obey this.
// The file is written as the spans come and gets its name in close(), so that it is complete or absent. Without close(), also
//   when an exception passes, nothing remains.
// Errors: IoError when the file cannot be written; an unknown lane or a span after close() is a failed check.
// Complexity: O(length of the text) per span, with one buffer's memory. A recorder of spans holds a pointer to a timeline; a
//   null pointer costs one comparison.
#pragma once

#include "sim/foundation/base/sim_time.h"
#include "sim/foundation/base/whole_file.h"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

namespace specsim::engine {

class Timeline {
 public:
  enum class Lane : std::uint32_t {};
  struct Argument {
    std::string_view key;
    std::variant<std::int64_t, double, std::string_view> value;  // a double that is not finite is written as null
  };

  explicit Timeline(const std::string& path);

  // A new lane; two may have the same name. Text is UTF-8.
  Lane lane(std::string_view name);
  // The colour is one of Chrome's names for colours, such as "good" or "thread_state_running"; empty: by the span's name.
  void span(Lane lane, std::string_view name, SimTime start, Duration duration, std::initializer_list<Argument> arguments = {},
            std::string_view colour = {});
  // Values from this moment on: one graph of this name with a line for each value.
  void counter(std::string_view name, SimTime time, std::initializer_list<Argument> values);
  [[nodiscard]] std::uint64_t spans() const { return spans_; }

  // Publishes the file, or throws IoError and leaves no file.
  void close();

 private:
  void begin_event();
  void flush_if_full();
  void append_arguments(std::initializer_list<Argument> arguments);

  WholeFileWriter file_;
  std::string buffer_;
  std::uint32_t lanes_ = 0;
  std::uint64_t spans_ = 0;
  bool first_ = true;
  bool open_ = true;
};

}  // namespace specsim::engine
