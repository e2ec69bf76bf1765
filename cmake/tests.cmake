# One executable and one CTest entry per folder of tests/, labelled with the folder's name; scripts are labelled "script".
# Test cases tagged [.slow] run with `ctest -C slow`, timings with `ctest -C perf`; a plain `ctest` runs neither.

enable_testing()
find_package(Catch2 2 REQUIRED)
find_package(Boost 1.74 REQUIRED COMPONENTS context)  # threads of a GPU's block, on the host

if(SPECSIM_SANITIZE)
  set(time_factor 4)
else()
  set(time_factor 1)
endif()
math(EXPR test_timeout "900 * ${time_factor}")
math(EXPR slow_timeout "3600 * ${time_factor}")

# Every test runs at the root of the repository and finds the program in the environment.
set(test_environment UBSAN_OPTIONS=print_stacktrace=1 "SPECSIM_SANITIZE=${SPECSIM_SANITIZE}")
if(TARGET specsim)
  list(APPEND test_environment SPECSIM=$<TARGET_FILE:specsim>)
endif()
function(specsim_test_properties name label timeout)
  set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT ${timeout}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} ENVIRONMENT "${test_environment}")
endfunction()

# Catch's main sits alone in an archive: a program with a main of its own does not pull it in. Where it comes compiled, as on Debian, 15
# seconds are saved; a sanitizer sees what it has instrumented alone.
if(TARGET Catch2::Catch2WithMain AND NOT SPECSIM_SANITIZE)
  add_library(specsim_tests_main ALIAS Catch2::Catch2WithMain)
else()
  add_library(specsim_tests_main STATIC ${PROJECT_SOURCE_DIR}/tests/support/main.cpp)
  target_link_libraries(specsim_tests_main PUBLIC Catch2::Catch2)
