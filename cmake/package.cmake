# What is installed, and the packages: `cmake --build build --target packages`, which scripts/packages runs.
#   program      bin/specsim, linked with the system's libraries
#   portable     the same program, linked with no library outside the kernel
#   files        configs, plot scripts, the manual page, completions
#   development  the library with its one header, for find_package(specsim)
# The .deb has program and files, the .tar.xz portable and files.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME files)
install(TARGETS specsim RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/specsim)
install(PROGRAMS scripts/cluster.py DESTINATION ${CMAKE_INSTALL_DATADIR}/specsim/scripts)
install(DIRECTORY scripts/plots scripts/kernels DESTINATION ${CMAKE_INSTALL_DATADIR}/specsim/scripts USE_SOURCE_PERMISSIONS
        FILES_MATCHING PATTERN "*.py" PATTERN __pycache__ EXCLUDE)
install(FILES README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)

# The manual page and the completions are what the program prints.
if(NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR)
  set(help_folder ${PROJECT_BINARY_DIR}/help)
  set(help_files ${help_folder}/specsim.1.gz ${help_folder}/specsim.bash ${help_folder}/_specsim ${help_folder}/specsim.fish)
  add_custom_command(OUTPUT ${help_files}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${help_folder}
    COMMAND specsim man > ${help_folder}/specsim.1
    COMMAND gzip -9nf ${help_folder}/specsim.1
    COMMAND specsim completion bash > ${help_folder}/specsim.bash
    COMMAND specsim completion zsh > ${help_folder}/_specsim
    COMMAND specsim completion fish > ${help_folder}/specsim.fish
    DEPENDS specsim
    COMMENT "Writing the manual page and the completions"
    VERBATIM)
  add_custom_target(specsim_help ALL DEPENDS ${help_files})
  install(FILES ${help_folder}/specsim.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES ${help_folder}/specsim.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME specsim)
  install(FILES ${help_folder}/_specsim DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
  install(FILES ${help_folder}/specsim.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/specsim)
set_target_properties(specsim_core PROPERTIES EXPORT_NAME specsim OUTPUT_NAME specsim)
target_include_directories(specsim_core INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(specsim_core INTERFACE cxx_std_20)
install(TARGETS specsim_core EXPORT specsimTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(FILES sim/doors/api/specsim.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/specsim COMPONENT development)
install(EXPORT specsimTargets NAMESPACE specsim:: DESTINATION ${package_folder} COMPONENT development)
configure_package_config_file(cmake/specsimConfig.cmake.in ${PROJECT_BINARY_DIR}/specsimConfig.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/specsimConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/specsimConfig.cmake ${PROJECT_BINARY_DIR}/specsimConfigVersion.cmake
  DESTINATION ${package_folder} COMPONENT development)

# ---- the portable program: the same objects, linked statically ----------------------------------------------------------------

# Debian has no static fmt, highway and sentencepiece: scripts/packages builds them from Debian's sources.
set(SPECSIM_STATIC_LIBRARIES "" CACHE PATH "Prefix of static libraries, for the target specsim_portable")
set(generators DEB)
if(SPECSIM_STATIC_LIBRARIES)
  if(CMAKE_CUDA_COMPILER_LOADED)
    message(FATAL_ERROR "SPECSIM_STATIC_LIBRARIES is set and CUDA is on, allowed: -DSPECSIM_CUDA=OFF for a portable program")
  endif()
  set(static_names fmt hwy yaml-cpp boost_program_options lzma)
  if(SPECSIM_LAB)
    list(PREPEND static_names sentencepiece utf8proc)
  endif()
  set(static_files "")
  foreach(name ${static_names})
    find_library(SPECSIM_STATIC_${name} lib${name}.a HINTS ${SPECSIM_STATIC_LIBRARIES}/lib REQUIRED)
    mark_as_advanced(SPECSIM_STATIC_${name})
    list(APPEND static_files ${SPECSIM_STATIC_${name}})
  endforeach()
  add_executable(specsim_portable EXCLUDE_FROM_ALL $<TARGET_OBJECTS:specsim_cli>)
  set_target_properties(specsim_portable PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME specsim RUNTIME_OUTPUT_DIRECTORY portable)
  target_link_options(specsim_portable PRIVATE -static-pie)
  if(SPECSIM_LAB)
    target_link_libraries(specsim_portable PRIVATE $<TARGET_FILE:specsim_lab>)
    add_dependencies(specsim_portable specsim_lab)
  endif()
  target_link_libraries(specsim_portable PRIVATE $<TARGET_FILE:specsim_core> ${static_files})
  add_dependencies(specsim_portable specsim_core)
  install(TARGETS specsim_portable RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT portable EXCLUDE_FROM_ALL)
  install(DIRECTORY ${SPECSIM_STATIC_LIBRARIES}/licences DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT portable EXCLUDE_FROM_ALL)
  list(APPEND generators TXZ)
endif()

# ---- packages -----------------------------------------------------------------------------------------------------------------

set(CPACK_GENERATOR ${generators})
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGE_NAME specsim)
set(CPACK_PACKAGE_CONTACT "The specsim authors <authors@specsim.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_PACKAGE_DESCRIPTION_FILE ${PROJECT_SOURCE_DIR}/cmake/description.txt)
set(CPACK_PACKAGE_FILE_NAME specsim-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/package_kind.cmake)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3, python3-matplotlib, python3-numpy, python3-yaml")  # of specsim plot and specsim cluster
include(CPack)
add_custom_target(packages COMMAND ${CMAKE_CPACK_COMMAND} USES_TERMINAL COMMENT "Packing" VERBATIM)
add_dependencies(packages specsim specsim_core)
foreach(target specsim_help specsim_portable)
  if(TARGET ${target})
    add_dependencies(packages ${target})
  endif()
endforeach()
