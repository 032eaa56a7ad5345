# The target all_verify_interface_header_sets compiles each header by itself (scripts/checks/headers).

# offload_header_set(FOLDER LINKS others...): the headers of a folder, with the libraries that they may include.
# Without CUDA those are left out that speak of it.
function(offload_header_set folder)
  cmake_parse_arguments(ARG "" "" "LINKS" ${ARGN})
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.hpp)
  if(NOT OFFLOAD_HAVE_CUDA)
    foreach(header ${headers})
      file(STRINGS ${header} cuda REGEX "^#include .*(cuda|\"gpu/)" LIMIT_COUNT 1)
      if(cuda)
        list(REMOVE_ITEM headers ${header})
      endif()
    endforeach()
  endif()
  string(MAKE_C_IDENTIFIER offload_headers_${folder} name)
  add_library(${name} INTERFACE)
  target_sources(${name} INTERFACE
    FILE_SET headers TYPE HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${headers})
  target_link_libraries(${name} INTERFACE offload_flags ${ARG_LINKS})
  target_compile_options(${name} INTERFACE -O0 -g0)
  set_target_properties(${name} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
endfunction()
