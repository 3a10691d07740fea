# `cmake --install`: headers, libraries, programs, and two ways to find them: a package for find_package(brant) with the
# targets brant::brant (static) and brant::shared (libbrant.so), and brant.pc for pkg-config. What is installed names no
# folder, and may be moved.
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
  if(NOT part MATCHES "^brant_(test|app|bench)_|^brant_wire_faulty$")
    target_link_libraries(brant_all INTERFACE ${part})
    list(APPEND brant_exported ${part})
  endif()
endforeach()
target_link_libraries(brant_all INTERFACE Threads::Threads ${CMAKE_DL_LIBS})

# The UCX that this tree was built with comes along: brant's programs look for it beside themselves, and those of users,
# which contain brant, find it by their run path when nothing nearer is there (the system's own would be asked next).
set(brant_ucx_folder lib/libucx/lib)
if(EXISTS ${brant_ucx_root}/lib/libucp.so.0 AND NOT brant_ucx_root STREQUAL "/usr")
  foreach(name IN ITEMS libucp libuct libucs libucm ucx/libuct_cma ucx/libuct_cuda ucx/libucm_cuda)
    if(EXISTS ${brant_ucx_root}/lib/${name}.so.0)
      get_filename_component(folder ${brant_ucx_folder}/${name} DIRECTORY)
      get_filename_component(file ${name}.so.0 NAME)
      file(REAL_PATH ${brant_ucx_root}/lib/${name}.so.0 real_file)
      install(FILES ${real_file} DESTINATION ${folder} RENAME ${file})
    endif()
  endforeach()
  # What UCX's CUDA modules need, where their run path looks for it.
  get_filename_component(brant_site_folder ${brant_ucx_root} DIRECTORY)
  file(GLOB brant_ucx_extras RELATIVE ${brant_site_folder} ${brant_site_folder}/libucx_cu*.libs/*.so*)
  foreach(extra IN LISTS brant_ucx_extras)
    get_filename_component(folder ${extra} DIRECTORY)
    install(FILES ${brant_site_folder}/${extra} DESTINATION lib/${folder})
  endforeach()
  target_link_options(brant_all INTERFACE "$<INSTALL_INTERFACE:-Wl,-rpath,$<INSTALL_PREFIX>/${brant_ucx_folder}>")
  set(brant_pc_run_path " -Wl,-rpath,\${prefix}/${brant_ucx_folder}")
  file(RELATIVE_PATH brant_ucx_from_lib /${CMAKE_INSTALL_LIBDIR} /${brant_ucx_folder})
endif()

# libbrant.so: all of it in one library, which exports what public headers declare (BRANT_API) and nothing else. Several
# libraries of one process that use brant (a plug-in, Python, MPI) share one runtime with it.
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/libbrant.cc CONTENT "// All of libbrant.so comes from archives.\n")
add_library(brant_shared SHARED ${PROJECT_BINARY_DIR}/libbrant.cc)
add_library(brant::shared ALIAS brant_shared)
# As files: CMake before 3.29 names the archives of targets once more for those who depend on them, and whole archives
# must come once.
foreach(part IN LISTS brant_exported)
  get_target_property(type ${part} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    list(APPEND brant_archives ${part})
    list(APPEND brant_archive_files $<TARGET_FILE:${part}>)
  endif()
endforeach()
target_link_libraries(
  brant_shared PRIVATE -Wl,--whole-archive ${brant_archive_files} -Wl,--no-whole-archive Threads::Threads ${CMAKE_DL_LIBS})
target_include_directories(brant_shared INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
target_compile_features(brant_shared INTERFACE cxx_std_20)
# The standard library's own templates are visible whatever the compiler is told: the version script hides them.
target_link_options(brant_shared PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/libbrant.map -Wl,-z,defs)
set_target_properties(
  brant_shared PROPERTIES OUTPUT_NAME brant EXPORT_NAME shared VERSION ${PROJECT_VERSION}
                          SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
                          LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/libbrant.map INSTALL_RPATH "$ORIGIN/${brant_ucx_from_lib}")
if(BRANT_SANITIZE)  # a tree for tests: what they link is static
  set_target_properties(brant_shared PROPERTIES EXCLUDE_FROM_ALL ON)
else()
  add_dependencies(programs brant_shared)
  set(brant_installed_shared brant_shared)
endif()

install(TARGETS brant_all ${brant_installed_shared} ${brant_exported} EXPORT brant_targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(brant_executables)
  install(TARGETS ${brant_executables} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(EXISTS ${PROJECT_SOURCE_DIR}/include)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endif()

# What programs of MPI need beside what models/mpi installs.
if(brant_installed_shared)
  install(TARGETS brant_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT mpi NAMELINK_SKIP EXCLUDE_FROM_ALL)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT mpi EXCLUDE_FROM_ALL)
endif()

set(brant_package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/brant)
# The wheel (pyproject.toml) takes the component `python`: the module with libbrant.so beside it, under the one name that
# is looked for, two folders below the libucx wheel; and the command.
if(NOT SKBUILD_SCRIPTS_DIR)
  set(SKBUILD_SCRIPTS_DIR ${CMAKE_INSTALL_BINDIR})
endif()
get_property(brant_python_module GLOBAL PROPERTY BRANT_PYTHON_MODULE)
if(brant_python_module)
  set(brant_soname libbrant.so.${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  install(TARGETS ${brant_python_module} LIBRARY DESTINATION brant COMPONENT python EXCLUDE_FROM_ALL)
  install(TARGETS brant RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python EXCLUDE_FROM_ALL)
  install(FILES $<TARGET_FILE:brant_shared> DESTINATION brant/lib RENAME ${brant_soname} COMPONENT python EXCLUDE_FROM_ALL)
  install(CODE "execute_process(COMMAND ${CMAKE_STRIP} --strip-debug \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/brant/lib/${brant_soname})"
          COMPONENT python EXCLUDE_FROM_ALL)
  # What brant.torch compiles against the PyTorch that it finds; kernels include the headers too (brant.include_dir).
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION brant/include COMPONENT python EXCLUDE_FROM_ALL)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/bindings/torch/ DESTINATION brant/sources/bindings/torch COMPONENT python EXCLUDE_FROM_ALL)
endif()

install(EXPORT brant_targets NAMESPACE brant:: DESTINATION ${brant_package_folder} FILE brant_targets.cmake)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/brant-config.cmake.in ${PROJECT_BINARY_DIR}/brant-config.cmake
                              INSTALL_DESTINATION ${brant_package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/brant-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/brant-config.cmake ${PROJECT_BINARY_DIR}/brant-config-version.cmake
        DESTINATION ${brant_package_folder})

# The same for other build systems. -lbrant is libbrant.so; where the linker is told to take static libraries it is
# libbrant.a, a text that names them all. They need each other in circles, hence the group.
list(TRANSFORM brant_archives PREPEND "-l" OUTPUT_VARIABLE brant_archive_flags)
list(JOIN brant_archive_flags " " brant_archive_flags)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/libbrant.a CONTENT "GROUP ( ${brant_archive_flags} )\n")
install(FILES ${PROJECT_BINARY_DIR}/libbrant.a DESTINATION ${CMAKE_INSTALL_LIBDIR})
set(brant_pc_folder ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH brant_pc_up /${brant_pc_folder} /)
string(REGEX REPLACE "/$" "" brant_pc_up ${brant_pc_up})
configure_file(${PROJECT_SOURCE_DIR}/cmake/brant.pc.in ${PROJECT_BINARY_DIR}/brant.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/brant.pc DESTINATION ${brant_pc_folder})

# What tools/bundle.py packs: the programs, and the tests as "name<TAB>program<TAB>ranks<TAB>seconds<TAB>labels<TAB>environment".
get_property(brant_tests GLOBAL PROPERTY BRANT_TESTS)
list(JOIN brant_executables "\n" brant_executables_text)
list(JOIN brant_tests "\n" brant_tests_text)
file(WRITE ${PROJECT_BINARY_DIR}/programs.txt "${brant_executables_text}\n")
file(WRITE ${PROJECT_BINARY_DIR}/tests.tsv "${brant_tests_text}\n")
