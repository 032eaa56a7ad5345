# The places of installed files: programs with their man pages, completion, units and documents, each part
# as a component. The libraries are static and in the programs; what others may link: InstallDevelopment.cmake and
# clients/cpp.
include(GNUInstallDirs)
include(InstallDevelopment)
set(OFFLOAD_SYSTEMD_UNIT_DIR lib/systemd/system CACHE STRING "Where units go, below the prefix or absolute")
set(OFFLOAD_DEFAULTS_DIR ${CMAKE_INSTALL_FULL_SYSCONFDIR}/default CACHE STRING "Where the units' options are")
# A program that this machine cannot run says nothing about itself; one with a sanitizer is not for use.
find_program(OFFLOAD_HELP2MAN help2man)
if(OFFLOAD_SANITIZE OR CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
  set(OFFLOAD_HELP2MAN "")
endif()

# offload_install(PROGRAM COMPONENT SUMMARY): with its man page, where help2man is installed. Without its extension
# there is no program.
function(offload_install program component summary)
  if(NOT TARGET ${program})
    return()
  endif()
  install(TARGETS ${program} COMPONENT ${component})
  if(NOT TARGET installed-${component})
    add_custom_target(installed-${component})
  endif()
  add_dependencies(installed-${component} ${program})
  install(FILES ${PROJECT_SOURCE_DIR}/deploy/completion/offload RENAME ${program} COMPONENT ${component}
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${PROJECT_SOURCE_DIR}/deploy/completion/offload.zsh RENAME _${program} COMPONENT ${component}
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
  install(FILES ${PROJECT_SOURCE_DIR}/deploy/completion/offload.fish RENAME ${program}.fish COMPONENT ${component}
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
  if(NOT OFFLOAD_HELP2MAN)
    return()
  endif()
  set(page ${PROJECT_BINARY_DIR}/man/${program}.1)
  set(maker ${PROJECT_SOURCE_DIR}/deploy/man/make-page)
  add_custom_command(OUTPUT ${page}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/man
    COMMAND ${maker} $<TARGET_FILE:${program}> ${summary} ${page}
      ${CMAKE_CROSSCOMPILING_EMULATOR}
    DEPENDS ${program} ${maker} ${PROJECT_SOURCE_DIR}/deploy/man/files.h2m
      ${PROJECT_SOURCE_DIR}/deploy/man/see-also.h2m VERBATIM)
  add_custom_target(page-${program} DEPENDS ${page})
  add_dependencies(installed-${component} page-${program})
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
offload_install(offload-bench tools "answers a question about offload servers: compares them, or finds limits")
offload_install(offload-report tools "merges, shows and compares results of offload-client")
offload_install(offload-ctl tools "gives commands to an offload server or worker that runs")
offload_install(offload-doctor tools "says what a machine lacks for an offload server or worker")
offload_install(offload-rdma tools "runs, checks and measures RDMA operations between two processes")
offload_install(offload-packets tools "receives and sends Ethernet frames on a GPU, or on threads")

# Wireshark of Debian and Ubuntu loads it from there.
install(FILES deploy/wireshark/offload.lua DESTINATION ${CMAKE_INSTALL_LIBDIR}/wireshark/plugins COMPONENT tools)

install(FILES README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc)
install(DIRECTORY deploy/ansible deploy/container deploy/grafana deploy/haproxy deploy/kubernetes deploy/prometheus deploy/slurm
  DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT doc)
install(PROGRAMS deploy/rolling-upgrade DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT doc)

# All that is installed: programs, pages, library. Less than all that is built.
add_custom_target(installed ALL)
add_dependencies(installed installed-server installed-worker installed-tools offload_client_protocol offload_client_library)
if(TARGET offload_doca)
  add_dependencies(installed offload_doca)
endif()
