# Takes ccache where it is installed, unless told otherwise: -DOFFLOAD_CCACHE=OFF.
find_program(OFFLOAD_CCACHE ccache)
if(OFFLOAD_CCACHE)
  # Sources with a precompiled header are served only if ccache may pass over these. It takes what they
  # include from the compiler (-MD) and not from a run of the preprocessor.
  set(launcher env CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${OFFLOAD_CCACHE})
  foreach(language CXX CUDA)
    if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER ${launcher})
    endif()
  endforeach()
endif()
