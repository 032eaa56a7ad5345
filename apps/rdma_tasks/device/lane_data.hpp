#pragma once

#include <cstddef>
#include <cstdint>

#include "apps/rdma_tasks/device/lane.hpp"
#include "kernels/group.hpp"

/// The data of a lane beside its queue: tickets under way, and the bytes of its messages.
namespace offload::rdma_tool {

/// A lane's place for the tickets of its operations, one for each slot: what lane 0 has stored is
/// everybody's.
template <class Group>
class Tickets {
 public:
  OFFLOAD_HOST_DEVICE Tickets(const Group& group, std::uint64_t* words, std::uint64_t count)
      : group_(group), words_(words), count_(count) {
    for (std::uint64_t i = group.lane(); i < count; i += group.size()) words[i] = 0;
    group.sync();
  }
  OFFLOAD_HOST_DEVICE void set(std::uint64_t operation, std::uint64_t ticket) {
    if (group_.lane() == 0) words_[operation % count_] = ticket + 1;
  }
  /// 0: nothing is under way; else the ticket and 1.
  OFFLOAD_HOST_DEVICE std::uint64_t take(std::uint64_t operation) {
    std::uint64_t word = 0;
    if (group_.lane() == 0) {
      word = words_[operation % count_];
      words_[operation % count_] = 0;
    }
    return kernels::from_first_64(group_, word);
  }
  [[nodiscard]] OFFLOAD_HOST_DEVICE std::uint64_t count() const { return count_; }

 private:
  Group group_;
  std::uint64_t* words_;
  std::uint64_t count_;
};

/// The bytes of a connection's messages, at offsets of its memory.
template <class Group>
class LaneData {
 public:
  OFFLOAD_HOST_DEVICE LaneData(const Group& group, const DeviceWork& work)
      : group_(group), work_(work) {}

  OFFLOAD_HOST_DEVICE void make(std::size_t at, bool from_requester,
                                std::uint64_t iteration) const {
    std::byte* const bytes = work_.memory.here + at;
    if (work_.verify) {
      make_message(group_, bytes, work_.size, key(from_requester, iteration));
    } else if (group_.lane() == 0) {
      bytes[work_.size - 1] = std::byte{last_byte(iteration)};
    }
  }
  [[nodiscard]] OFFLOAD_HOST_DEVICE bool is_right(std::size_t at, bool from_requester,
                                                  std::uint64_t iteration, Mismatch& first) const {
    return is_message(group_, work_.memory.here + at, work_.size, key(from_requester, iteration),
                      first);
  }
  /// Returns the old value that an atomic of an iteration finds.
  [[nodiscard]] OFFLOAD_HOST_DEVICE std::uint64_t word(std::uint64_t iteration) const {
    const PatternWords words(key(false, iteration));
    std::uint64_t word = 0;
    PatternPiece::expected(words, sizeof word, iteration, 0)
        .write(reinterpret_cast<std::byte*>(&word), 0);
    return word;
  }
  [[nodiscard]] OFFLOAD_HOST_DEVICE const std::uint64_t* word_at(std::size_t offset) const {
    return reinterpret_cast<const std::uint64_t*>(work_.memory.here + work_.memory.words + offset);
  }

 private:
  [[nodiscard]] OFFLOAD_HOST_DEVICE PatternKey key(bool from_requester,
                                                   std::uint64_t iteration) const {
    return {work_.seed, work_.connection, from_requester, iteration};
  }
  Group group_;
  const DeviceWork& work_;
};

}  // namespace offload::rdma_tool
