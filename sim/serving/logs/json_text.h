// JSON inside a log, an answer or a file, and Python's dicts as they are printed: read line by line. Of an open document it keeps
// only keys and the figures that readers request, so that memory does not grow with the text.
#pragma once

#include "sim/serving/logs/readers.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace specsim::logs {

class JsonText {
 public:
  // Reads the documents that begin or continue in the line. True if one of them contained lines of a log.
  bool read(std::string_view line, JsonUser& user);
  [[nodiscard]] bool open() const { return !frames_.empty(); }
  // Ends the open document; it will not continue.
  void end(JsonUser& user);

 private:
  enum class Next { key, key_or_end, colon, value, value_or_end, comma_or_end };
  struct Value {
    std::size_t reader;
    std::size_t figure;
    std::size_t at;
    double value;
  };
  struct Frame {
    bool list = false;
    std::string key;  // of the list or object itself
    std::size_t size = 0;
    double last_number = 0.0;
    std::vector<Value> values;
    std::string id;
    std::string series;  // name and labels of a counter
  };
  bool scan(std::string_view line, std::size_t& at, JsonUser& user);
  void open_frame(bool list);
  void close_frame(JsonUser& user);
  void take_number(double value);
  void take_text(std::string_view raw, JsonUser& user);
  void add_value(const Value& value);
  Report report_of(const Frame& frame, std::size_t reader) const;

  std::vector<Frame> frames_;
  Next next_ = Next::value;
  std::string key_;            // of the value to come
  bool at_start_ = false;      // the open document began its line
  bool fields_alone_ = false;  // it has no bracket: fields that remain of an object after grep
  bool held_log_ = false;
};

}  // namespace specsim::logs
