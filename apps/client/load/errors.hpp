#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "protocol/frame.hpp"

namespace offload::client {

/// Why a request has no right response, or a connection is not there.
enum class ErrorKind : std::uint8_t {
  mismatch,         ///< a response with other bytes than expected
  bad_frame,        ///< no frame of the protocol, or one that does not belong there
  late,             ///< right, but after --deadline
  time_out,         ///< nothing came for --response-timeout, or a connection was not answered
  closed,           ///< the connection was closed before the response came
  reset,            ///< the connection failed
  refused,          ///< no program listens
  connect_failed,   ///< connecting failed otherwise
  never_connected,  ///< a connection that was asked for and never came about
  unanswered,       ///< in flight at the end of the run; in the log of requests alone
  first_refusal,    ///< and on: the protocol's refusals, by their codes
};

/// The kind that stands for an error frame with this code; one for all codes that have no name.
ErrorKind kind_of(protocol::Refusal reason) noexcept;
/// The kind for an errno of a connection that failed.
ErrorKind kind_of_errno(int errnum) noexcept;
/// "mismatch"; a refusal's name in the protocol, such as "worker_unavailable".
std::string_view name_of(ErrorKind kind) noexcept;

/// The number of errors of each kind. One thread.
class ErrorCounts {
 public:
  static constexpr std::size_t kKinds = 48;

  void add(ErrorKind kind, std::uint64_t count = 1) noexcept {
    counts_[static_cast<std::size_t>(kind)] += count;
  }
  void merge(const ErrorCounts& other) noexcept {
    for (std::size_t i = 0; i < kKinds; ++i) counts_[i] += other.counts_[i];
  }
  [[nodiscard]] std::uint64_t of(ErrorKind kind) const noexcept {
    return counts_[static_cast<std::size_t>(kind)];
  }
  [[nodiscard]] std::uint64_t total() const noexcept;
  /// Calls `call(name, count)` for each kind that occurred.
  template <class Call>
  void for_each(Call call) const {
    for (std::size_t i = 0; i < kKinds; ++i) {
      if (counts_[i] != 0) call(name_of(static_cast<ErrorKind>(i)), counts_[i]);
    }
  }

 private:
  std::array<std::uint64_t, kKinds> counts_{};
};

}  // namespace offload::client
