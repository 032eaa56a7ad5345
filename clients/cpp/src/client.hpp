#pragma once

#include <unistd.h>

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "clients/cpp/include/offload_client.h"
#include "clients/cpp/src/dialer.hpp"
#include "clients/cpp/src/exchange.hpp"
#include "clients/cpp/src/watch.hpp"
#include "net/stream.hpp"

namespace offload::clients {

/// The options of a client, checked, with the defaults filled in.
struct Settings {
  std::string host;
  std::uint16_t port;
  Exchange::Limits limits;
  core::Duration connect_timeout;  ///< Duration::max(): none, also below
  core::Duration timeout;
  core::Duration reconnect_timeout;  ///< zero: it never reconnects
  std::optional<net::TlsContext> tls;
};

/// Reads the options of a program. Throws core::Error: invalid_value, or that of a TLS file.
Settings read_options(const offload_client_options& options);

/// A Client owns a connection and its requests, and reconnects if the options allow it. Calls
/// return an offload_status and throw core::Error or std::bad_alloc, after which the client stays
/// usable.
class Client {
 public:
  /// Looks the name up. Throws core::Error.
  explicit Client(Settings settings);
  Client& operator=(Client&&) = delete;
  /// Ends the connection, in TLS with a close_notify.
  ~Client();

  int connect();
  int submit(const offload_client_request& request);
  /// The next outcome, within `timeout`.
  int wait(core::Duration timeout, Outcome& outcome);
  void abandon() noexcept { exchange_.abandon(); }

  [[nodiscard]] int fd() const noexcept { return watch_.fd(); }
  [[nodiscard]] bool is_idle() const noexcept { return exchange_.is_idle(); }
  /// Why the last connection ended, or the last call failed.
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }
  /// In a forked process: the destructor leaves the parent's connection as it is.
  void disown() noexcept { is_owner_ = false; }

 private:
  bool take(Outcome& outcome);
  bool transfer(core::TimePoint now);
  bool dial(core::TimePoint now);
  bool send();
  bool receive();
  void start(net::Stream stream);
  void hang_up() noexcept;
  void lose(int status, std::string text, bool may_retry);
  void prepare_sleep(core::TimePoint now);

  Settings settings_;
  Watch watch_;
  Exchange exchange_;
  Dialer dialer_;
  net::Stream stream_;  ///< invalid while there is no connection
  bool sending_failed_ = false;
  bool is_blocked_ = false;  ///< the socket takes no more bytes for now
  bool is_lost_ = false;     ///< for good
  bool is_owner_ = true;
  /// When it gives a lost server up; nothing while connections are answered.
  std::optional<core::TimePoint> give_up_at_;
  std::string reason_;
};

}  // namespace offload::clients
