# The few switches a user may set. Capabilities are asked at run time; these only say what is compiled in.
include_guard(GLOBAL)

option(BRANT_BUILD_TESTS "Build the tests" ON)

set(BRANT_WITH_CUDA AUTO CACHE STRING "Compile GPU kernels: AUTO (when nvcc is found), ON (fail without it), OFF")
set_property(CACHE BRANT_WITH_CUDA PROPERTY STRINGS AUTO ON OFF)
set(BRANT_CUDA_SASS 80 90 100 CACHE STRING "GPU architectures every kernel image holds machine code for")
set(BRANT_CUDA_PTX 90 CACHE STRING "Architectures kept as PTX, compiled by the driver for GPUs newer than the list")

# Warnings are errors for the compiler that CI compiles with; another compiler's new warnings must not stop a user.
set(BRANT_WARNINGS_AS_ERRORS AUTO CACHE STRING "AUTO (with g++ 12), ON, OFF")
set_property(CACHE BRANT_WARNINGS_AS_ERRORS PROPERTY STRINGS AUTO ON OFF)

set(BRANT_SANITIZE "" CACHE STRING "Sanitizers to compile with, for example address,undefined")
# For the builds of CI, which would else spend a quarter of their time on parsing the same headers. Of release only the
# tests: every other file must include what it uses.
set(BRANT_QUICK_COMPILE "" CACHE STRING "What compiles with common headers precompiled and less optimised: tests, all (libraries too, some sources at a time)")
set_property(CACHE BRANT_QUICK_COMPILE PROPERTY STRINGS "" tests all)
set(BRANT_LEFT_OUT_TESTS "" CACHE STRING "Tests that will not run: programs of these alone are not built")
option(BRANT_STATIC_RUNTIME "Link libstdc++ and libgcc into the executables, so that they run on older systems" OFF)

set(BRANT_VENV ${PROJECT_SOURCE_DIR}/.venv CACHE PATH "Python environment with the UCX and CUDA packages (make setup)")
set(BRANT_DEPS ${PROJECT_SOURCE_DIR}/.deps/usr CACHE PATH "C++ libraries unpacked by make setup")
