#pragma once

#include <cstdint>
#include <string>

#include "kernels/batch.hpp"

namespace offload::backend {

/// Answers batches by itself, several at a time: a GPU. Made by one thread, used by another after
/// start_thread, and by the first again when that one has ended.
class BatchProcessor {
 public:
  enum class State : std::uint8_t { running, done, failed };

  BatchProcessor() = default;
  BatchProcessor(const BatchProcessor&) = delete;
  BatchProcessor& operator=(const BatchProcessor&) = delete;
  /// No batch is running.
  virtual ~BatchProcessor() = default;

  /// How many batches it has memory for.
  [[nodiscard]] virtual std::uint32_t batches() const = 0;
  /// Of the payloads of a batch, bytes each way.
  [[nodiscard]] virtual std::uint32_t capacity() const = 0;
  /// The memory of batch `i` on the host: written before launch, read after it was seen done.
  virtual kernels::RequestBatch* requests(std::uint32_t i) = 0;
  virtual kernels::ResponseBatch* responses(std::uint32_t i) = 0;

  /// Called by the thread that will use it.
  virtual void start_thread() = 0;
  /// Starts batch `i`, which is not running, with `bytes` of payloads, at least 1. False: it
  /// failed.
  virtual bool launch(std::uint32_t i, std::uint32_t bytes) = 0;
  /// How batch `i` is, which was launched. Does not wait.
  virtual State look(std::uint32_t i) = 0;
  /// Why something failed.
  [[nodiscard]] virtual std::string failure() const = 0;
};

}  // namespace offload::backend
