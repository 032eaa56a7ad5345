#pragma once

#include <cstdint>
#include <string>

#include "kernels/graph/batch.hpp"

namespace offload::backend {

/// A device that answers batches (kernels/graph/batch.hpp), several at a time: a GPU. One thread
/// makes it, another uses it from start_thread() on, and the first again after the other has ended.
class BatchProcessor {
 public:
  enum class State : std::uint8_t { running, done, failed };

  BatchProcessor& operator=(BatchProcessor&&) = delete;
  /// Must be called when no batch is running.
  virtual ~BatchProcessor() = default;

  /// Returns the number of batches for which it has memory.
  [[nodiscard]] virtual std::uint32_t batches() const = 0;
  /// Returns the room for payloads of a batch, bytes each way: at least kernels::room_of_slot().
  [[nodiscard]] virtual std::uint32_t capacity() const = 0;
  /// Returns batch `i` in host memory: written before launch(), read after look() returned done.
  virtual kernels::RequestBatch* requests(std::uint32_t i) = 0;
  virtual kernels::ResponseBatch* responses(std::uint32_t i) = 0;

  /// Must be called by the thread that will use it.
  virtual void start_thread() = 0;
  /// Starts batch `i`, which is not running, with `bytes` of payloads, at least 1. Returns false if
  /// that failed.
  virtual bool launch(std::uint32_t i, std::uint32_t bytes) = 0;
  /// Returns the state of batch `i`, which was launched. Does not wait.
  virtual State look(std::uint32_t i) = 0;
  /// Returns why the first failed call failed.
  [[nodiscard]] virtual std::string failure() const = 0;
};

}  // namespace offload::backend
