#pragma once

#include <cstdint>
#include <string>

#include "kernels/graph/batch.hpp"

namespace offload::backend {

/// A device that answers batches (kernels/graph/batch.hpp), several at a time: a GPU. Made by one
/// thread, used by another from start_thread on, and by the first again once that thread has ended.
class BatchProcessor {
 public:
  enum class State : std::uint8_t { running, done, failed };

  BatchProcessor() = default;
  BatchProcessor(const BatchProcessor&) = delete;
  BatchProcessor& operator=(const BatchProcessor&) = delete;
  /// To be called when no batch is running.
  virtual ~BatchProcessor() = default;

  /// The number of batches that it has memory for.
  [[nodiscard]] virtual std::uint32_t batches() const = 0;
  /// Room for the payloads of a batch, bytes each way: kernels::room_of_slot() at least.
  [[nodiscard]] virtual std::uint32_t capacity() const = 0;
  /// Batch `i` in host memory: written before launch, read after look() returned done.
  virtual kernels::RequestBatch* requests(std::uint32_t i) = 0;
  virtual kernels::ResponseBatch* responses(std::uint32_t i) = 0;

  /// Called by the thread that will use it.
  virtual void start_thread() = 0;
  /// Starts batch `i`, which is not running, with `bytes` of payloads, at least 1. False: it
  /// failed.
  virtual bool launch(std::uint32_t i, std::uint32_t bytes) = 0;
  /// The state of batch `i`, which was launched. Does not wait.
  virtual State look(std::uint32_t i) = 0;
  /// Why the first call failed that did.
  [[nodiscard]] virtual std::string failure() const = 0;
};

}  // namespace offload::backend
