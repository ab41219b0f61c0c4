# House rules for every target: dialect, warnings, sanitizers, and the two helpers that declare a
# folder's library and a test.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

find_program(CCACHE ccache)
if(CCACHE)
  # Without the first, ccache passes over every compilation that uses a precompiled header; without the second, it
  # preprocesses what it does not have once more, a tenth of its compile time, for what ninja's list of headers says too.
  set(CMAKE_CXX_COMPILER_LAUNCHER /usr/bin/env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1 ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_link_options(-fuse-ld=mold)
endif()

add_library(tutti_house INTERFACE)
target_include_directories(tutti_house INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(tutti_house INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
  -Wold-style-cast -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 sees overlaps in std::string concatenation that cannot happen (GCC bug 105651).
  target_compile_options(tutti_house INTERFACE -Wno-restrict)
endif()
target_compile_definitions(tutti_house INTERFACE TUTTI_VERSION="${PROJECT_VERSION}")
if(TUTTI_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
  # Instrumented standard headers (regex) look uninitialised to g++ 12.
  add_compile_options($<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
elseif(TUTTI_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(NOT TUTTI_SANITIZE STREQUAL "")
  message(FATAL_ERROR "TUTTI_SANITIZE is 'address' or 'thread', not '${TUTTI_SANITIZE}'")
endif()
if(TUTTI_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
  add_link_options(-fsanitize=address,undefined)
endif()

# tutti_library(NAME SOURCES a.cc … [DEPS targets…]): the library of the current folder.
function(tutti_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC tutti_house ${ARG_DEPS} PRIVATE ${ARG_PRIVATE_DEPS})
endfunction()

# The tests' own sources, where nobody measures them, are not optimised, and g++ does not tidy its memory up meanwhile:
# a quarter of their compile time. What they test is compiled as everywhere.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND TUTTI_SANITIZE STREQUAL "" AND CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
  set(tutti_test_options -O0 "SHELL:--param ggc-min-heapsize=524288")
endif()

# What nearly every test includes is read once: another quarter. g++ only.
function(tutti_test_headers)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/test_headers.cc CONTENT "")  # a target has to have one
  add_library(tutti_test_headers OBJECT ${CMAKE_BINARY_DIR}/test_headers.cc)
  target_link_libraries(tutti_test_headers PRIVATE tutti_house GTest::gmock GTest::gtest_main)
  target_compile_options(tutti_test_headers PRIVATE -fpch-preprocess ${tutti_test_options})
  target_precompile_headers(tutti_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h> <algorithm> <fstream>
    <map> <sstream> <string> <vector>)
endfunction()

# tutti_test(NAME SOURCES a_test.cc … [DEPS targets…] [TIMEOUT s] [PLACES] [OPTIMISED]): one gtest program, one ctest
# entry. PLACES: it reads files of the source tree or runs our programs. Only those get the paths, so that
# the objects of all others are the same in every clone (ccache). OPTIMISED: it computes for longer than it compiles.
function(tutti_test name)
  cmake_parse_arguments(ARG "PLACES;OPTIMISED" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE tutti_house ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  if(ARG_PLACES)
    target_compile_definitions(${name} PRIVATE TUTTI_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
      TUTTI_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  endif()
  if(TARGET tutti_test_headers AND NOT ARG_OPTIMISED)
    # ccache wants the first. Without the others g++ 12 takes a text put together from literals for one that runs
    # over its end, as it does not see any more that the code is the standard library's.
    target_compile_options(${name} PRIVATE -fpch-preprocess ${tutti_test_options}
      -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
    target_precompile_headers(${name} REUSE_FROM tutti_test_headers)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "${ARG_LABELS}")
  if(TUTTI_SANITIZE STREQUAL "address")
    set_property(TEST ${name} APPEND PROPERTY
      ENVIRONMENT "LSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/support/lsan.supp:print_suppressions=0")
  elseif(TUTTI_SANITIZE STREQUAL "thread")
    set_property(TEST ${name} APPEND PROPERTY
      ENVIRONMENT "TSAN_OPTIONS=suppressions=${CMAKE_SOURCE_DIR}/tests/support/tsan.supp")
  endif()
endfunction()
