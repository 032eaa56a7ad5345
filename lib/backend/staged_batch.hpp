#pragma once

#include <array>
#include <cstdint>

#include "kernels/batch.hpp"
#include "kernels/serve.hpp"

namespace offload::backend {

/// A batch of one channel's messages on the host: gathered from the channel's slots into memory
/// that is copied to a GPU, and answered into the slots from memory that was copied back. For one
/// thread.
class StagedBatch {
 public:
  /// Over memory that it does not own: both batches with `capacity` bytes of payloads and kSlack
  /// behind them. `capacity` holds the channel's longest message at least.
  StagedBatch(kernels::RequestBatch* requests, const kernels::ResponseBatch* responses,
              std::uint32_t capacity)
      : requests_(requests), responses_(responses), capacity_(capacity) {
    clear();
  }

  void clear() {
    requests_->count = 0;
    bytes_ = 0;
  }

  enum class Taken : std::uint8_t {
    nothing,  ///< it has not come yet
    added,
    refused,  ///< its length is over the limit; its response says so
    full,     ///< it has come, and goes into the next batch
  };
  /// Adds message `sequence` of `channel`, if it has come.
  Taken take(const kernels::ChannelView& channel, std::uint64_t sequence,
             kernels::Staging& staging);

  [[nodiscard]] std::uint32_t count() const { return requests_->count; }
  /// Of the payloads added.
  [[nodiscard]] std::uint32_t bytes() const { return bytes_; }
  [[nodiscard]] std::uint64_t sequence(std::uint32_t i) const { return sequences_[i]; }

  /// Writes the answer to the `i`th message into its slot. False: what came back was no valid
  /// answer, and the response says that the request was refused.
  bool answer(const kernels::ChannelView& channel, std::uint32_t i) const;

 private:
  friend struct Gather;
  bool add(std::uint64_t sequence, const kernels::Request& request);

  kernels::RequestBatch* requests_;
  const kernels::ResponseBatch* responses_;
  std::uint32_t capacity_;
  std::uint32_t bytes_ = 0;
  std::array<std::uint64_t, kernels::kMostInBatch> sequences_{};
};

}  // namespace offload::backend
