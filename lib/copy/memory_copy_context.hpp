#pragma once

#include <cstddef>
#include <string>

#include "copy/copy_context.hpp"

namespace offload::copy {

/// Copies memory on the thread of its engine, in turns: kBytesAtOnce, then the others on the engine
/// have theirs.
class MemoryCopyContext final : public CopyContext {
 public:
  /// Tens of microseconds from memory: what a neighbour on the engine can wait.
  static constexpr std::size_t kBytesAtOnce = 256UL * 1024;

  explicit MemoryCopyContext(std::string name = "memory copy");

 private:
  core::Status take(CopyTask& task) noexcept override;
  bool on_poll(std::size_t most) override;
};

}  // namespace offload::copy
