# Outside libraries. An installed package wins; else the pinned upstream source is fetched.
include_guard(GLOBAL)
include(FetchContent)

list(PREPEND CMAKE_PREFIX_PATH ${BRANT_DEPS})
find_package(Threads REQUIRED)

set(INSTALL_GTEST OFF)
set(JSON_BuildTests OFF)
set(JSON_Install OFF)
FetchContent_Declare(fmt SYSTEM GIT_REPOSITORY https://github.com/fmtlib/fmt.git GIT_TAG 9.1.0 GIT_SHALLOW ON
                     FIND_PACKAGE_ARGS 9)
FetchContent_Declare(CLI11 SYSTEM GIT_REPOSITORY https://github.com/CLIUtils/CLI11.git GIT_TAG v2.1.2 GIT_SHALLOW ON
                     FIND_PACKAGE_ARGS)
FetchContent_Declare(nlohmann_json SYSTEM GIT_REPOSITORY https://github.com/nlohmann/json.git GIT_TAG v3.11.2
                     GIT_SHALLOW ON FIND_PACKAGE_ARGS 3.10)
FetchContent_Declare(googletest SYSTEM GIT_REPOSITORY https://github.com/google/googletest.git GIT_TAG release-1.12.1
                     GIT_SHALLOW ON FIND_PACKAGE_ARGS NAMES GTest)
FetchContent_MakeAvailable(fmt CLI11 nlohmann_json)
if(BRANT_BUILD_TESTS)
  FetchContent_MakeAvailable(googletest)
endif()

# What switches between the user-level threads of virtual ranks. Without it they are left out.
set(Boost_USE_STATIC_LIBS ON)
find_package(Boost 1.74 QUIET CONFIG COMPONENTS context)
if(NOT TARGET Boost::context)
  message(STATUS "brant: Boost.Context was not found: `brant run --ranks` and its virtual ranks of MPI are left out. Cure: run 'make setup', "
                 "or install libboost-context-dev.")
endif()

# brant_fmt stands for fmt in every DEPS list. Fetched sources are compiled anyway; with an installed fmt 9 its compiled
# half is built from the headers (see fmt_9.cc); with any other installed version the header-only form serves.
get_target_property(brant_fmt_is_installed fmt::fmt-header-only IMPORTED)
if(NOT brant_fmt_is_installed)
  add_library(brant_fmt INTERFACE)
  target_link_libraries(brant_fmt INTERFACE $<BUILD_INTERFACE:fmt::fmt>)
elseif(fmt_VERSION VERSION_GREATER_EQUAL 9 AND fmt_VERSION VERSION_LESS 10)
  add_library(brant_fmt STATIC ${PROJECT_SOURCE_DIR}/cmake/fmt_9.cc)
  get_target_property(brant_fmt_include fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)
  target_include_directories(brant_fmt SYSTEM PUBLIC $<BUILD_INTERFACE:${brant_fmt_include}>)
  target_link_libraries(brant_fmt PRIVATE $<BUILD_INTERFACE:brant_flags>)
else()
  add_library(brant_fmt INTERFACE)
  target_link_libraries(brant_fmt INTERFACE $<BUILD_INTERFACE:fmt::fmt-header-only>)
endif()
set_target_properties(brant_fmt PROPERTIES EXPORT_NAME fmt)
set_property(GLOBAL APPEND PROPERTY BRANT_LIBRARIES brant_fmt)

# --- UCX: headers only. libucp is opened at run time (see the loading policy in wire/ucx), never linked. -----------
foreach(found IN ITEMS BRANT_UCX_INCLUDE BRANT_CUDA_INCLUDE BRANT_NVCC)
  if(${found} AND NOT EXISTS ${${found}})
    unset(${found} CACHE)  # make setup has since used another Python: look again
  endif()
endforeach()
file(GLOB brant_site_folders ${BRANT_VENV}/lib/python3*/site-packages)
set(brant_ucx_roots ${brant_site_folders})
list(TRANSFORM brant_ucx_roots APPEND /libucx)
find_path(BRANT_UCX_INCLUDE ucp/api/ucp.h HINTS ${brant_ucx_roots} PATH_SUFFIXES include libucx/include)
if(NOT BRANT_UCX_INCLUDE)
  message(FATAL_ERROR "brant: the UCX headers (ucp/api/ucp.h) were not found. Cure: run 'make setup', or install libucx-dev, "
                      "or set BRANT_UCX_INCLUDE.")
endif()
add_library(brant_ucx_headers INTERFACE)
target_include_directories(brant_ucx_headers SYSTEM INTERFACE ${BRANT_UCX_INCLUDE})

# Executables look for <their folder>/../lib/libucx/lib/libucp.so.0: the layout of an installed or unpacked brant.
get_filename_component(brant_ucx_root ${BRANT_UCX_INCLUDE} DIRECTORY)
get_filename_component(brant_run_lib ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/../lib ABSOLUTE)
if(EXISTS ${brant_ucx_root}/lib/libucp.so.0 AND NOT brant_ucx_root STREQUAL "/usr")
  file(MAKE_DIRECTORY ${brant_run_lib})
  file(CREATE_LINK ${brant_ucx_root} ${brant_run_lib}/libucx SYMBOLIC)
endif()

# --- CUDA: the driver header for dlopen'ed calls and nvcc for the kernels; no CUDA library is linked. --------------
set(brant_cuda_roots ${brant_site_folders})
list(TRANSFORM brant_cuda_roots APPEND /nvidia/cu13)
# pip builds a wheel in an environment of its own: the folders with packages are in CMAKE_PREFIX_PATH there.
find_path(BRANT_CUDA_INCLUDE cuda.h HINTS ${brant_cuda_roots} /usr/local/cuda PATH_SUFFIXES include nvidia/cu13/include)
set(BRANT_HAVE_NVCC OFF)
if(NOT BRANT_WITH_CUDA STREQUAL "OFF")
  find_program(BRANT_NVCC nvcc HINTS ${brant_cuda_roots} /usr/local/cuda PATH_SUFFIXES bin)
  if(BRANT_NVCC)
    set(BRANT_HAVE_NVCC ON)
  elseif(BRANT_WITH_CUDA STREQUAL "ON")
    message(FATAL_ERROR "brant: BRANT_WITH_CUDA=ON, but nvcc was not found. Cure: run 'make setup' (it installs one into .venv), "
                        "put nvcc on PATH, or use BRANT_WITH_CUDA=AUTO.")
  else()
    message(STATUS "brant: no nvcc found: kernel images stay empty, GPU kernels are not available in this build")
  endif()
endif()
if(NOT BRANT_CUDA_INCLUDE)
  message(FATAL_ERROR "brant: the CUDA driver header cuda.h was not found (needed to compile, also without a GPU). Cure: run "
                      "'make setup', or set BRANT_CUDA_INCLUDE.")
endif()
add_library(brant_cuda_headers INTERFACE)
target_include_directories(brant_cuda_headers SYSTEM INTERFACE ${BRANT_CUDA_INCLUDE})
