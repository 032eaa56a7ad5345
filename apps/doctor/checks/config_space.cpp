#include "apps/doctor/checks/config_space.hpp"

#include <cstddef>

namespace offload::doctor {
namespace {

constexpr std::size_t kFirstPointer = 0x34;
constexpr std::size_t kFirstCapability = 0x40;
constexpr std::size_t kMostCapabilities = 48;  ///< each of 4 bytes at least
constexpr std::uint32_t kExpressCapability = 0x10;
constexpr std::size_t kDeviceControl = 8;  ///< bytes behind the capability's begin
constexpr std::uint32_t kRelaxedOrdering = 1U << 4;

constexpr std::size_t kFirstExtended = 0x100;
constexpr std::uint32_t kAcsCapability = 0x000d;
constexpr std::size_t kAcsControl = 6;
/// Request and completion redirect, and upstream forwarding: what sends a peer's writes through the
/// root complex.
constexpr std::uint32_t kRedirects = 0b0001'1100;

std::uint32_t word_at(const std::string& space, std::size_t at, std::size_t bytes) {
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    word |= static_cast<std::uint32_t>(static_cast<unsigned char>(space[at + i])) << (8 * i);
  }
  return word;
}

FeatureState setting(bool is_on) {
  return is_on ? FeatureState::on : FeatureState::off;
}

}  // namespace

FeatureState acs_redirects(const std::string& space) {
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

FeatureState relaxed_ordering(const std::string& space) {
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
