# Writes SOURCE_FILE: the YAML files of configs/hardware and configs/models as text, so that the program knows them wherever it
# is installed.

set(text "// Written by cmake/presets.cmake from configs/hardware and configs/models.\n#include \"sim/cost/presets.h\"\n\n")
string(APPEND text "namespace specsim::cost {\n\nconst std::vector<Preset>& presets() {\n  static const std::vector<Preset> list = {\n")
foreach(kind hardware models)
  file(GLOB files ${SOURCE}/configs/${kind}/*.yaml)
  list(SORT files)
  foreach(file ${files})
    get_filename_component(name ${file} NAME_WLE)
    file(READ ${file} yaml)
    string(REGEX REPLACE "s$" "" kind_name ${kind})
    string(APPEND text "      {\"${kind_name}\", \"${name}\", \"configs/${kind}/${name}.yaml\", R\"yaml(${yaml})yaml\"},\n")
  endforeach()
endforeach()
string(APPEND text "  };\n  return list;\n}\n\n}  // namespace specsim::cost\n")
file(CONFIGURE OUTPUT ${SOURCE_FILE} @ONLY CONTENT "${text}")
