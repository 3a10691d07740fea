# `cmake --install`: headers, libraries, programs, and a package for find_package(brant) with the target brant::brant.
include_guard(GLOBAL)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(brant_libraries GLOBAL PROPERTY BRANT_LIBRARIES)
get_property(brant_executables GLOBAL PROPERTY BRANT_EXECUTABLES)

# Everything a program may use, in one target.
add_library(brant_all INTERFACE)
add_library(brant::brant ALIAS brant_all)
set_target_properties(brant_all PROPERTIES EXPORT_NAME brant)
foreach(part IN LISTS brant_libraries)
  if(NOT part MATCHES "^brant_(test|app|bench)_")
    target_link_libraries(brant_all INTERFACE ${part})
    list(APPEND brant_exported ${part})
  endif()
endforeach()
target_link_libraries(brant_all INTERFACE Threads::Threads ${CMAKE_DL_LIBS})

install(TARGETS brant_all ${brant_exported} EXPORT brant_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(brant_executables)
  install(TARGETS ${brant_executables} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(EXISTS ${PROJECT_SOURCE_DIR}/include)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endif()

set(brant_package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/brant)
install(EXPORT brant_targets NAMESPACE brant:: DESTINATION ${brant_package_folder} FILE brant_targets.cmake)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/brant-config.cmake.in ${PROJECT_BINARY_DIR}/brant-config.cmake
                              INSTALL_DESTINATION ${brant_package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/brant-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/brant-config.cmake ${PROJECT_BINARY_DIR}/brant-config-version.cmake
        DESTINATION ${brant_package_folder})

# What tools/bundle.py packs: the programs, and the tests as "name<TAB>ranks<TAB>seconds<TAB>labels".
get_property(brant_tests GLOBAL PROPERTY BRANT_TESTS)
list(JOIN brant_executables "\n" brant_executables_text)
list(JOIN brant_tests "\n" brant_tests_text)
file(WRITE ${PROJECT_BINARY_DIR}/programs.txt "${brant_executables_text}\n")
file(WRITE ${PROJECT_BINARY_DIR}/tests.tsv "${brant_tests_text}\n")
