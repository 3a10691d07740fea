# brant_python_module: the extension module of the package python/brant, and the package in the build tree.
include_guard(GLOBAL)

set(BRANT_WITH_PYTHON AUTO CACHE STRING "Build the package for Python: AUTO (where its headers and nanobind are), ON (fail without them), OFF")
set_property(CACHE BRANT_WITH_PYTHON PROPERTY STRINGS AUTO ON OFF)

# The interpreter of .venv unless another one is asked for (a wheel is built for the one that builds it). A macro, since
# nanobind looks at what find_package(Python) has set.
macro(_brant_find_nanobind)
  if(NOT Python_EXECUTABLE AND EXISTS ${BRANT_VENV}/bin/python)
    set(Python_EXECUTABLE ${BRANT_VENV}/bin/python)
  endif()
  find_package(Python 3.10 QUIET COMPONENTS Interpreter)
  # A Python without its headers (Debian without python3-dev): make setup has unpacked them.
  set(brant_unpacked_python ${BRANT_DEPS}/include/python${Python_VERSION_MAJOR}.${Python_VERSION_MINOR})
  if(Python_Interpreter_FOUND AND NOT EXISTS "${Python_INCLUDE_DIR}/Python.h" AND EXISTS ${brant_unpacked_python}/Python.h)
    set(Python_INCLUDE_DIR ${brant_unpacked_python})
  endif()
  if(Python_Interpreter_FOUND)
    find_package(Python 3.10 QUIET COMPONENTS Interpreter Development.Module)
  endif()
  if(Python_INCLUDE_DIR STREQUAL brant_unpacked_python)
    list(APPEND Python_INCLUDE_DIRS ${BRANT_DEPS}/include)  # pyconfig.h of the machine type
  endif()
  if(Python_Development.Module_FOUND)
    file(GLOB brant_python_folders ${BRANT_VENV}/lib/python3*/site-packages)
    find_package(nanobind CONFIG QUIET HINTS ${brant_python_folders} PATH_SUFFIXES nanobind/cmake)
  endif()
endmacro()

# brant_python_module(NAME _brant SOURCES a.cc ...)
#   An extension module that is linked with libbrant.so. It lands, with links to the sources in python/brant, in
#   <build>/python/brant, which is what PYTHONPATH=<build>/python imports.
macro(brant_python_module)
  if(NOT BRANT_WITH_PYTHON STREQUAL "OFF" AND NOT BRANT_SANITIZE)
    _brant_find_nanobind()
    if(nanobind_FOUND)
      _brant_declare_python_module(${ARGN})
    elseif(BRANT_WITH_PYTHON STREQUAL "ON")
      message(FATAL_ERROR "brant: BRANT_WITH_PYTHON=ON, but the headers of Python 3.10 or newer, or nanobind, were not found. Cure: "
                          "run 'make setup', or install python3-dev and nanobind.")
    else()
      message(STATUS "brant: no headers of Python, or no nanobind: the package for Python is not built")
    endif()
  endif()
endmacro()

# brant_python_test_library(NAME cpp_chares SOURCES a.cc ...)
#   A shared library for tests of the package to load, in <build>/python_test: where the package is built.
function(brant_python_test_library)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "SOURCES")
  _brant_check_arguments(brant_python_test_library "${arg_NAME}" "${arg_UNPARSED_ARGUMENTS}")
  get_property(module GLOBAL PROPERTY BRANT_PYTHON_MODULE)
  if(NOT module)
    return()
  endif()
  add_library(${arg_NAME} SHARED ${arg_SOURCES})
  target_include_directories(${arg_NAME} PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${arg_NAME} PRIVATE brant_flags brant_shared)
  set_target_properties(${arg_NAME} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/python_test)
  add_dependencies(programs ${arg_NAME})
endfunction()

function(_brant_declare_python_module)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "SOURCES")
  _brant_check_arguments(brant_python_module "${arg_NAME}" "${arg_UNPARSED_ARGUMENTS}")
  nanobind_add_module(${arg_NAME} NB_STATIC NOMINSIZE NOSTRIP NB_SUPPRESS_WARNINGS ${arg_SOURCES})
  target_include_directories(${arg_NAME} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${arg_NAME} PRIVATE brant_flags brant_shared)
  set(package ${PROJECT_BINARY_DIR}/python/brant)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/python/brant/*.py ${PROJECT_SOURCE_DIR}/python/brant/*.pyi
       ${PROJECT_SOURCE_DIR}/python/brant/py.typed)
  file(MAKE_DIRECTORY ${package})
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME)
    file(CREATE_LINK ${source} ${package}/${name} SYMBOLIC)
  endforeach()
  # What brant.torch compiles against the PyTorch that it finds, and brant.include_dir; cmake/install.cmake puts the same
  # into the wheel.
  file(MAKE_DIRECTORY ${package}/sources/bindings)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/src/bindings/torch ${package}/sources/bindings/torch SYMBOLIC)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/include ${package}/include SYMBOLIC)
  set_target_properties(${arg_NAME} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${package} INSTALL_RPATH "$ORIGIN/lib")
  add_dependencies(programs ${arg_NAME})
  set_property(GLOBAL PROPERTY BRANT_PYTHON_MODULE ${arg_NAME})
endfunction()
