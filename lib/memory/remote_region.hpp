#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "memory/access.hpp"

namespace offload::memory {

/// Memory of a peer, as a network card addresses it. Plain numbers: nothing here dereferences them.
struct RemoteRange {
  std::uint64_t address = 0;
  std::uint64_t length = 0;  ///< bytes
  std::uint32_t key = 0;

  friend bool operator==(const RemoteRange&, const RemoteRange&) = default;
};

/// What a peer lets this process do with its memory over the network. Any thread: nothing changes.
class RemoteRegion {
 public:
  RemoteRegion(Access access, std::vector<RemoteRange> ranges)
      : access_(access), ranges_(std::move(ranges)) {}

  /// Of the remote flags.
  [[nodiscard]] Access access() const noexcept { return access_; }
  [[nodiscard]] const std::vector<RemoteRange>& ranges() const noexcept { return ranges_; }

  /// The range, and so the key, that [address, address + length) lies in wholly; null if none.
  [[nodiscard]] const RemoteRange* find(std::uint64_t address,
                                        std::uint64_t length) const noexcept {
    for (const RemoteRange& range : ranges_) {
      if (address >= range.address && length <= range.length &&
          address - range.address <= range.length - length) {
        return &range;
      }
    }
    return nullptr;
  }

 private:
  Access access_;
  std::vector<RemoteRange> ranges_;
};

}  // namespace offload::memory
