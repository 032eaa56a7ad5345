#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "apps/client/options.hpp"
#include "net/socket.hpp"
#include "tests/client/load/load_fixture.hpp"

namespace offload::client {

/// A server that answers every request with its bytes reversed, except request number `wrong`,
/// which it answers with a wrong first byte.
class ReversingServer {
 public:
  explicit ReversingServer(std::uint64_t wrong = UINT64_MAX)
      : wrong_(wrong),
        listener_(net::listen_tcp(net::resolve("127.0.0.1", 0).front(), 64)),
        thread_([this] { run(); }) {}
  ReversingServer(const ReversingServer&) = delete;
  ReversingServer& operator=(const ReversingServer&) = delete;
  ~ReversingServer() { ended_ = true; }

  [[nodiscard]] std::uint16_t port() const { return net::local_address(listener_.get()).port(); }
  /// Returns the number of requests that it has answered.
  [[nodiscard]] std::uint64_t answered() const noexcept { return answered_; }
  /// Sets whether it reads nothing.
  void set_silent(bool silent) noexcept { silent_ = silent; }

 private:
  void run() {
    std::vector<FakeServer> connections;
    while (!ended_) {
      pollfd watched{listener_.get(), POLLIN, 0};
      if (::poll(&watched, 1, 1) == 1) {
        connections.emplace_back(core::Fd(::accept(listener_.get(), nullptr, nullptr)));
      }
      for (FakeServer& connection : connections) answer(connection);
    }
  }

  void answer(FakeServer& connection) {
    while (!silent_ &&
           (connection.has_unread() || connection.read_more(std::chrono::milliseconds(0)))) {
      Bytes response = reversed(connection.read_request());
      if (response.empty()) return;  // the client is gone
      if (answered_ == wrong_) response.front() ^= std::byte{1};
      ++answered_;
      if (!connection.write(protocol::make_frame(MessageId::client_response, response))) return;
    }
  }

  const std::uint64_t wrong_;
  core::Fd listener_;
  std::atomic<std::uint64_t> answered_{0};
  std::atomic<bool> silent_{false};
  std::atomic<bool> ended_{false};
  std::jthread thread_;
};

/// Returns options for one connection to a server at `port`, with 4 requests in flight.
inline Options options_for_port(std::uint16_t port) {
  Options options;
  options.server_address = "127.0.0.1";
  options.server_port = port;
  options.max_concurrent_messages = 4;
  options.response_timeout = kBound;
  return options;
}

}  // namespace offload::client
