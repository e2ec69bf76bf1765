# Writes HEADER with VERSION and the commit of SOURCE, and leaves it untouched when nothing changed.
# The commit ends in "+dirty" when anything the program is built from differs from it: fresh results or notes in the tree do not
# make a build dirty. Outside git (an archive, an image that is built without .git) a checksum of the sources is written in its
# place, so that merge and --resume still tell programs of different sources apart.

set(commit "")
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

if(NOT commit)
  file(GLOB_RECURSE sources RELATIVE ${SOURCE} ${SOURCE}/sim/* ${SOURCE}/cmake/*)
  list(APPEND sources CMakeLists.txt)
  list(SORT sources)
  set(sums "")
  foreach(source ${sources})
    if(EXISTS ${SOURCE}/${source})
      file(SHA256 ${SOURCE}/${source} sum)
      string(APPEND sums "${source} ${sum}\n")
    endif()
  endforeach()
  string(SHA256 sum "${sums}")
  string(SUBSTRING ${sum} 0 40 sum)
  set(commit "sources-${sum}")
endif()

file(CONFIGURE OUTPUT ${HEADER} @ONLY CONTENT [[
// Written by cmake/version.cmake at every build.
#pragma once

namespace specsim::build_info {

inline constexpr const char* version = "@VERSION@";
inline constexpr const char* commit = "@commit@";

}  // namespace specsim::build_info
]])
