#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "clients/cpp/src/watch.hpp"
#include "core/clock.hpp"
#include "net/connect_attempt.hpp"
#include "net/socket.hpp"
#include "net/stream.hpp"

namespace offload::clients {

/// Connects to a server: tries all of its addresses in turn, with TLS's handshake if TLS is
/// configured. It never waits: advance() continues when the watch is readable. One thread.
class Dialer {
 public:
  enum class State : std::uint8_t { idle, dialing, connected, failed };

  /// `tls`: nothing for a plain connection. `watch` must outlive it.
  Dialer(Watch& watch, std::vector<net::SocketAddress> addresses,
         std::optional<net::TlsContext> tls)
      : watch_(watch), addresses_(std::move(addresses)), tls_(std::move(tls)) {}
  Dialer& operator=(Dialer&&) = delete;

  /// Begins. With `again` all addresses are tried until `until`, with growing pauses; else once,
  /// each for an equal share of the time that is left.
  void start(core::TimePoint now, core::TimePoint until, bool again);
  State advance(core::TimePoint now);
  /// Gives up an attempt; start() may follow.
  void stop() noexcept;
  /// Makes the next start() begin without a pause.
  void reset_pause() noexcept { pause_ = {}; }

  [[nodiscard]] State state() const noexcept { return state_; }
  /// When advance() has work to do although nothing has happened.
  [[nodiscard]] core::TimePoint next_time() const noexcept;
  /// The connection, once it is there; the dialer is idle afterwards.
  net::Stream take() noexcept;
  /// Why the last attempt failed.
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }

 private:
  void begin_attempt(core::TimePoint now);
  void end_attempt(std::string reason, core::TimePoint now);

  Watch& watch_;
  std::vector<net::SocketAddress> addresses_;
  std::optional<net::TlsContext> tls_;
  State state_ = State::idle;
  bool again_ = false;
  std::size_t next_ = 0;  ///< address
  std::optional<net::ConnectAttempt> attempt_;
  core::TimePoint attempt_until_;
  core::TimePoint until_;
  core::TimePoint not_before_;
  core::Duration pause_{};
  std::string reason_;
};

}  // namespace offload::clients
