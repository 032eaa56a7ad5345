# What "cmake --install" puts where: programs with their man pages, completion, units and documents, each part
# as a component. The libraries are static and in the programs: they are not installed.
include(GNUInstallDirs)
set(OFFLOAD_SYSTEMD_UNIT_DIR lib/systemd/system CACHE STRING "Where units go, below the prefix or absolute")
set(OFFLOAD_DEFAULTS_DIR ${CMAKE_INSTALL_FULL_SYSCONFDIR}/default CACHE STRING "Where the units' options are")
# A program that this machine cannot run says nothing about itself.
find_program(OFFLOAD_HELP2MAN help2man)
if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
  set(OFFLOAD_HELP2MAN "")
endif()

# offload_install(PROGRAM COMPONENT SUMMARY): with its man page, where help2man is installed.
function(offload_install program component summary)
  install(TARGETS ${program} COMPONENT ${component})
  install(FILES ${PROJECT_SOURCE_DIR}/deploy/completion/offload RENAME ${program} COMPONENT ${component}
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  if(NOT OFFLOAD_HELP2MAN)
    return()
  endif()
  set(page ${PROJECT_BINARY_DIR}/man/${program}.1)
  set(maker ${PROJECT_SOURCE_DIR}/deploy/man/make-page)
  add_custom_command(OUTPUT ${page}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/man
    COMMAND ${maker} $<TARGET_FILE:${program}> ${summary} ${page}
    DEPENDS ${program} ${maker} ${PROJECT_SOURCE_DIR}/deploy/man/see-also.h2m VERBATIM)
  set_property(GLOBAL APPEND PROPERTY OFFLOAD_MAN_PAGES ${page})
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT ${component})
endfunction()

# offload_install_unit(PROGRAM COMPONENT): its unit, and the file with its options.
function(offload_install_unit program component)
  configure_file(${PROJECT_SOURCE_DIR}/deploy/systemd/${program}@.service.in
    ${PROJECT_BINARY_DIR}/systemd/${program}@.service @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/systemd/${program}@.service
    DESTINATION ${OFFLOAD_SYSTEMD_UNIT_DIR} COMPONENT ${component})
  install(FILES ${PROJECT_SOURCE_DIR}/deploy/systemd/${program}.default RENAME ${program}
    DESTINATION ${OFFLOAD_DEFAULTS_DIR} COMPONENT ${component})
endfunction()

offload_install(offload-server server "accepts TCP clients and has a worker answer their requests")
offload_install_unit(offload-server server)
offload_install(offload-worker worker "processes an offload server's requests, on a GPU or processors")
offload_install_unit(offload-worker worker)
offload_install(offload-client tools "loads an offload server and checks every byte of its responses")
offload_install(offload-report tools "merges, shows and compares results of offload-client")
offload_install(offload-ctl tools "gives commands to an offload server or worker that runs")
offload_install(offload-doctor tools "says what a machine lacks for an offload server or worker")
offload_install(offload-rdma tools "runs, checks and measures RDMA operations between two processes")

# For programs of others: the clients' protocol and the device side of channels and RDMA queues, as headers.
set(OFFLOAD_PACKAGE_DIR ${CMAKE_INSTALL_DATADIR}/cmake/dpu-gpu-offload)
set(OFFLOAD_HEADERS_DIR ${CMAKE_INSTALL_INCLUDEDIR}/dpu-gpu-offload)
include(CMakePackageConfigHelpers)
add_library(offload_headers INTERFACE)
set_target_properties(offload_headers PROPERTIES EXPORT_NAME headers)
target_include_directories(offload_headers INTERFACE $<INSTALL_INTERFACE:${OFFLOAD_HEADERS_DIR}>)
target_compile_features(offload_headers INTERFACE cxx_std_20)
install(TARGETS offload_headers EXPORT dpu-gpu-offload COMPONENT dev)
install(EXPORT dpu-gpu-offload NAMESPACE dpu-gpu-offload:: FILE dpu-gpu-offload-config.cmake
  DESTINATION ${OFFLOAD_PACKAGE_DIR} COMPONENT dev)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/dpu-gpu-offload-config-version.cmake
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES ${PROJECT_BINARY_DIR}/dpu-gpu-offload-config-version.cmake DESTINATION ${OFFLOAD_PACKAGE_DIR}
  COMPONENT dev)
install(DIRECTORY kernels DESTINATION ${OFFLOAD_HEADERS_DIR} COMPONENT dev
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh")
install(DIRECTORY lib/protocol DESTINATION ${OFFLOAD_HEADERS_DIR} COMPONENT dev FILES_MATCHING PATTERN "*.hpp")
configure_file(deploy/dpu-gpu-offload.pc.in ${PROJECT_BINARY_DIR}/dpu-gpu-offload.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/dpu-gpu-offload.pc DESTINATION ${CMAKE_INSTALL_DATADIR}/pkgconfig COMPONENT dev)

install(FILES README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc)

get_property(pages GLOBAL PROPERTY OFFLOAD_MAN_PAGES)
add_custom_target(man_pages ALL DEPENDS ${pages})
