#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "copy/copy_context.hpp"
#include "gpu/cuda_memory.hpp"

namespace offload::gpu {

/// Copies by a GPU's copy engine, between any memory that CUDA knows: of the GPU, pinned, of the
/// host. Memory of the host that is not pinned works, but the call that submits waits for the bytes
/// to be read. Each buffer of a source is a copy of its own to CUDA.
///
/// Submission says `full` when `most_in_flight` tasks are under way, and `driver` where CUDA takes
/// a copy for wrong. Copies under way end before a stop does; their tasks end with `shutdown`.
/// Works on the device that is current when it starts.
class CudaCopyContext final : public copy::CopyContext {
 public:
  /// Each is a call of CUDA, microseconds, in the call that submits.
  static constexpr std::size_t kMostElements = 16;

  /// On a stream of its own, made at each start. Throws Error (invalid_value) for none in flight.
  explicit CudaCopyContext(std::size_t most_in_flight, std::string name = "CUDA copy");
  /// On `stream`, adopted or borrowed, of the device that is current at the start. Copies run in
  /// the order of whatever else is on it.
  CudaCopyContext(std::size_t most_in_flight, Stream stream, std::string name = "CUDA copy");
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

  bool poll_stop();
  void wait_for_stream() noexcept;

  std::size_t most_in_flight_;
  bool makes_stream_;
  std::optional<Stream> stream_;
  std::vector<Event> events_;
  std::vector<std::size_t> free_;  ///< of events_, those that belong to no task
};

}  // namespace offload::gpu
