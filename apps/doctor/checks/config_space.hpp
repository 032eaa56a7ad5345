#pragma once

#include <cstdint>
#include <string>

/// Reads the configuration space of a PCI function, which sysfs has in `config`
/// (PCI Express Base Specification, chapter 7). Only root reads more than its first 64 bytes.
namespace offload::doctor {

enum class FeatureState : std::uint8_t { unreadable, off, on };

/// Returns whether a bridge redirects writes between devices below it to the root complex.
FeatureState acs_redirects(const std::string& space);

/// Returns whether a function may mark its writes as free to overtake (Device Control, bit 4).
FeatureState relaxed_ordering(const std::string& space);

}  // namespace offload::doctor
