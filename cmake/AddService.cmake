# offload_add_service(NAME SOURCE): NAME.so, a module of the worker with the service in SOURCE
# (docs/reference/services.md).
# SOURCE: .cpp, for CPUs alone, or .cu, for GPUs too where the project has the language CUDA.
function(offload_add_service name source)
  set(exports ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/service-exports.map)
  add_library(${name} MODULE ${source})
  target_link_libraries(${name} PRIVATE dpu-gpu-offload::device)
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  # The suite itself compiles some builds' services for CPUs only (cmake/Cuda.cmake).
  if(source MATCHES "\\.cu$" AND (NOT CUDA IN_LIST languages
      OR (DEFINED OFFLOAD_SAMPLE_KERNELS AND NOT OFFLOAD_SAMPLE_KERNELS)))
    set_source_files_properties(${source} PROPERTIES LANGUAGE CXX)
  endif()
  # One function is seen from outside. The CUDA runtime is the module's own, as the worker's is.
  set_target_properties(${name} PROPERTIES PREFIX "" POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    CUDA_RUNTIME_LIBRARY Static LINK_DEPENDS ${exports})
  target_link_options(${name} PRIVATE LINKER:--version-script=${exports})
  if(NOT OFFLOAD_SANITIZE)  # whose functions are the program's
    target_link_options(${name} PRIVATE LINKER:--no-undefined)
  endif()
endfunction()
