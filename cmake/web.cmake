# The core for the explorer's page: emcmake cmake -S . -B build/web/core -DBUILD_TESTING=OFF -DSPECSIM_LAB=OFF; scripts/web does that.
# The same sources and targets as everywhere, less two files, with the door sim/doors/web: core.mjs and core.wasm.

set(SPECSIM_LAB OFF)
find_program(SPECSIM_PYTHON python3 REQUIRED PATHS /usr/bin NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)

# Headers of other people's libraries, one by one from the host: all of /usr/include would bring the host's C library.
set(page_headers ${PROJECT_BINARY_DIR}/include)
file(MAKE_DIRECTORY ${page_headers})
foreach(header fmt/format.h boost/version.hpp nlohmann/json.hpp eigen3/Eigen/Dense)
  string(REGEX REPLACE "/.*" "" library ${header})
  find_path(SPECSIM_HEADERS_${library} ${header} PATHS /usr/include /usr/local/include NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH REQUIRED)
  file(CREATE_LINK ${SPECSIM_HEADERS_${library}}/${library} ${page_headers}/${library} SYMBOLIC)
endforeach()
include_directories(SYSTEM ${page_headers} ${page_headers}/eigen3)
add_compile_definitions(FMT_HEADER_ONLY)
add_compile_options(-fwasm-exceptions)

# sim/doors/web/browser.cpp has what stands in for these: JSON instead of YAML, and how much memory a page may take.
set(not_in_a_page ${PROJECT_SOURCE_DIR}/sim/foundation/config/yaml.cpp ${PROJECT_SOURCE_DIR}/sim/foundation/base/memory.cpp)
# No question of the page's leads to these.
file(GLOB not_asked CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/sim/doors/api/*.cpp ${PROJECT_SOURCE_DIR}/sim/experiments/fit/*.cpp)
list(APPEND not_in_a_page ${not_asked})

function(specsim_page_core)
  add_executable(specsim_page)
  specsim_sources(specsim_page ${web_sources})
  target_compile_options(specsim_page PRIVATE ${cold_level})
  target_link_libraries(specsim_page PRIVATE specsim_core)
  target_link_options(specsim_page PRIVATE -Oz -fwasm-exceptions -sMODULARIZE=1 -sEXPORT_ES6=1 -sEXPORT_NAME=createCore -sUSE_ES6_IMPORT_META=0
    -sENVIRONMENT=web,worker -sALLOW_MEMORY_GROWTH=1 -sFILESYSTEM=0 -sTOTAL_STACK=1048576 -sEXPORTED_RUNTIME_METHODS=ccall --no-entry)
  set_target_properties(specsim_page PROPERTIES OUTPUT_NAME core SUFFIX .mjs)
endfunction()
