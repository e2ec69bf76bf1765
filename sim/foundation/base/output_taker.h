// The receiver of printed text: standard output, unless somebody collects it.
#pragma once

#include <functional>
#include <string_view>

namespace specsim {

// From now on text that this context (context.h) has for standard output (output.h) goes to `taker` instead, as it was given;
// empty: to standard output again.
void divert_output(std::function<void(std::string_view)> taker);

}  // namespace specsim
