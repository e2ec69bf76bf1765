# Read by cpack before each package: which components it has.
if(CPACK_GENERATOR STREQUAL "TXZ")
  set(CPACK_COMPONENTS_ALL portable files)
else()
  set(CPACK_COMPONENTS_ALL program files)
endif()
