# Finds the CUDA compiler, and says plainly whether the CUDA back end is built.
set(OFFLOAD_HAVE_CUDA OFF)
if(NOT OFFLOAD_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX} AND EXISTS /usr/local/cuda/bin/nvcc)
    set(CMAKE_CUDA_COMPILER /usr/local/cuda/bin/nvcc)  # the toolkit's own place, seldom on PATH
  endif()
  set(architectures ${CMAKE_CUDA_ARCHITECTURES})
  if(NOT architectures)
    # Turing, Ampere, Ada and Hopper machine code, and PTX of the last one for later GPUs.
    set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 89-real 90)
  endif()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    # FindCUDAToolkit of CMake 3.25 sets a property of this target, but CUDA 13 has no such library.
    if(CMAKE_VERSION VERSION_LESS 3.26)
      add_library(CUDA::nvToolsExt INTERFACE IMPORTED)
    endif()
    find_package(CUDAToolkit REQUIRED)
    # C++17 in device code: nvcc 11.8, Debian 12's, knows no later one.
    set(CMAKE_CUDA_STANDARD 17)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    set(OFFLOAD_HAVE_CUDA ON)
    # After enable_language(), which finds out what GPU there is.
    if(OFFLOAD_ONE_ARCHITECTURE AND NOT architectures)
      set(CMAKE_CUDA_ARCHITECTURES 90)
      if("${CMAKE_CUDA_ARCHITECTURES_NATIVE}" MATCHES "^[0-9]+")
        set(CMAKE_CUDA_ARCHITECTURES native)
      endif()
    endif()
  elseif(OFFLOAD_CUDA STREQUAL "ON")
    message(FATAL_ERROR "OFFLOAD_CUDA=ON, but no CUDA compiler was found")
  endif()
endif()
# Samples and example services have device code unless this build is for one machine without a GPU: it could not run
# there, and takes a minute and a half to compile. Their sources then run on threads.
set(OFFLOAD_SAMPLE_KERNELS ${OFFLOAD_HAVE_CUDA})
if(OFFLOAD_ONE_ARCHITECTURE AND NOT "${CMAKE_CUDA_ARCHITECTURES_NATIVE}" MATCHES "^[0-9]+")
  set(OFFLOAD_SAMPLE_KERNELS OFF)
endif()
if(OFFLOAD_HAVE_CUDA)
  message(STATUS "CUDA back end: built, with CUDA ${CMAKE_CUDA_COMPILER_VERSION}")
  # kernels/channel_packets.hpp has two forms.
  if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 12.4)
    message(STATUS "CUDA back end: before CUDA 12.4 PTX does not promise 16-byte accesses to be atomic; "
      "it is relied on that the GPU makes them so (docs/evidence/hardware.md)")
  endif()
elseif(OFFLOAD_CUDA STREQUAL "OFF")
  message(STATUS "CUDA back end: left out (OFFLOAD_CUDA=OFF)")
else()
  message(STATUS "CUDA back end: left out (no CUDA compiler found)")
endif()
