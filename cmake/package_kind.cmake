# Read by cpack before each package: which components it has.
if(CPACK_GENERATOR STREQUAL "TXZ")
  set(CPACK_COMPONENTS_ALL portable files)
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)  # in a .deb, it would move the files from /usr
else()
  set(CPACK_COMPONENTS_ALL program files)
endif()
