#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "copy/copy_context.hpp"
#include "gpu/cuda_memory.hpp"

namespace offload::gpu {

/// Copies by a GPU's copy engine, between any memory that CUDA knows: of the GPU, pinned, of the
/// host. Source and destination of a task may be addresses on the GPU. Memory of the host that is
/// not pinned works, but the call that submits waits for the bytes to be read.
///
/// Submission says `full` when `most_in_flight` copies are under way, and `driver` where CUDA takes
/// the copy for wrong. Copies under way end before a stop does; their tasks end with `shutdown`.
/// Works on the device that is current when it starts, on a stream of its own.
class CudaCopyContext final : public copy::CopyContext {
 public:
  /// Throws Error (invalid_value) for none in flight.
  explicit CudaCopyContext(std::size_t most_in_flight, std::string name = "CUDA copy");
  ~CudaCopyContext() override;

  /// The stream that the copies run on, for work of the caller's own; null while it is idle.
  [[nodiscard]] cudaStream_t native_stream() const noexcept {
    return state() == State::idle ? nullptr : stream_->get();
  }

 private:
  Step on_start() override;
  Step on_stop() noexcept override;
  void on_abandon() noexcept override;
  core::Status take(copy::CopyTask& task) noexcept override;
  bool on_poll(std::size_t most) override;

  std::size_t most_in_flight_;
  std::unique_ptr<Stream> stream_;
  std::vector<Event> events_;
  std::vector<std::size_t> free_;  ///< of events_, those that belong to no task
};

}  // namespace offload::gpu
