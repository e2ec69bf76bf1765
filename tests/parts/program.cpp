// The program's own main under another name, so that a test can call it with a command line.
#define main specsim_main
#include "sim/doors/cli/main.cpp"  // NOLINT(bugprone-suspicious-include)

namespace specsim::program {

#undef main

}  // namespace specsim::program
