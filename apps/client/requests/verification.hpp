#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/client/requests/service.hpp"
#include "apps/client/requests/size_mix.hpp"
#include "core/error.hpp"
#include "core/signals.hpp"

namespace offload::client {

/// The error of a file or command that the user named for requests and answers: exit status 2.
class InvalidInput : public core::Error {
 public:
  explicit InvalidInput(const std::string& what) : Error(core::ErrorCode::invalid_value, what) {}
};

/// How responses are checked: --verify.
struct Verification {
  enum class Kind : std::uint8_t {
    builtin,   ///< each byte, as the client computes it for --service
    none,      ///< only that the response is one by the protocol
    length,    ///< its length: that of the request, or `bytes`
    file,      ///< each byte: the content of a file, whatever the request
    command,   ///< each byte: the output of a command that reads the request
    recorded,  ///< each byte: the response that follows the request in the file of --requests
  };
  Kind kind = Kind::builtin;
  std::optional<std::uint32_t> bytes;
  std::string argument;          ///< the path or the command
  std::string text = "builtin";  ///< as said

  /// Parses "builtin", "none", "length", "length:BYTES", "file:PATH", "command:COMMAND" or
  /// "recorded"; nothing for any other text.
  static std::optional<Verification> parse(const std::string& text);
};

/// The condition that a response must meet.
struct Expected {
  static constexpr std::uint32_t kAnyLength = UINT32_MAX;

  Expected() = default;
  /// Exactly these bytes, which must outlive it.
  Expected(std::span<const std::byte> content) noexcept  // NOLINT(google-explicit-constructor)
      : bytes(content.data()), length(static_cast<std::uint32_t>(content.size())) {}
  /// Any bytes of this length, which may be kAnyLength.
  static Expected of_length(std::uint32_t length) noexcept {
    Expected expected;
    expected.length = length;
    return expected;
  }

  const std::byte* bytes = nullptr;  ///< null: any
  std::uint32_t length = 0;
};

/// Says what the response to a request must be. Computes, reads and runs what that takes. Used
/// before a run, by one thread.
class Answers {
 public:
  /// Those of a built-in service.
  Answers(Service service) noexcept : service_(service) {}  // NOLINT(google-explicit-constructor)
  /// `signals`: end the wait for a command. Throws InvalidInput for a file that cannot be read.
  Answers(Verification verification, Service service, const core::Signals& signals);

  /// Returns what the response to `request` must be; valid until the next call. Throws
  /// InvalidInput if a command fails, and core::Interrupted.
  Expected to(std::span<const std::byte> request);

  /// Returns whether the responses are those of a Recording, which has them.
  [[nodiscard]] bool are_recorded() const noexcept {
    return verification_.kind == Verification::Kind::recorded;
  }
  /// Returns for how many different requests of each of `classes` sizes the answers should be asked
  /// for, at most: a command is run for each.
  [[nodiscard]] std::size_t most_of_class(std::size_t classes) const noexcept;

 private:
  Verification verification_;
  Service service_ = Service::reverse;
  const core::Signals* signals_ = nullptr;
  std::vector<std::byte> last_request_;
  std::vector<std::byte> answer_;
  bool has_answer_ = false;
};

/// Reads a whole file of at most `most` bytes. Throws InvalidInput.
std::vector<std::byte> read_bytes(const std::string& path, std::size_t most);

}  // namespace offload::client