endif()
file(GLOB support_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/support/*.cpp)
list(REMOVE_ITEM support_sources ${PROJECT_SOURCE_DIR}/tests/support/main.cpp)
add_library(specsim_tests_support OBJECT ${support_sources})
target_link_libraries(specsim_tests_support PUBLIC specsim_core Catch2::Catch2)
# An exception ends its test case, and names the assertion before it, without a handler compiled for every assertion.
target_compile_definitions(specsim_tests_support PUBLIC CATCH_CONFIG_FAST_COMPILE)
# Tests spend their time in the library: half the optimisation and one reading of Catch and the standard library halve their build.
function(specsim_quick_to_build target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:${test_level}> $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds$<SEMICOLON>-Wno-stringop-overflow>)  # false alarms at -O1
endfunction()
specsim_quick_to_build(specsim_tests_support)
target_precompile_headers(specsim_tests_support PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/precompiled.h)

function(specsim_test_executable target)
  add_executable(${target} ${ARGN})
  target_link_libraries(${target} PRIVATE specsim_tests_main specsim_lab specsim_tests_support)
endfunction()

# The explorer's questions: scripts/web compiles them for the browser, and here they are compiled for their tests alone.
add_library(specsim_web OBJECT)
specsim_sources(specsim_web ${web_sources})
target_compile_options(specsim_web PRIVATE $<$<CONFIG:Release>:${cold_level}>)
set_target_properties(specsim_web PROPERTIES POSITION_INDEPENDENT_CODE ON)
target_precompile_headers(specsim_web REUSE_FROM specsim_cold)
target_link_libraries(specsim_web PUBLIC specsim_core)

# Under a sanitizer nothing is asked that only many rounds can answer: the plain build has asked it, and one round of a kind shows what a
# sanitizer looks for. The thread sanitizer is left the programs that start threads.
set(folders unit exact stat engine placement serve config golden llm cuda parts)
set(cases "")
if(SPECSIM_SANITIZE)
  list(REMOVE_ITEM folders stat)
  set(cases "~[stat]~[.]")
endif()
if(SPECSIM_SANITIZE STREQUAL "thread")
  list(REMOVE_ITEM folders exact cuda)
endif()
foreach(folder ${folders})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${folder}/*.cpp)
  if(sources)
    specsim_test_executable(specsim_tests_${folder} ${sources})
    if(SPECSIM_UNITY)  # each file has a namespace of its own
      set_target_properties(specsim_tests_${folder} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 10)
    endif()
    specsim_quick_to_build(specsim_tests_${folder})
    if(SPECSIM_SANITIZE AND folder STREQUAL "cuda")  # a GPU's threads in turn, by code of the tests: the one folder that -O0 stops
      target_compile_options(specsim_tests_cuda PRIVATE -O1)
      target_precompile_headers(specsim_tests_cuda PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/precompiled.h)
    else()
      target_precompile_headers(specsim_tests_${folder} REUSE_FROM specsim_tests_support)
    endif()
    add_test(NAME ${folder} COMMAND specsim_tests_${folder} ${cases})
    specsim_test_properties(${folder} ${folder} ${test_timeout})
    add_test(NAME ${folder}_slow CONFIGURATIONS slow COMMAND specsim_tests_${folder} "[slow]")
    specsim_test_properties(${folder}_slow slow ${slow_timeout})
  endif()
endforeach()

target_link_libraries(specsim_tests_unit PRIVATE specsim_web)
if(TARGET specsim_tests_cuda)
  target_link_libraries(specsim_tests_cuda PRIVATE Boost::context)
endif()
# The commands, and main under another name: what a user types, with parts that the test registers.
target_sources(specsim_tests_parts PRIVATE $<FILTER:$<TARGET_OBJECTS:specsim_cli>,EXCLUDE,/main\\.cpp>)
set_source_files_properties(${PROJECT_SOURCE_DIR}/tests/parts/program.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
target_link_libraries(specsim_tests_parts PRIVATE ${cli_libraries})
# The program with the host's twin of a GPU in the GPU's place: for tests of what it does with one.
add_executable(specsim_twin ${PROJECT_SOURCE_DIR}/tests/cuda/twins.cpp ${PROJECT_SOURCE_DIR}/tests/cuda/twin/open_gpu.cpp)
target_link_libraries(specsim_twin PRIVATE specsim_cli Boost::context)

file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/perf/*.cpp)
if(sources AND NOT SPECSIM_SANITIZE)
  specsim_test_executable(specsim_perf ${sources})
  # The yardsticks that speed is measured against are as fast as the compiler makes them on this machine.
  include(CheckCXXCompilerFlag)
  check_cxx_compiler_flag(-march=native SPECSIM_HAS_MARCH_NATIVE)
  set(yardstick_options -O3)
  if(SPECSIM_HAS_MARCH_NATIVE)
    list(APPEND yardstick_options -march=native)
  endif()
  set_source_files_properties(${PROJECT_SOURCE_DIR}/tests/perf/sketch.cpp PROPERTIES COMPILE_OPTIONS "${yardstick_options}")
  add_test(NAME perf CONFIGURATIONS perf COMMAND specsim_perf)
  specsim_test_properties(perf perf ${slow_timeout})
  set_tests_properties(perf PROPERTIES RUN_SERIAL ON)
endif()

# Readers within one process, driven by scripts/fuzz: led by coverage where libFuzzer is there.
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/*.cpp)
if(SPECSIM_FUZZ)
  list(REMOVE_ITEM sources ${PROJECT_SOURCE_DIR}/tests/fuzz/blind.cpp)
endif()
add_executable(specsim_fuzz ${sources} $<FILTER:$<TARGET_OBJECTS:specsim_cli>,EXCLUDE,/main\\.cpp>)
target_link_libraries(specsim_fuzz PRIVATE ${cli_libraries})
specsim_quick_to_build(specsim_fuzz)
set_target_properties(specsim_fuzz PROPERTIES UNITY_BUILD ${SPECSIM_UNITY} UNITY_BUILD_BATCH_SIZE 0)
if(SPECSIM_FUZZ)
  target_link_options(specsim_fuzz PRIVATE -fsanitize=fuzzer)
endif()

# What scripts of tests/cuda, tests/engine, tests/placement and tests/perf take from the test programs: hidden cases of theirs, such as [.timeline].
foreach(target specsim_tests_unit specsim_tests_engine specsim_tests_placement specsim_perf specsim_twin specsim_fuzz)
  if(TARGET ${target})
    string(TOUPPER ${target} variable)
    list(APPEND test_environment ${variable}=$<TARGET_FILE:${target}>)
  endif()
endforeach()

# Debian's own Python first: matplotlib and numpy are its packages, and another python3 may come first on PATH.
find_program(SPECSIM_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(SPECSIM_PYTHON python3 REQUIRED)
mark_as_advanced(SPECSIM_PYTHON)

add_test(NAME includes COMMAND ${SPECSIM_PYTHON} scripts/check_includes.py)
specsim_test_properties(includes script ${test_timeout})
add_test(NAME includes_self_test COMMAND ${SPECSIM_PYTHON} scripts/check_includes.py --self-test)
specsim_test_properties(includes_self_test script ${test_timeout})

if(TARGET specsim)
  # The explorer in a browser: `ctest -C web`, or scripts/web --test; skipped where emscripten, node or Chromium is missing.
  add_test(NAME web CONFIGURATIONS web COMMAND ${SPECSIM_PYTHON} scripts/web --no-setup --test)
  specsim_test_properties(web web ${slow_timeout})
  set_tests_properties(web PROPERTIES SKIP_RETURN_CODE 77)
  add_test(NAME fuzz_slow CONFIGURATIONS slow COMMAND ${SPECSIM_PYTHON} scripts/fuzz --minutes 2)
  specsim_test_properties(fuzz_slow slow ${slow_timeout})
  file(GLOB scripts CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/tests/*/*_test.sh
       ${PROJECT_SOURCE_DIR}/tests/*/*_test.py)
  if(SPECSIM_PYTHON_PACKAGE)
    list(APPEND test_environment PYTHONPATH=${PROJECT_BINARY_DIR}/python)
  else()
    list(FILTER scripts EXCLUDE REGEX "^tests/python/")
  endif()
  if(SPECSIM_SANITIZE)
    # These compare figures with committed files, theory or NumPy, for minutes and by commands that other tests run too; the wheel is
    # another build.
    list(FILTER scripts EXCLUDE REGEX "^tests/(python/wheel|cuda/peers|golden/(compare_order|docs|energy|pictures|questions|real_methods|results|scoreboard)|serve/oracles)_test")
  endif()
  if(SPECSIM_SANITIZE STREQUAL "thread")  # one thread for minutes
    list(FILTER scripts EXCLUDE REGEX "^tests/(cuda/.*|golden/reference|serve/executed)_test")
  endif()
  foreach(script ${scripts})
    string(REGEX REPLACE "^tests/(.*)_test\\.[a-z]+$" "\\1" name ${script})
    if(script MATCHES "\\.py$")
      set(interpreter ${SPECSIM_PYTHON})
    else()
      set(interpreter bash)
    endif()
    if(script MATCHES "^tests/perf/")
      add_test(NAME ${name} CONFIGURATIONS perf COMMAND ${interpreter} ${script})
      specsim_test_properties(${name} perf ${slow_timeout})
      set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
    elseif(script MATCHES "^tests/slow/")
      add_test(NAME ${name} CONFIGURATIONS slow COMMAND ${interpreter} ${script})
      specsim_test_properties(${name} slow ${slow_timeout})
      set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
    else()
      add_test(NAME ${name} COMMAND ${interpreter} ${script})
      specsim_test_properties(${name} script ${test_timeout})
    endif()
    if(name STREQUAL "python/wheel")
      set_tests_properties(${name} PROPERTIES TIMEOUT ${slow_timeout})  # it compiles
    endif()
  endforeach()
endif()
