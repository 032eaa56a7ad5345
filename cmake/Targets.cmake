# How this project's targets are made: one static library a folder of lib/, named after it.
add_library(offload_flags INTERFACE)
target_include_directories(offload_flags INTERFACE ${PROJECT_SOURCE_DIR}/lib ${PROJECT_SOURCE_DIR})
target_compile_definitions(offload_flags INTERFACE OFFLOAD_VERSION="${PROJECT_VERSION}")
target_compile_options(offload_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
    -Wnon-virtual-dtor -Woverloaded-virtual -Wold-style-cast -Wimplicit-fallthrough>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>)
if(OFFLOAD_WERROR)
  target_compile_options(offload_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>
    $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
endif()
if(OFFLOAD_SANITIZE)
  target_compile_options(offload_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${OFFLOAD_SANITIZE} -fno-omit-frame-pointer
      -fno-sanitize-recover=all>)
  target_link_options(offload_flags INTERFACE -fsanitize=${OFFLOAD_SANITIZE})
  # GNU ld takes 1.0 to 1.5 s for each of the 80 programs, and lld a quarter of that.
  find_program(OFFLOAD_LLD ld.lld)
  if(OFFLOAD_LLD AND CMAKE_CXX_COMPILER_ID MATCHES Clang)
    target_link_options(offload_flags INTERFACE -fuse-ld=lld)
  endif()
  # gcc defines these names itself; clang does so only from 21 on.
  string(TOUPPER "${OFFLOAD_SANITIZE}" sanitizers)
  foreach(sanitizer ADDRESS THREAD)
    if(sanitizers MATCHES ${sanitizer})
      target_compile_definitions(offload_flags INTERFACE __SANITIZE_${sanitizer}__=1)
    endif()
  endforeach()
endif()

# offload_added_strings(NAME): for tests and samples, which put texts together by "+". Optimised, g++ 12 and 13 take that
# for an overrun (GCC bug 105651).
function(offload_added_strings name)
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-array-bounds>
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-stringop-overflow>)
endfunction()

# In a build with fuzz targets, libFuzzer follows the branches of libraries and programs, but not those of the tests.
add_library(offload_followed INTERFACE)
if(OFFLOAD_FUZZ)
  target_compile_options(offload_followed INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>)
endif()

# The headers that nearly every source includes, compiled once: a third of the time of all. A source still names what it uses:
# scripts/checks/headers and tidy compile without this.
file(CONFIGURE OUTPUT precompiled.cpp CONTENT "")
add_library(offload_standard_headers OBJECT ${PROJECT_BINARY_DIR}/precompiled.cpp)
target_link_libraries(offload_standard_headers PRIVATE offload_flags offload_hardening offload_followed)
target_precompile_headers(offload_standard_headers PRIVATE <algorithm> <array> <atomic> <chrono> <cstdint> <deque>
  <functional> <map> <memory> <mutex> <optional> <span> <string> <string_view> <thread> <unordered_map> <variant> <vector>)

# offload_library(NAME SOURCES a.cpp... LINKS other...): lib/NAME as offload::NAME.
function(offload_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_library(offload_${name} STATIC ${ARG_SOURCES})
  add_library(offload::${name} ALIAS offload_${name})
  target_link_libraries(offload_${name} PUBLIC offload_flags ${ARG_LINKS} PRIVATE offload_hardening offload_followed)
  target_precompile_headers(offload_${name} REUSE_FROM offload_standard_headers)
endfunction()

# offload_program(NAME SOURCES a.cpp... LINKS other...)
function(offload_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE offload_flags offload_hardening offload_followed ${ARG_LINKS})
  target_precompile_headers(${name} REUSE_FROM offload_standard_headers)
endfunction()

# Compiles the device code of `target` for this machine's GPU only: each further architecture takes half a minute.
# Without a GPU it becomes PTX of the oldest one, which the driver of the GPU that runs it compiles at start.
function(offload_one_architecture target)
  set(architectures ${CMAKE_CUDA_ARCHITECTURES})
  list(SORT architectures COMPARE NATURAL)
  if("${CMAKE_CUDA_ARCHITECTURES_NATIVE}" MATCHES "^[0-9]+")
    set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES native)
  elseif("${architectures}" MATCHES "^[0-9]+")
    set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES ${CMAKE_MATCH_0}-virtual)
  endif()
endfunction()
