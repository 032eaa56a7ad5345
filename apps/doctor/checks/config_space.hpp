#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

/// Reads the configuration space of a PCI function, which sysfs has in `config`
/// (PCI Express Base Specification, chapter 7). Only root reads more than its first 64 bytes.
namespace offload::doctor {

enum class FeatureState : std::uint8_t { unreadable, off, on };

inline constexpr std::size_t kFirstPointer = 0x34;
inline constexpr std::size_t kFirstCapability = 0x40;
inline constexpr std::size_t kMostCapabilities = 48;  ///< each of 4 bytes at least
inline constexpr std::uint32_t kExpressCapability = 0x10;
inline constexpr std::size_t kDeviceControl = 8;  ///< bytes behind the capability's begin
inline constexpr std::uint32_t kRelaxedOrdering = 1U << 4;
inline constexpr std::size_t kFirstExtended = 0x100;
inline constexpr std::uint32_t kAcsCapability = 0x000d;
inline constexpr std::size_t kAcsControl = 6;

/// Request and completion redirect, and upstream forwarding: what sends a peer's writes through the
/// root complex.
inline constexpr std::uint32_t kRedirects = 0b0001'1100;

inline std::uint32_t word_at(const std::string& space, std::size_t at, std::size_t bytes) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    word |= static_cast<std::uint32_t>(static_cast<unsigned char>(space[at + i])) << (8 * i);
  }
  return word;
}

inline FeatureState setting(bool is_on) {
  return is_on ? FeatureState::on : FeatureState::off;
}

/// Returns whether a bridge redirects writes between devices below it to the root complex.
inline FeatureState acs_redirects(const std::string& space) {
  if (space.size() <= kFirstExtended + 4) return FeatureState::unreadable;
  std::size_t at = kFirstExtended;
  // Each capability names the next: a list that goes round would be longer than there is room.
  for (std::size_t looked = 0; looked < space.size() / 4; ++looked) {
    if (at < kFirstExtended || at + kAcsControl + 2 > space.size()) return FeatureState::off;
    const std::uint32_t header = word_at(space, at, 4);
    if ((header & 0xffffU) == kAcsCapability) {
      return setting((word_at(space, at + kAcsControl, 2) & kRedirects) != 0);
    }
    at = header >> 20U;
  }
  return FeatureState::off;
}

/// Returns whether a function may mark its writes as free to overtake (Device Control, bit 4).
inline FeatureState relaxed_ordering(const std::string& space) {
  if (space.size() < kFirstExtended) return FeatureState::unreadable;
  std::size_t at = word_at(space, kFirstPointer, 1);
  for (std::size_t looked = 0; looked < kMostCapabilities; ++looked) {
    if (at < kFirstCapability || at + kDeviceControl + 2 > kFirstExtended) return FeatureState::off;
    if (word_at(space, at, 1) == kExpressCapability) {
      return setting((word_at(space, at + kDeviceControl, 2) & kRelaxedOrdering) != 0);
    }
    at = word_at(space, at + 1, 1);
  }
  return FeatureState::off;
}

}  // namespace offload::doctor
