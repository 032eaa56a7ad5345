# What the suite takes from the distribution.
find_package(Threads REQUIRED)
find_package(spdlog REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto SSL)
find_package(ZLIB REQUIRED)

find_path(NUMA_INCLUDE_DIR numa.h REQUIRED)
find_library(NUMA_LIBRARY numa REQUIRED)
add_library(numa::numa UNKNOWN IMPORTED)
set_target_properties(numa::numa PROPERTIES
  IMPORTED_LOCATION ${NUMA_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${NUMA_INCLUDE_DIR})

# rdma-core: verbs, and its connection manager.
foreach(library ibverbs rdmacm)
  find_library(${library}_LIBRARY ${library} REQUIRED)
  add_library(rdma::${library} UNKNOWN IMPORTED)
  set_target_properties(rdma::${library} PROPERTIES IMPORTED_LOCATION ${${library}_LIBRARY})
endforeach()
find_path(IBVERBS_INCLUDE_DIR infiniband/verbs.h REQUIRED)
set_target_properties(rdma::ibverbs PROPERTIES
  INTERFACE_INCLUDE_DIRECTORIES ${IBVERBS_INCLUDE_DIR})
# What makes queues of mlx5 cards that kernels post to; without it all else is built.
find_library(MLX5_LIBRARY mlx5)
if(MLX5_LIBRARY)
  add_library(rdma::mlx5 UNKNOWN IMPORTED)
  set_target_properties(rdma::mlx5 PROPERTIES IMPORTED_LOCATION ${MLX5_LIBRARY})
endif()

if(OFFLOAD_TESTS)
  find_package(GTest REQUIRED)
  # The system's interpreter first: the one that the package python3-pytest serves.
  find_program(OFFLOAD_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
  find_program(OFFLOAD_PYTHON NAMES python3 REQUIRED)
endif()
if(OFFLOAD_BENCH)
  find_package(benchmark REQUIRED)
endif()
