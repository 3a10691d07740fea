# brant_library, brant_executable, brant_test: the only way our folders declare targets, so that flags, include
# folders, labels, time limits and install rules are the same everywhere.
include_guard(GLOBAL)

# Everything but the tests: what users run and link with.
add_custom_target(programs)

# Refuses misspelt keywords, which CMake would otherwise swallow silently.
function(_brant_check_arguments function name unparsed)
  if(NOT name)
    message(FATAL_ERROR "${function}: NAME is missing (in ${CMAKE_CURRENT_SOURCE_DIR})")
  endif()
  if(unparsed)
    message(FATAL_ERROR "${function}(${name}): unknown arguments: ${unparsed}")
  endif()
endfunction()

# Links `deps` to `target`. Objects of brant_fatbin become part of the target itself. Header packages are needed only
# to build brant (its public headers use none), so they do not enter the exported package.
function(_brant_link target scope)
  foreach(dep IN LISTS ARGN)
    if(dep MATCHES "^fmt::")
      set(dep brant_fmt)  # compiled once (dependencies.cmake)
    endif()
    set(type "")
    if(TARGET ${dep})
      get_target_property(type ${dep} TYPE)
    endif()
    if(type STREQUAL "OBJECT_LIBRARY")
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:${dep}>)
    elseif(dep MATCHES "^(CLI11|nlohmann_json)::" OR dep MATCHES "^brant_(ucx|cuda)_headers$")
      target_link_libraries(${target} ${scope} $<BUILD_INTERFACE:${dep}>)
    else()
      target_link_libraries(${target} ${scope} ${dep})
    endif()
    if(dep MATCHES "^brant_")
      set_property(GLOBAL APPEND PROPERTY BRANT_DEP_EDGES "${target}=${dep}")
    endif()
  endforeach()
endfunction()

# Tests that are optimised less compile in two thirds of the time; what they test is optimised all the same. Not at all
# only with the sanitizer of addresses: that of threads slows down what is not optimised by more than is saved.
function(_brant_optimise_less target)
  if(BRANT_SANITIZE MATCHES address)
    target_compile_options(${target} PRIVATE -O0)
  elseif(BRANT_QUICK_COMPILE)
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

# Precompiled headers, with BRANT_QUICK_COMPILE: one set for the libraries and one for the tests, since the compiler
# takes a set only with the flags it was made with. Outside headers only: with one of ours among them, every file would
# be compiled again whenever it changes. Neither CLI11 nor nlohmann-json: each file pays for the code of the objects that
# a set defines, 10 s with CLI11 and 0.6 s with json under the sanitizers.
if(BRANT_QUICK_COMPILE)
  set(brant_precompiled <algorithm> <array> <atomic> <chrono> <cstring> <deque> <functional> <map> <memory>
                        <mutex> <optional> <span> <string> <string_view> <thread> <unordered_map> <utility> <vector> <fmt/format.h>)
  # Else ccache, where it preprocesses, would see the whole text of the headers. And g++ 12 warns of std::string's own
  # code (GCC bug 105329 and its kin) where it comes from a precompiled header; libraries of release keep these warnings.
  set(brant_precompiled_options -fpch-preprocess -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cc CONTENT "int main() {}\n")
  if(BRANT_QUICK_COMPILE STREQUAL "all")
    add_library(brant_precompiled_library STATIC EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/precompiled.cc)
    target_link_libraries(brant_precompiled_library PRIVATE brant_flags brant_fmt)
    target_compile_options(brant_precompiled_library PRIVATE ${brant_precompiled_options})
    target_precompile_headers(brant_precompiled_library PRIVATE ${brant_precompiled})
  endif()
  if(BRANT_BUILD_TESTS)
    add_executable(brant_precompiled_test EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/precompiled.cc)
    target_link_libraries(brant_precompiled_test PRIVATE brant_flags brant_fmt GTest::gtest)
    _brant_optimise_less(brant_precompiled_test)
    target_compile_options(brant_precompiled_test PRIVATE ${brant_precompiled_options})
    target_precompile_headers(brant_precompiled_test PRIVATE ${brant_precompiled} <filesystem> <fstream> <gtest/gtest.h>)
  endif()
endif()

# Compiles `target` with the set of `for` (library or test), if there is one; the sources of a library some at a time.
function(_brant_compile_quickly target for)
  if(TARGET brant_precompiled_${for})
    target_precompile_headers(${target} REUSE_FROM brant_precompiled_${for})
    target_compile_options(${target} PRIVATE ${brant_precompiled_options})
  endif()
  if(for STREQUAL "library" AND BRANT_QUICK_COMPILE STREQUAL "all")
    # The warning is of anonymous namespaces in what the compiler takes for a header.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
