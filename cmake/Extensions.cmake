# Extensions are built beside server, worker, client and ctl. Each can be left out; the label of its tests is its name.
include(CMakeDependentOption)
option(OFFLOAD_TASKS "Build the extension tasks: counterparts of DOCA Core" ON)
cmake_dependent_option(OFFLOAD_RDMA_TASKS "Build the extension rdma_tasks: RDMA as tasks and from kernels, offload-rdma"
  ON OFFLOAD_TASKS OFF)
cmake_dependent_option(OFFLOAD_DOCA "Build the extension doca: DOCA's interface in C, for programs that are written for it"
  ON OFFLOAD_RDMA_TASKS OFF)
option(OFFLOAD_PACKETS "Build the extension packets: Ethernet by AF_XDP, offload-packets, --udp of the worker" ON)
option(OFFLOAD_REPORT "Build the extension report: offload-report" ON)
option(OFFLOAD_DOCTOR "Build the extension doctor: offload-doctor" ON)

# offload_add_extension(NAME FOLDER...): adds the folders if the extension is built.
macro(offload_add_extension name)
  string(TOUPPER ${name} OFFLOAD_EXTENSION)
  if(OFFLOAD_${OFFLOAD_EXTENSION})
    set(OFFLOAD_EXTENSION ${name})
    foreach(folder ${ARGN})
      add_subdirectory(${folder})
    endforeach()
  endif()
  unset(OFFLOAD_EXTENSION)
endmacro()
