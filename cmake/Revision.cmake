# offload::revision: "revision.hpp", which commit was built. Made when CMake configures as well, for tools that
# read sources without building.
set(revision_folder ${PROJECT_BINARY_DIR}/generated)
set(write_revision ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DOUTPUT=${revision_folder}/revision.hpp
  -P ${PROJECT_SOURCE_DIR}/cmake/WriteRevision.cmake)
execute_process(COMMAND ${write_revision})
add_custom_target(offload_write_revision
  COMMAND ${write_revision}
  BYPRODUCTS ${revision_folder}/revision.hpp
  COMMENT "Revision")
add_library(offload_revision INTERFACE)
add_library(offload::revision ALIAS offload_revision)
add_dependencies(offload_revision offload_write_revision)
target_include_directories(offload_revision INTERFACE ${revision_folder})
