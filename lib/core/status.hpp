#pragma once

#include <optional>

#include "core/error.hpp"

namespace offload::core {

/// The result of a call of the data path, or of a task: ok, or the kind of the error. Setup throws
/// Error instead.
class Status {
 public:
  constexpr Status() noexcept = default;
  /// Implicit, for `return ErrorCode::bad_state;`.
  constexpr Status(ErrorCode error) noexcept : error_(error) {}

  [[nodiscard]] constexpr bool ok() const noexcept { return !error_.has_value(); }
  /// Precondition: !ok().
  [[nodiscard]] constexpr ErrorCode error() const noexcept { return *error_; }

  friend constexpr bool operator==(const Status&, const Status&) = default;

 private:
  std::optional<ErrorCode> error_;
};

}  // namespace offload::core
