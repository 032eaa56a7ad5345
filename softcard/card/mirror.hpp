#pragma once

#include <cstddef>
#include <span>

namespace offload::rdma::model {

/// Memory that the card's thread cannot access by pointers, such as that of a GPU. The card works
/// on a copy, of which it has parts read before it looks at them, and written after it has changed
/// them. Other memory has no copy: both calls do nothing then.
class Mirror {
 public:
  Mirror() = default;
  Mirror& operator=(Mirror&&) = delete;
  virtual ~Mirror() = default;

  /// Reads that part of the memory into the copy.
  virtual void fetch(std::span<const std::byte> copy) = 0;
  /// Writes that part of the copy to the memory, its last word behind the rest: a kernel that polls
  /// for it relies on that.
  virtual void store(std::span<const std::byte> copy) = 0;
};

}  // namespace offload::rdma::model
