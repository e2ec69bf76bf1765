// The receiver of printed text: standard output, unless somebody collects it.
#pragma once

#include <functional>
#include <string_view>

namespace specsim {

// From now on `taker` receives the unchanged text that this context (context.h) has for standard output (output.h). An empty
// `taker` restores standard output.
void divert_output(std::function<void(std::string_view)> taker);

}  // namespace specsim
