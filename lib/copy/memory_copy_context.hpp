#pragma once

#include <cstddef>
#include <string>

#include "copy/copy_context.hpp"

namespace offload::copy {

/// Copies memory on the thread of its engine, in turns: kBytesAtOnce, then the others on the engine
/// have theirs. Memory at Location::device is not_supported: the processor does not reach it.
class MemoryCopyContext final : public CopyContext {
 public:
  /// Tens of microseconds from memory: what a neighbour on the engine can wait.
  static constexpr std::size_t kBytesAtOnce = 256UL * 1024;
  /// Each is looked at by the call that submits, which is to stay short.
  static constexpr std::size_t kMostElements = 64;

  explicit MemoryCopyContext(std::string name = "memory copy");

 private:
  Step on_stop() noexcept override;
  core::Status take(CopyTask& task) noexcept override;
  bool on_poll(std::size_t most) override;

  /// Copies up to `most` bytes of the first task; how many.
  std::size_t copy_piece(CopyTask& task, std::size_t most) noexcept;

  // Of the first task in flight: how far it has come.
  const memory::Buffer* element_ = nullptr;  ///< to read from; null: it was not begun
  std::size_t offset_ = 0;                   ///< in the data of that
  std::size_t copied_ = 0;                   ///< in all
};

}  // namespace offload::copy
