# Everything that comes from outside, in one place. Debian 12's and Ubuntu 24.04's packages suffice;
# ci/setup installs them.
find_package(Threads REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(yaml-cpp 0.7 REQUIRED)
find_package(fmt 9 REQUIRED)
# Boost.Process v2, Asio and JSON are used header-only, so no Boost component is asked for.
find_package(Boost 1.81 CONFIG REQUIRED)
find_package(CLI11 2.1 REQUIRED)
if(WARMGATE_TESTS)
  find_package(GTest 1.12 REQUIRED)
  include(CTest)
  include(GoogleTest)
endif()
if(TARGET yaml-cpp::yaml-cpp)
  set(WARMGATE_YAML yaml-cpp::yaml-cpp)
else()
  set(WARMGATE_YAML yaml-cpp) # 0.7's package exports no namespace
endif()

# NVRTC is opened at run time (harness/../kernels/jit/nvrtc.cc), so the toolkit is a hint here, not
# a dependency: the same binary works on machines with and without it.
find_path(WARMGATE_CUDA_ROOT NAMES include/nvrtc.h
          HINTS $ENV{CUDA_PATH} $ENV{CUDA_HOME} /usr/local/cuda /opt/cuda NO_DEFAULT_PATH)
if(WARMGATE_CUDA_ROOT)
  message(STATUS "warmgate: CUDA toolkit at ${WARMGATE_CUDA_ROOT}")
else()
  message(STATUS "warmgate: no CUDA toolkit; per-architecture compilation will be 'not observed', "
                 "keys are judged by the host half alone")
endif()

# RE2 reads log grammars (harness/explain). Without it everything else works, and explain says so.
set(WARMGATE_RE2 "")
find_path(WARMGATE_RE2_INCLUDE re2/set.h)
find_library(WARMGATE_RE2_LIBRARY re2)
if(WARMGATE_RE2_INCLUDE AND WARMGATE_RE2_LIBRARY)
  add_library(warmgate_re2 INTERFACE)
  target_link_libraries(warmgate_re2 INTERFACE ${WARMGATE_RE2_LIBRARY})
  target_include_directories(warmgate_re2 SYSTEM INTERFACE ${WARMGATE_RE2_INCLUDE})
  set(WARMGATE_RE2 warmgate_re2)
  message(STATUS "warmgate: RE2 at ${WARMGATE_RE2_LIBRARY}")
else()
  message(STATUS "warmgate: no RE2; logs of engines cannot be read (explain, server targets' phases)")
endif()
