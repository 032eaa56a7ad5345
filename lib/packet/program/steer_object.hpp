#pragma once

#include <cstddef>
#include <span>

namespace offload::packet {

/// The XDP program as clang compiled it when this was built: an ELF object, for libbpf.
std::span<const std::byte> steer_object() noexcept;

}  // namespace offload::packet
