#include "packet/program/steer_object.hpp"

// OFFLOAD_STEER_OBJECT: the file. libbpf reads it in place, aligned as an ELF object is.
asm(".pushsection .rodata\n"
    ".balign 16\n"
    "offload_steer_object: .incbin \"" OFFLOAD_STEER_OBJECT
    "\"\n"
    "offload_steer_object_end:\n"
    ".popsection\n");

extern "C" {
[[gnu::visibility("hidden")]] extern const std::byte offload_steer_object[];
[[gnu::visibility("hidden")]] extern const std::byte offload_steer_object_end[];
}

namespace offload::packet {

std::span<const std::byte> steer_object() noexcept {
  return {offload_steer_object, offload_steer_object_end};
}

}  // namespace offload::packet