endfunction()

# brant_library(NAME brant_x SOURCES a.cc ... [DEPS brant_y fmt::fmt-header-only ...])
#   A static library. Code writes #include "brant/status.h" for public headers (include/) and #include "port/wire.h"
#   for internal ones (src/). Without SOURCES the library is header-only. Also known as brant::x.
function(brant_library)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "SOURCES;DEPS")
  _brant_check_arguments(brant_library "${arg_NAME}" "${arg_UNPARSED_ARGUMENTS}")
  set(scope PUBLIC)
  if(arg_SOURCES)
    add_library(${arg_NAME} STATIC ${arg_SOURCES})
    target_link_libraries(${arg_NAME} PRIVATE $<BUILD_INTERFACE:brant_flags>)
    _brant_compile_quickly(${arg_NAME} library)
  else()
    add_library(${arg_NAME} INTERFACE)
    set(scope INTERFACE)
  endif()
  string(REGEX REPLACE "^brant_" "" short ${arg_NAME})
  add_library(brant::${short} ALIAS ${arg_NAME})
  set_target_properties(${arg_NAME} PROPERTIES EXPORT_NAME ${short})
  target_compile_features(${arg_NAME} ${scope} cxx_std_20)
  target_include_directories(
    ${arg_NAME} ${scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
                         $<INSTALL_INTERFACE:include>)
  _brant_link(${arg_NAME} ${scope} ${arg_DEPS})
  set_property(GLOBAL APPEND PROPERTY BRANT_LIBRARIES ${arg_NAME})
  if(NOT arg_NAME MATCHES "^brant_test_")
    add_dependencies(programs ${arg_NAME})
  endif()
endfunction()

# Common part of programs and tests.
function(_brant_program name sources deps)
  add_executable(${name} ${sources})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE brant_flags)
  _brant_link(${name} PRIVATE ${deps})
  target_link_libraries(${name} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
  # Google Benchmark comes as a shared library with Debian: one libstdc++ for it and for us.
  if(BRANT_STATIC_RUNTIME AND NOT deps MATCHES "benchmark::")
    target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc)
  endif()
endfunction()

# brant_executable(NAME jacobi3d SOURCES main.cc ... [DEPS ...] [NO_INSTALL])
#   A program; it lands in the build's bin folder and, unless NO_INSTALL, in an installed brant.
function(brant_executable)
  cmake_parse_arguments(PARSE_ARGV 0 arg "NO_INSTALL" "NAME" "SOURCES;DEPS")
  _brant_check_arguments(brant_executable "${arg_NAME}" "${arg_UNPARSED_ARGUMENTS}")
  _brant_program(${arg_NAME} "${arg_SOURCES}" "${arg_DEPS}")
  add_dependencies(programs ${arg_NAME})
  if(NOT arg_NO_INSTALL)
    set_property(GLOBAL APPEND PROPERTY BRANT_EXECUTABLES ${arg_NAME})
  endif()
endfunction()

