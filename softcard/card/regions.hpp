#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>

namespace offload::rdma::model {

/// The rights of a peer to a memory, or the access that a queue pair gives.
struct RemoteRights {
  bool read = false;
  bool write = false;
  bool atomic = false;
};

/// Memory under a key.
struct Region {
  std::uint64_t address = 0;  ///< of its first byte, as entries name it
  std::span<std::byte> bytes;
  RemoteRights rights;
  bool can_be_written = true;  ///< by operations of its owner
  std::uint32_t domain = 0;    ///< the protection domain's number
};

/// The memory that a card may use, by its keys. A queue pair sees the regions of its own protection
/// domain only.
class Regions {
 public:
  void add(std::uint32_t key, const Region& region) { regions_[key] = region; }
  void remove(std::uint32_t key) { regions_.erase(key); }

  /// Returns the region, or null.
  [[nodiscard]] const Region* find(std::uint32_t key, std::uint32_t domain) const;
  /// Returns these bytes of a region, or none unless all of them are in it.
  static std::span<std::byte> part(const Region* region, std::uint64_t address,
                                   std::uint64_t length);

 private:
  std::unordered_map<std::uint32_t, Region> regions_;
};

}  // namespace offload::rdma::model
