# Compiler flags of our own code (target brant_flags, linked privately) and of the whole build (sanitizers, ccache).
include_guard(GLOBAL)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug or Release" FORCE)
endif()
if(CMAKE_CXX_FLAGS_RELEASE STREQUAL "-O3 -DNDEBUG")  # CMake's default; what a user chose stays
  set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")    # with line numbers in back traces
endif()
if(NOT CMAKE_RUNTIME_OUTPUT_DIRECTORY)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
endif()

add_library(brant_flags INTERFACE)
target_compile_options(brant_flags INTERFACE -Wall -Wextra -Wconversion -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual)
if(BRANT_WARNINGS_AS_ERRORS STREQUAL "ON" OR (BRANT_WARNINGS_AS_ERRORS STREQUAL "AUTO" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU"
                                             AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13))
  target_compile_options(brant_flags INTERFACE -Werror)
endif()
# Paths in messages and debug information start at the source root, so that a binary names no machine's folders.
target_compile_options(brant_flags INTERFACE -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)

if(BRANT_SANITIZE)
  string(REPLACE ";" "," brant_sanitizers "${BRANT_SANITIZE}")
  add_compile_options(-fsanitize=${brant_sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  # The checks that sanitizers insert hide from g++ 12 that an optional is empty; it keeps the warning without them.
  add_compile_options(-Wno-maybe-uninitialized)
  add_link_options(-fsanitize=${brant_sanitizers})
endif()

# ccache keeps compiled objects across build trees and clones: the base folder makes paths relative before hashing.
find_program(BRANT_CCACHE ccache HINTS ${BRANT_VENV}/bin)
if(BRANT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(brant_ccache_settings CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1)
  if(BRANT_QUICK_COMPILE)  # what ccache asks for with precompiled headers; no source of ours uses __TIME__
    list(APPEND brant_ccache_settings CCACHE_SLOPPINESS=pch_defines,time_macros)
  endif()
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env ${brant_ccache_settings} ${BRANT_CCACHE})
endif()