# brant_test(NAME channel_test LABELS unit SOURCES channel_test.cc [DEPS ...] [RANKS n] [TIMEOUT s] [ENVIRONMENT A=1 ...])
# brant_test(NAME channel_link_test LABELS unit SAME_AS channel_test [FILTER -Suite.*] ENVIRONMENT A=1 ...)
#   A GoogleTest program (main and gmock are linked) and a ctest entry of the same name. LABELS: unit conformance multi
#   fault emulated gpu, and plain for a unit test of one thread, in which the thread sanitizer can find nothing. RANKS
#   n > 0 starts n processes with `brant run`; such tests run alone, since they wait for one another. SAME_AS runs the
#   program of another test again, with another environment, and of its tests those that FILTER (GoogleTest's) leaves:
#   what chooses for itself what the environment chooses would only be repeated. The results (skips with their reasons)
#   go to <build>/test-results/NAME[.rank].json.
function(brant_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;RANKS;TIMEOUT;SAME_AS;FILTER" "LABELS;SOURCES;DEPS;ENVIRONMENT")
  _brant_check_arguments(brant_test "${arg_NAME}" "${arg_UNPARSED_ARGUMENTS}")
  foreach(label IN LISTS arg_LABELS)
    if(NOT label MATCHES "^(unit|conformance|multi|fault|emulated|gpu|plain)$")
      message(FATAL_ERROR "brant_test(${arg_NAME}): unknown label '${label}'")
    endif()
  endforeach()
  if(NOT arg_LABELS)
    message(FATAL_ERROR "brant_test(${arg_NAME}): LABELS is missing: a test without a label runs nowhere")
  endif()
  if(arg_FILTER AND NOT arg_SAME_AS)
    message(FATAL_ERROR "brant_test(${arg_NAME}): FILTER is for SAME_AS: the first run of a program leaves nothing out")
  endif()
  set(program ${arg_NAME})
  if(arg_SAME_AS)
    if(arg_SOURCES OR arg_DEPS OR NOT TARGET ${arg_SAME_AS})
      message(FATAL_ERROR "brant_test(${arg_NAME}): SAME_AS takes a test declared before, and no SOURCES or DEPS")
    endif()
    set(program ${arg_SAME_AS})
  else()
    _brant_program(${arg_NAME} "${arg_SOURCES}" "${arg_DEPS}")
    target_link_libraries(${arg_NAME} PRIVATE brant_test_main)
    _brant_optimise_less(${arg_NAME})
    _brant_compile_quickly(${arg_NAME} test)
  endif()
  foreach(label IN LISTS arg_LABELS)
    if(NOT TARGET ${label}_tests)
      add_custom_target(${label}_tests)
    endif()
    add_dependencies(${label}_tests ${program})
  endforeach()
  if("unit" IN_LIST arg_LABELS AND NOT "plain" IN_LIST arg_LABELS)  # what runs with the thread sanitizer
    if(NOT TARGET threaded_tests)
      add_custom_target(threaded_tests)
    endif()
    add_dependencies(threaded_tests ${program})
  endif()

  set(command $<TARGET_FILE:${program}> --gtest_output=json:${PROJECT_BINARY_DIR}/test-results/${arg_NAME}.json)
  if(arg_FILTER)
    list(APPEND arg_ENVIRONMENT GTEST_FILTER=${arg_FILTER})
  endif()
  if(NOT arg_RANKS)
    set(arg_RANKS 0)
  endif()
  if(arg_RANKS GREATER 0)
    if(NOT TARGET brant)
      message(STATUS "brant: test ${arg_NAME} (${arg_RANKS} ranks) is built but not registered: there is no target 'brant' to start it")
      return()
    endif()
    add_dependencies(${program} brant)
    set(command $<TARGET_FILE:brant> run -n ${arg_RANKS} -- ${command})
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  # What somebody measured on this machine must not change what tests see.
  set(environment BRANT_CALIBRATION=off ${arg_ENVIRONMENT})
  add_test(NAME ${arg_NAME} COMMAND ${command})
  list(JOIN arg_LABELS "," labels)
  list(JOIN arg_ENVIRONMENT " " settings)
  set_property(GLOBAL APPEND PROPERTY BRANT_TESTS
               "${arg_NAME}\t${program}\t${arg_RANKS}\t${arg_TIMEOUT}\t${labels}\t${settings}")
  set_tests_properties(${arg_NAME} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} ENVIRONMENT "${environment}")
  # Tests of several processes, and those that time how soon a death is noticed, have the machine to themselves.
  if(arg_RANKS GREATER 0 OR "fault" IN_LIST arg_LABELS)
    set_tests_properties(${arg_NAME} PROPERTIES RUN_SERIAL ON COST 1)
  else()
    # First what shares the machine, and of that what may take long: at the end no core waits for another.
    set_tests_properties(${arg_NAME} PROPERTIES COST ${arg_TIMEOUT})
  endif()
endfunction()

# Run at the end of configuration: a dependency nobody defined would only show as the linker's "cannot find -lbrant_x".
function(_brant_check_dependencies)
  get_property(edges GLOBAL PROPERTY BRANT_DEP_EDGES)
  foreach(edge IN LISTS edges)
    string(REGEX MATCH "^(.*)=(.*)$" unused ${edge})
    if(NOT TARGET ${CMAKE_MATCH_2})
      message(WARNING "brant: target ${CMAKE_MATCH_1} names ${CMAKE_MATCH_2} in DEPS, but no folder defines it (misspelt, or its CMakeLists.txt is missing)")
    endif()
  endforeach()
endfunction()
cmake_language(DEFER DIRECTORY ${PROJECT_SOURCE_DIR} CALL _brant_check_dependencies)
