# warmgate_library(NAME DEPS ...): a static library of the .cc files of the current folder (and of
# SUBDIRS), with a test program NAME_test of its *_test.cc files. Files named main.cc are left out.
# COLD: nothing in it is worth optimising. ALONE: its files repeat each other's names and are compiled
# one by one.
add_library(warmgate_flags INTERFACE)
target_compile_features(warmgate_flags INTERFACE cxx_std_20)
# nvcc hands host flags on to another compiler and takes -Werror for its own: CUDA files have theirs.
target_compile_options(warmgate_flags INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow;-Wnon-virtual-dtor;-Woverloaded-virtual;-Werror>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # What the optimiser believes to see inside inlined strings and regexes differs with every version
  # and level; the sanitizer suite looks for the real thing.
  target_compile_options(warmgate_flags INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict;-Wno-stringop-overflow;-Wno-stringop-overread;-Wno-array-bounds;-Wno-maybe-uninitialized>")
  if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    target_compile_options(warmgate_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Wno-dangling-reference>")
  endif()
endif()
target_include_directories(warmgate_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_definitions(warmgate_flags INTERFACE WARMGATE_VERSION="${PROJECT_VERSION}")
if(WARMGATE_SANITIZE)
  target_compile_options(warmgate_flags INTERFACE -fsanitize=${WARMGATE_SANITIZE}
                         -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(warmgate_flags INTERFACE -fsanitize=${WARMGATE_SANITIZE})
endif()

# nlohmann/json costs 3.7 s a file, gmock 2.1 s; precompiled they cost nothing after the first.
file(WRITE ${CMAKE_BINARY_DIR}/pch_anchor.cc "")
add_library(warmgate_pch STATIC ${CMAKE_BINARY_DIR}/pch_anchor.cc)
# What reads, prints and parses once a command gains nothing from -O2 and takes half as long again.
set(WARMGATE_COLD_OPTIONS $<$<CONFIG:Release>:-O1>)
add_library(warmgate_cold_pch STATIC ${CMAKE_BINARY_DIR}/pch_anchor.cc)
target_compile_options(warmgate_cold_pch PRIVATE ${WARMGATE_COLD_OPTIONS})
foreach(pch warmgate_pch warmgate_cold_pch)
  target_link_libraries(${pch} PUBLIC warmgate_flags nlohmann_json::nlohmann_json fmt::fmt)
  target_precompile_headers(${pch} PRIVATE <algorithm> <cstdint> <filesystem> <functional> <map>
    <memory> <optional> <set> <string> <string_view> <vector> <nlohmann/json.hpp> <fmt/format.h>)
endforeach()
if(WARMGATE_TESTS)
  add_library(warmgate_test_environment OBJECT ${PROJECT_SOURCE_DIR}/cmake/test_environment.cc)
  target_link_libraries(warmgate_test_environment PRIVATE warmgate_flags)
  target_compile_definitions(warmgate_test_environment PRIVATE
    WARMGATE_TEST_SOURCE_DIR="${PROJECT_SOURCE_DIR}" WARMGATE_TEST_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
  # Test code is compiled once and run once: optimising it costs more than it brings.
  set(WARMGATE_TEST_OPTIONS $<$<CONFIG:Release>:-O0>)
  add_library(warmgate_test_pch STATIC ${CMAKE_BINARY_DIR}/pch_anchor.cc)
  target_compile_options(warmgate_test_pch PRIVATE ${WARMGATE_TEST_OPTIONS})
  target_link_libraries(warmgate_test_pch PUBLIC warmgate_flags nlohmann_json::nlohmann_json
                        fmt::fmt GTest::gmock GTest::gtest_main Threads::Threads)
  target_precompile_headers(warmgate_test_pch PRIVATE <algorithm> <cstdint> <filesystem> <fstream>
    <map> <memory> <optional> <set> <string> <string_view> <vector> <nlohmann/json.hpp>
    <fmt/format.h> <gmock/gmock.h> <gtest/gtest.h>)
endif()

# A clean build spends half its time on the same headers' templates, once a file. In batches they are
# instantiated once a batch; touching one file then rebuilds the few it stands with. Names in anonymous
# namespaces must differ within a folder for it.
option(WARMGATE_BATCHES "Compile several files of a library together" OFF)
function(warmgate_batches name size)
  if(WARMGATE_BATCHES)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${size})
    # In a batch no file is the main one, so a class's private parts seem to be everybody's.
    target_compile_options(${name} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

function(warmgate_library name)
  cmake_parse_arguments(arg "NO_PCH;COLD;ALONE" "" "DEPS;SUBDIRS;TEST_DEPS" ${ARGN})
  set(patterns ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  foreach(sub ${arg_SUBDIRS})
    list(APPEND patterns ${CMAKE_CURRENT_SOURCE_DIR}/${sub}/*.cc)
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${patterns})
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.cc$")
  if(NOT sources)
    set(sources ${CMAKE_BINARY_DIR}/pch_anchor.cc)
  endif()
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC warmgate_flags nlohmann_json::nlohmann_json fmt::fmt
                        ${arg_DEPS})
  set(pch warmgate_pch)
  if(arg_COLD)
    set(pch warmgate_cold_pch)
    target_compile_options(${name} PRIVATE ${WARMGATE_COLD_OPTIONS})
  endif()
  if(NOT arg_NO_PCH)
    target_precompile_headers(${name} REUSE_FROM ${pch})
  endif()
  if(NOT arg_NO_PCH AND NOT arg_ALONE)
    warmgate_batches(${name} 6)
  endif()
  if(WARMGATE_TESTS AND tests)
    warmgate_test(${name}_test SOURCES ${tests} DEPS ${name} ${arg_TEST_DEPS})
  endif()
endfunction()

# warmgate_test(NAME SOURCES ... DEPS ...): one test program; ctest runs each of its tests alone.
# Tests find the source tree in WARMGATE_SOURCE_DIR and the programs in WARMGATE_BIN_DIR.
function(warmgate_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${arg_SOURCES} $<TARGET_OBJECTS:warmgate_test_environment>)
  target_link_libraries(${name} PRIVATE ${arg_DEPS} warmgate_flags nlohmann_json::nlohmann_json
                        fmt::fmt GTest::gmock GTest::gtest_main Threads::Threads)
  target_compile_options(${name} PRIVATE ${WARMGATE_TEST_OPTIONS})
  target_precompile_headers(${name} REUSE_FROM warmgate_test_pch)
  warmgate_batches(${name} 8)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 120)
endfunction()

# warmgate_program(NAME): a program that goes into the package (ci/package).
function(warmgate_program name)
  if(WARMGATE_PORTABLE)
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/arc4random.cc)
    set_source_files_properties(${PROJECT_SOURCE_DIR}/cmake/arc4random.cc PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    # libgcc_s stays shared: every system has it, and libraries opened at run time unwind with it.
    target_link_options(${name} PRIVATE -static-libstdc++ -shared-libgcc)
  endif()
endfunction()
