#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "kernels/graph/batch.hpp"
#include "kernels/serve.hpp"

namespace offload::backend {

/// The messages of one launch (kernels/graph/batch.hpp) on the host: gathered from a channel's
/// slots into memory that is copied to a GPU, and answered into the slots from memory that was
/// copied back. All messages of a slot, one or a batch, are in the same launch. One thread.
class StagedBatch {
 public:
  /// Uses memory that it does not own: both batches have `capacity` bytes of payloads, followed by
  /// kSlack. `capacity`: at least kernels::room_of_slot() of the channel's longest message.
  StagedBatch(kernels::RequestBatch* requests, const kernels::ResponseBatch* responses,
              std::uint32_t capacity)
      : requests_(requests), responses_(responses), capacity_(capacity) {
    clear();
  }

  void clear() {
    requests_->count = 0;
    slot_count_ = 0;
    bytes_ = 0;
  }

  enum class Taken : std::uint8_t {
    nothing,  ///< it has not arrived yet
    added,
    refused,  ///< its length is over the limit, or its batch is invalid; its response says so
    full,     ///< it has arrived, and is for the next launch
  };
  /// Adds the content of slot `sequence` of `channel`, if it has arrived.
  Taken take(const kernels::ChannelView& channel, std::uint64_t sequence,
             kernels::Staging& staging);

  /// Messages.
  [[nodiscard]] std::uint32_t count() const { return requests_->count; }
  /// Returns the number of bytes of the payloads added.
  [[nodiscard]] std::uint32_t bytes() const { return bytes_; }
  /// Returns the number of slots from which they came.
  [[nodiscard]] std::uint32_t slots() const { return slot_count_; }
  [[nodiscard]] std::uint64_t sequence(std::uint32_t slot) const { return slots_[slot].sequence; }

  /// Writes the response of the `i`th slot. Returns false if one of its messages has no valid
  /// response; its frame, or the slot's header for a single message, then says that it was refused.
  bool answer(const kernels::ChannelView& channel, std::uint32_t i,
              kernels::Staging& staging) const;

 private:
  struct TakenSlot {
    std::uint64_t sequence;
    std::uint32_t first;  ///< of its messages here
    std::uint32_t count;  ///< of its batch; 0: it is one message
  };

  bool add(const TakenSlot& slot, const kernels::Request& message);
  bool add_all(const TakenSlot& slot, const kernels::Staging& staging);
  void append(const kernels::Request& message);
  [[nodiscard]] std::optional<kernels::Request> response(std::uint32_t i,
                                                         std::uint32_t max_length) const;
  std::optional<kernels::Request> frames(const TakenSlot& taken, std::uint32_t max_length,
                                         kernels::Staging& staging, bool& all_valid) const;

  kernels::RequestBatch* requests_;
  const kernels::ResponseBatch* responses_;
  std::uint32_t capacity_;
  std::uint32_t bytes_ = 0;
  std::uint32_t slot_count_ = 0;
  std::array<TakenSlot, kernels::kMostInBatch> slots_{};
};

}  // namespace offload::backend
