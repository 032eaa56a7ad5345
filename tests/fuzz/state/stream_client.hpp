#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/clock.hpp"
#include "core/fd.hpp"
#include "protocol/frame.hpp"
#include "tests/fuzz/state/script.hpp"

namespace offload::fuzz {

using Bytes = std::vector<std::byte>;

/// Makes a frame, or an invalid one. Operands: form, u16 length. `next_byte` makes payloads differ.
Bytes make_client_frame(Script& script, unsigned& next_byte);

/// The events that may affect a client without a fault of the server, at this point of the script.
struct Allowed {
  core::Duration passed{};         ///< since the script began
  core::Duration frame_timeout{};  ///< 0: never
  core::Duration idle_timeout{};
  core::Duration output_timeout{};
  core::Duration request_timeout{};
  bool out_of_memory = false;
  bool worker_failed = false;
  bool no_worker = false;
  bool draining = false;
};

/// One client of a server, with a separate reader for the server's frames: it knows the pending
/// answers. They must be its requests reversed, one each, in order, or an error for which there was
/// a reason.
class StreamClient {
 public:
  /// The maximum number of bytes of a request.
  static constexpr std::uint32_t kLongest = 1000;

  StreamClient(core::Fd socket, core::Duration now) : socket_(std::move(socket)), since_(now) {}

  /// Gives all but the last `kept` bytes of the pending output to the kernel, as far as it takes
  /// them.
  void append(std::span<const std::byte> bytes) {
    outbox_.insert(outbox_.end(), bytes.begin(), bytes.end());
  }
  void send(core::Duration now, std::size_t kept = 0);
  /// Reads up to `most` bytes and checks them. Returns whether there were any.
  bool read(std::size_t most, const Allowed& allowed);
  void end_sending();
  /// Closes the socket, even with unread bytes.
  void reset() { socket_.reset(); }

  /// Notes that a worker may have lied about all requests that are not yet answered.
  void distrust() noexcept { trusted_from_ = requests_.size(); }

  [[nodiscard]] bool connected() const noexcept { return socket_.valid(); }
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  /// Checks that all requests are answered; call it once nothing is in progress any more.
  void check_quiet(const Allowed& allowed) const;

 private:
  struct Request {
    Bytes payload;
    core::Duration begun;  ///< when its first byte was sent
    core::Duration whole;  ///< its last
  };

  void parse_sent(core::Duration now);
  [[nodiscard]] core::Duration frame_took(core::Duration now) const;
  [[nodiscard]] core::Duration was_idle(core::Duration now) const;
  void take_frames(const Allowed& allowed);
  void take_response(std::span<const std::byte> payload);
  void take_error(protocol::Refusal reason, const Allowed& allowed);

  core::Fd socket_;
  core::Duration since_;  ///< when it connected
  Bytes outbox_;
  bool sends_no_more_ = false;

  Bytes sent_;  ///< that is no whole frame yet
  core::Duration begun_{};
  std::vector<Request> requests_;
  std::optional<protocol::Refusal> breach_;  ///< of the protocol, by this client
  std::size_t trusted_from_ = 0;

  Bytes received_;
  std::size_t answered_ = 0;
  bool may_be_culprit_ = false;  ///< workers were lost with its last request: it is closed
  std::optional<protocol::Refusal> last_word_;  ///< after which nothing may come
  bool ended_ = false;
};

}  // namespace offload::fuzz
