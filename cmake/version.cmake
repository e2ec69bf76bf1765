# Writes HEADER with VERSION and the commit of SOURCE, and leaves it untouched when nothing changed.
# The commit is "unknown" outside git, and ends in "+dirty" when anything the program is built from differs from it:
# fresh results or notes in the tree do not make a build dirty.

set(commit unknown)
find_program(git git)
if(git)
  set(ENV{GIT_OPTIONAL_LOCKS} 0)
  # Only this repository counts, not one that an unpacked archive happens to lie in.
  execute_process(COMMAND ${git} rev-parse --show-prefix --verify HEAD WORKING_DIRECTORY ${SOURCE}
    OUTPUT_VARIABLE answer RESULT_VARIABLE failed ERROR_QUIET)
  if(NOT failed AND answer MATCHES "^\n([0-9a-f]+)\n$")
    set(commit ${CMAKE_MATCH_1})
    execute_process(COMMAND ${git} status --porcelain -- CMakeLists.txt cmake sim WORKING_DIRECTORY ${SOURCE}
      OUTPUT_VARIABLE changes RESULT_VARIABLE failed ERROR_QUIET)
    if(failed OR NOT changes STREQUAL "")
      string(APPEND commit "+dirty")
    endif()
  endif()
endif()

file(CONFIGURE OUTPUT ${HEADER} @ONLY CONTENT [[
// Written by cmake/version.cmake at every build.
#pragma once

namespace specsim::build_info {

inline constexpr const char* version = "@VERSION@";
inline constexpr const char* commit = "@commit@";

}  // namespace specsim::build_info
]])
