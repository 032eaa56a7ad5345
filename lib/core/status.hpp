#pragma once

#include <cstdint>

#include "core/error.hpp"

namespace offload::core {

/// The result of a call of the data path, or of a task: ok, or the kind of the error. Setup throws
/// Error instead.
class Status {
 public:
  constexpr Status() noexcept = default;
  /// Implicit, for `return ErrorCode::bad_state;`.
  constexpr Status(ErrorCode error) noexcept : word_(static_cast<std::uint32_t>(error) + 1) {}

  [[nodiscard]] constexpr bool ok() const noexcept { return word_ == 0; }
  /// Precondition: !ok().
  [[nodiscard]] constexpr ErrorCode error() const noexcept {
    return static_cast<ErrorCode>(word_ - 1);
  }

  friend constexpr bool operator==(const Status&, const Status&) = default;

 private:
  std::uint32_t word_ = 0;  ///< the error plus 1; one word, which travels in a register
};

}  // namespace offload::core
