# Makes memory errors harder to exploit. Libraries and programs link offload_hardening;
# scripts/checks/hardening looks for it in the programs. Tests are compiled without, some of them not
# optimised, and sanitizers do better by themselves.
option(OFFLOAD_HARDENING "Compile and link with the platform's hardening" ON)
add_library(offload_hardening INTERFACE)
if(OFFLOAD_HARDENING AND NOT OFFLOAD_SANITIZE)
  include(CheckCXXCompilerFlag)
  set(flags -fPIE)
  # The last two are x86's and ARM's protection of jumps and returns.
  foreach(flag -fstack-protector-strong -fstack-clash-protection -fcf-protection=full
      -mbranch-protection=standard)
    string(MAKE_C_IDENTIFIER "OFFLOAD_HAVE${flag}" have)
    check_cxx_compiler_flag("-Werror ${flag}" ${have})
    if(${have})
      list(APPEND flags ${flag})
    endif()
  endforeach()
  # Level 3 (g++ 12, clang 9) also checks sizes that are known at run time only. Needs an optimised build.
  check_cxx_compiler_flag("-Werror -O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3" OFFLOAD_HAVE_FORTIFY_3)
  set(fortify $<IF:$<BOOL:${OFFLOAD_HAVE_FORTIFY_3}>,3,2>)
  list(JOIN flags "," host_flags)
  target_compile_options(offload_hardening INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:${flags}>
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release,RelWithDebInfo,MinSizeRel>>:-U_FORTIFY_SOURCE
      -D_FORTIFY_SOURCE=${fortify}>
    # Without FORTIFY_SOURCE: its wrappers of memcpy and others would also be used in device code.
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${host_flags}>)
  target_link_options(offload_hardening INTERFACE
    -pie LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack)
endif()
