# Toolchain: for a DPU's processors, by the distribution's cross compiler and its packages of architecture arm64
# (scripts/setup aarch64). Programs run under qemu-user: they are real, and the order of their memory accesses is
# not, which is the building machine's.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
# CMake's own modules call pkg-config, for example to find OpenSSL.
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
find_program(OFFLOAD_QEMU NAMES qemu-aarch64-static qemu-aarch64)
if(OFFLOAD_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${OFFLOAD_QEMU})
endif()
