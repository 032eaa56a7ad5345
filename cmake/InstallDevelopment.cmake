# The interface for other programs, as the CMake package dpu-gpu-offload and by pkg-config: the clients' end of the
# wire format, the headers of device code, and the parts of a service module. These are the things that other projects
# cannot get in another way: bytes that docs/reference/wire-protocol.md calls stable, formats of network cards, and an
# interface with a version (kernels/module/service_interface.hpp). All other code belongs to the programs; transports
# and back ends are written in the source tree.
include(CMakePackageConfigHelpers)
set(headers ${CMAKE_INSTALL_INCLUDEDIR}/dpu-gpu-offload)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/dpu-gpu-offload)

# Static, as C++ has no binary interface to promise; it needs no other library.
add_library(offload_client_protocol STATIC lib/protocol/frame.cpp lib/core/escape.cpp)
set_target_properties(offload_client_protocol PROPERTIES EXPORT_NAME protocol
  OUTPUT_NAME dpu-gpu-offload-protocol POSITION_INDEPENDENT_CODE ON)
target_compile_features(offload_client_protocol PUBLIC cxx_std_20)
target_link_libraries(offload_client_protocol PRIVATE $<BUILD_INTERFACE:offload_flags>)
target_sources(offload_client_protocol PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/lib
  FILES lib/protocol/bytes.hpp lib/protocol/frame.hpp)

# The headers include the worker's loop and its kernels, which a service module instantiates. They do not include the
# built-in services, except echo, which sends batches.
file(GLOB device_headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} kernels/*.hpp kernels/*.cuh
  kernels/comch/*.hpp kernels/graph/*.hpp kernels/graph/*.cuh kernels/module/*.hpp kernels/packets/*.hpp kernels/packets/*.cuh
  kernels/rdma/*.hpp kernels/rdma_tasks/*.hpp kernels/tasks/*.hpp)
list(REMOVE_ITEM device_headers kernels/crc32c.hpp kernels/services.hpp kernels/module/built_in.hpp)
list(APPEND device_headers kernels/services/echo.hpp)
add_library(offload_device_headers INTERFACE)
add_library(dpu-gpu-offload::device ALIAS offload_device_headers)
set_target_properties(offload_device_headers PROPERTIES EXPORT_NAME device)
target_compile_features(offload_device_headers INTERFACE cxx_std_17)
target_sources(offload_device_headers INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}
  FILES ${device_headers})

# The layout is that of the installation, where --service-source looks beside the programs.
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/include/dpu-gpu-offload)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/kernels ${PROJECT_BINARY_DIR}/include/dpu-gpu-offload/kernels SYMBOLIC)

install(TARGETS offload_client_protocol offload_device_headers EXPORT dpu-gpu-offload COMPONENT dev
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} FILE_SET HEADERS DESTINATION ${headers})
install(EXPORT dpu-gpu-offload NAMESPACE dpu-gpu-offload:: COMPONENT dev DESTINATION ${package}
  FILE dpu-gpu-offload-targets.cmake)
configure_package_config_file(cmake/dpu-gpu-offload-config.cmake.in
  ${PROJECT_BINARY_DIR}/dpu-gpu-offload-config.cmake INSTALL_DESTINATION ${package})
# Before 1.0 a minor version may change the interface that a program is compiled against.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/dpu-gpu-offload-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/dpu-gpu-offload-config.cmake
  ${PROJECT_BINARY_DIR}/dpu-gpu-offload-config-version.cmake cmake/AddService.cmake cmake/service-exports.map DESTINATION ${package} COMPONENT dev)
# Where it is says where the rest is, so that "cmake --install --prefix" holds.
file(RELATIVE_PATH prefix_of_pc ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/dpu-gpu-offload.pc.in ${PROJECT_BINARY_DIR}/dpu-gpu-offload.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/dpu-gpu-offload.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
