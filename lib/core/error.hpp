#pragma once

#include <cerrno>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace offload::core {

/// The kind of an error. Setup code throws Error with one of these; the data path returns it in a
/// Status. The kinds are those of DOCA's doca_error_t that a call of this library can report.
enum class ErrorCode : std::uint8_t {
  invalid_value,
  not_supported,
  not_permitted,
  not_found,
  already_exists,
  in_use,
  again,
  in_progress,
  no_memory,
  full,
  empty,
  no_lock,
  timed_out,
  not_connected,
  connection_reset,
  connection_aborted,
  connection_in_progress,
  shutdown,
  initialization,
  bad_state,
  unsupported_version,
  bad_message,
  io_failed,
  driver,
  operating_system,
  unexpected,
};

/// "timed_out", "driver", ...
std::string_view name_of(ErrorCode code) noexcept;

/// A description for people: "a time limit was reached first", ...
std::string_view describe(ErrorCode code) noexcept;

/// The status code behind an error, as the operating system or a driver reported it.
struct Cause {
  enum class Domain : std::uint8_t {
    none,
    system,           ///< errno
    cuda,             ///< cudaError_t
    work_completion,  ///< ibv_wc_status, with the vendor's own code beside it
  };
  Domain domain = Domain::none;
  int status = 0;
  std::uint32_t vendor = 0;

  friend bool operator==(const Cause&, const Cause&) = default;
};

/// The exception for a setup step that failed: its kind, the step as text, and the cause.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& what, Cause cause = {})
      : std::runtime_error(what), code_(code), cause_(cause) {}

  [[nodiscard]] ErrorCode code() const noexcept { return code_; }
  [[nodiscard]] const Cause& cause() const noexcept { return cause_; }
  /// The errno behind the error, 0 if there is none.
  [[nodiscard]] int system_errno() const noexcept {
    return cause_.domain == Cause::Domain::system ? cause_.status : 0;
  }

 private:
  ErrorCode code_;
  Cause cause_;
};

/// Throws the Error (bad_state) for a call that an object's state does not allow:
/// "memory region 'x' is started: cannot add a range".
[[noreturn]] void throw_bad_state(std::string_view object, std::string_view state,
                                  std::string_view action);

/// Throws the Error for a failed system call: "`action`: description of `errnum`".
[[noreturn]] void throw_errno(const std::string& action, int errnum = errno);

/// Passes a system call's result through; throws the Error for errno if it is negative.
template <class Result>
Result check_errno(Result result, std::string_view action) {
  if (result < 0) {
    const int errnum = errno;  // before anything else can change it
    throw_errno(std::string(action), errnum);
  }
  return result;
}

/// The text for an errno value. Any thread.
std::string describe_errno(int errnum);

}  // namespace offload::core
