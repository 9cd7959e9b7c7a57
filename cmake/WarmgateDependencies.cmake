# Everything that comes from outside, in one place. Debian 12's and Ubuntu 24.04's packages suffice;
# ci/setup installs them.
option(WARMGATE_PORTABLE "Programs that run where they are unpacked: libraries linked in, GLIBC_2.34" ON)
if(WARMGATE_SANITIZE)
  set(WARMGATE_PORTABLE OFF) # the runtimes want the shared libstdc++
endif()
if(WARMGATE_PORTABLE)
  # For every find_library() from here on; what has no archive is linked as it is, and ci/package
  # refuses the result.
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a .so)
endif()
find_package(Threads REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(yaml-cpp 0.7 REQUIRED)
if(WARMGATE_PORTABLE)
  find_path(WARMGATE_FMT_INCLUDE fmt/format-inl.h REQUIRED)
  file(STRINGS ${WARMGATE_FMT_INCLUDE}/fmt/core.h fmt_version REGEX "^#define FMT_VERSION ")
  if(NOT fmt_version MATCHES "FMT_VERSION 9[0-9][0-9][0-9][0-9]$")
    # Its instances are listed in cmake/fmt_static.cc as of version 9.
    message(STATUS "warmgate: fmt is not version 9 (${fmt_version}); linked as a shared library")
    find_package(fmt 9 REQUIRED)
  else()
    add_library(warmgate_fmt STATIC ${CMAKE_CURRENT_LIST_DIR}/fmt_static.cc)
    target_include_directories(warmgate_fmt SYSTEM PUBLIC ${WARMGATE_FMT_INCLUDE})
    target_compile_definitions(warmgate_fmt INTERFACE FMT_SHARED) # as its own package says to users
    add_library(fmt::fmt ALIAS warmgate_fmt)
  endif()
else()
  find_package(fmt 9 REQUIRED)
endif()
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
if(WARMGATE_PORTABLE)
  # Its package names the shared library, or none of the two.
  find_library(WARMGATE_YAML_ARCHIVE NAMES libyaml-cpp.a)
  if(WARMGATE_YAML_ARCHIVE)
    add_library(warmgate_yaml STATIC IMPORTED GLOBAL)
    set_target_properties(warmgate_yaml PROPERTIES IMPORTED_LOCATION ${WARMGATE_YAML_ARCHIVE}
                          INTERFACE_INCLUDE_DIRECTORIES "${YAML_CPP_INCLUDE_DIR}")
    set(WARMGATE_YAML warmgate_yaml)
  endif()
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

# Kernels of device cuda (kernels/cuda) become one library that the engine opens when a scenario asks
# for the device; everything else is built without CUDA and runs where there is none.
option(WARMGATE_CUDA "Build the CUDA kernels where a toolkit with nvcc is found" ON)
option(WARMGATE_REQUIRE_CUDA "Fail where the CUDA kernels cannot be built" OFF)
set(WARMGATE_CUDA_ARCHITECTURES 90a-real CACHE STRING
    "Architectures of the CUDA kernels, e.g. 80-real;90a-real;100a-real;120a-real")
find_program(WARMGATE_NVCC nvcc HINTS ${WARMGATE_CUDA_ROOT}/bin)
if(WARMGATE_CUDA AND WARMGATE_CUDA_ROOT AND WARMGATE_NVCC AND NOT WARMGATE_SANITIZE)
  set(CMAKE_CUDA_COMPILER ${WARMGATE_NVCC})
  set(CMAKE_CUDA_ARCHITECTURES ${WARMGATE_CUDA_ARCHITECTURES})
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    # CMake 3.25 knows no standard above 17 of this nvcc.
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
    set(CMAKE_CUDA20_COMPILE_FEATURES cuda_std_20)
  endif()
  message(STATUS "warmgate: CUDA kernels for ${WARMGATE_CUDA_ARCHITECTURES} with ${WARMGATE_NVCC}")
else()
  set(WARMGATE_NVCC "")
  if(WARMGATE_REQUIRE_CUDA)
    message(FATAL_ERROR "warmgate: no nvcc of a CUDA toolkit (looked in $CUDA_PATH, $CUDA_HOME, "
                        "/usr/local/cuda and /opt/cuda), and WARMGATE_REQUIRE_CUDA is on")
  endif()
  message(STATUS "warmgate: no nvcc or not wanted; device cuda will be 'not built'")
endif()

# RE2 reads log grammars (harness/explain). Without it everything else works, and explain says so.
set(WARMGATE_RE2 "")
find_path(WARMGATE_RE2_INCLUDE re2/set.h)
if(WARMGATE_PORTABLE AND "${WARMGATE_RE2_LIBRARY}" MATCHES "[.]so$")
  unset(WARMGATE_RE2_LIBRARY CACHE) # found before archives were asked for
endif()
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
