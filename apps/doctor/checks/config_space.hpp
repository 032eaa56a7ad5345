#pragma once

#include <cstdint>
#include <string>

/// What the configuration space of a PCI function says, as sysfs has it in `config`
/// (PCI Express Base Specification, chapter 7). Only root reads more than its first 64 bytes.
namespace offload::doctor {

enum class Setting : std::uint8_t { unreadable, off, on };

/// Whether a bridge sends what one device below it writes to another through the root complex.
Setting acs_redirects(const std::string& space);

/// Whether a function may mark what it writes as free to overtake (Device Control, bit 4).
Setting relaxed_ordering(const std::string& space);

}  // namespace offload::doctor
