#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "gpu/cuda_stream.hpp"
#include "tasks/copy/copy_context.hpp"
#include "tasks/gpu/event.hpp"

namespace offload::gpu {

/// A copy context on a GPU's copy engine: between any memory that CUDA knows, of the GPU, pinned or
/// of the host. Host memory that is not pinned works, but the submission waits until the bytes are
/// read. Each piece between buffers of both lists is a separate copy for CUDA.
///
/// Submission returns `full` when `most_in_flight` tasks are under way, and `driver` where CUDA
/// refuses a copy. Copies under way end before a stop does; their tasks end with `shutdown`. Works
/// on the device that is current when it starts.
class CudaCopyContext final : public copy::CopyContext {
 public:
  /// Each is a call of CUDA, microseconds, in the call that submits.
  static constexpr std::size_t kMostElements = 16;

  /// Uses its own stream, made at each start; or `stream`, which must outlive this, of the device
  /// that is current at the start: copies run in order with all other work on it. Throws Error
  /// (invalid_value) for 0 in flight.
  explicit CudaCopyContext(std::size_t most_in_flight, std::optional<CudaStreamRef> stream = {},
                           std::string name = "CUDA copy");
  CudaCopyContext(std::size_t, CudaStream&&, std::string = {}) = delete;
  ~CudaCopyContext() override { end(); }

  /// The stream that the copies run on, for work of the caller's own; null while it is idle.
  [[nodiscard]] cudaStream_t native_stream() const noexcept {
    return state() == State::idle ? nullptr : stream().get();
  }

 private:
  Step on_start() override;
  Step on_stop() noexcept override { return in_flight() == 0 ? Step::done : Step::in_progress; }
  void on_abandon() noexcept override { wait_for_stream(); }
  core::Status take(copy::CopyTask& task) noexcept override;
  bool on_poll(std::size_t most) override;

  bool poll_stop();
  void wait_for_stream() noexcept;
  [[nodiscard]] CudaStreamRef stream() const noexcept {
    return given_stream_ ? *given_stream_ : CudaStreamRef(*own_stream_);
  }

  std::size_t most_in_flight_;
  std::optional<CudaStreamRef> given_stream_;
  std::optional<CudaStream> own_stream_;  ///< made at each start where none was given
  std::vector<Event> events_;
  std::vector<std::size_t> free_;  ///< indices of the events that belong to no task
};

}  // namespace offload::gpu
