# The packages that the suite takes from the distribution.
find_package(Threads REQUIRED)
find_package(spdlog REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto SSL)
find_package(ZLIB REQUIRED)

# Headers alone.
find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)

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
# Makes queues of mlx5 cards to which kernels post; without it everything else is built.
find_library(MLX5_LIBRARY mlx5)
if(MLX5_LIBRARY)
  add_library(rdma::mlx5 UNKNOWN IMPORTED)
  set_target_properties(rdma::mlx5 PROPERTIES IMPORTED_LOCATION ${MLX5_LIBRARY})
endif()

# For metrics. Only the text format of prometheus-cpp is used, not its HTTP server.
find_package(PkgConfig REQUIRED)
pkg_check_modules(MICROHTTPD REQUIRED IMPORTED_TARGET libmicrohttpd)
if(CMAKE_CROSSCOMPILING)
  # Debian's prometheus-cpp-dev depends on a program, so it is installed for one architecture at a time: the
  # headers are the building machine's, the library comes from its own package, which has no plain name.
  find_library(PROMETHEUS_LIBRARY NAMES prometheus-cpp-core libprometheus-cpp-core.so.1.0 REQUIRED)
  add_library(PkgConfig::PROMETHEUS UNKNOWN IMPORTED)
  set_target_properties(PkgConfig::PROMETHEUS PROPERTIES IMPORTED_LOCATION ${PROMETHEUS_LIBRARY})
else()
  pkg_check_modules(PROMETHEUS REQUIRED IMPORTED_TARGET prometheus-cpp-core)
endif()
# HTTP over a UNIX socket, for offload-ctl.
pkg_check_modules(CURL REQUIRED IMPORTED_TARGET libcurl)

if(OFFLOAD_TESTS)
  find_package(GTest REQUIRED)
  # The system's interpreter first: the one that the package python3-pytest serves.
  find_program(OFFLOAD_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
  find_program(OFFLOAD_PYTHON NAMES python3 REQUIRED)
endif()
if(OFFLOAD_BENCH)
  find_package(benchmark REQUIRED)
endif()
