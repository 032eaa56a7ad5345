#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "kernels/graph/batch.hpp"
#include "kernels/serve.hpp"

namespace offload::backend {

/// The messages of one launch (kernels/graph/batch.hpp) on the host: gathered from a channel's
/// slots into memory that is copied to a GPU, and answered into the slots from memory that was
/// copied back. A slot's messages, one or a batch, go into one launch together. For one thread.
class StagedBatch {
 public:
  /// Over memory that it does not own: both batches with `capacity` bytes of payloads and kSlack
  /// behind them. `capacity`: at least kernels::room_of_slot() of the channel's longest message.
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
    nothing,  ///< it has not come yet
    added,
    refused,  ///< its length is over the limit, or its batch is none; its response says so
    full,     ///< it has come, and goes into the next launch
  };
  /// Adds what slot `sequence` of `channel` carries, if it has come.
  Taken take(const kernels::ChannelView& channel, std::uint64_t sequence,
             kernels::Staging& staging);

  /// Messages.
  [[nodiscard]] std::uint32_t count() const { return requests_->count; }
  /// Of the payloads added.
  [[nodiscard]] std::uint32_t bytes() const { return bytes_; }
  /// Slots that they came in.
  [[nodiscard]] std::uint32_t slots() const { return slot_count_; }
  [[nodiscard]] std::uint64_t sequence(std::uint32_t slot) const { return slots_[slot].sequence; }

  /// Writes the response of the `i`th slot. False: what came back for one of its messages was no
  /// valid response, and its frame, or if it is alone the slot's header, says that it was refused.
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
