#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "clients/cpp/include/offload_client.h"
#include "core/fd.hpp"
#include "net/socket.hpp"
#include "protocol/frame.hpp"
#include "tests/support/eventually.hpp"

namespace offload::clients {

inline std::string frame(std::string_view payload,
                         protocol::MessageId id = protocol::MessageId::client_response) {
  const auto made = protocol::make_frame(id, std::as_bytes(std::span(payload)));
  return {reinterpret_cast<const char*>(made.data()), made.size()};
}
inline std::string header(std::uint32_t size, std::uint32_t id, std::uint32_t length) {
  std::string made(protocol::kFrameHeaderSize, '\0');
  auto* const to = reinterpret_cast<std::byte*>(made.data());
  protocol::store_big_endian(to, size);
  protocol::store_big_endian(to + 4, id);
  protocol::store_big_endian(to + 8, length);
  return made;
}
inline std::string error_frame(std::uint32_t code, std::string_view text) {
  const auto made = protocol::make_error_frame(static_cast<protocol::Refusal>(code), text);
  return {reinterpret_cast<const char*>(made.data()), made.size()};
}

/// A connection of a fake server. Each wait is bounded by the socket's time limit.
class Peer {
 public:
  explicit Peer(core::Fd socket) : socket_(std::move(socket)) {
    const timeval limit{support::kBound.count(), 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }

  /// Receives as many bytes as these requests have; returns whether they came.
  bool take(std::initializer_list<std::string_view> requests) {
    std::size_t size = 0;
    for (const std::string_view request : requests)
      size += protocol::kFrameHeaderSize + request.size();
    received_.resize(size);
    return ::recv(socket_.get(), received_.data(), size, MSG_WAITALL) == ssize_t(size);
  }
  void send(std::string_view bytes) {
    (void)::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  /// Returns whether the client closed its end, with nothing before that.
  bool sees_end() {
    char byte;
    const ssize_t count = ::recv(socket_.get(), &byte, 1, 0);
    return count == 0 || (count < 0 && errno == ECONNRESET);  // not after the time limit
  }
  void reset() {
    const linger at_once{1, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    socket_.reset();
  }
  [[nodiscard]] const std::string& received() const noexcept { return received_; }

 private:
  core::Fd socket_;
  std::string received_;
};

/// A server of a test: one function for each connection that it accepts, one after the other.
class FakeServer {
 public:
  using Script = std::function<void(Peer&)>;

  explicit FakeServer(std::vector<Script> scripts, const std::string& host = "127.0.0.1")
      : listener_(net::listen_tcp(net::resolve(host, 0).at(0), 8)),
        port_(net::local_address(listener_.get()).port()),
        thread_([this, scripts = std::move(scripts)] { run(scripts); }) {}
  FakeServer& operator=(FakeServer&&) = delete;
  ~FakeServer() { thread_.join(); }

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

 private:
  void run(const std::vector<Script>& scripts) {
    for (const Script& script : scripts) {
      core::Fd accepted;
      support::eventually([&] {
        accepted.reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        return accepted.valid();
      });
      if (!accepted.valid()) return;
      Peer peer(std::move(accepted));
      script(peer);
    }
  }

  core::Fd listener_;
  std::uint16_t port_;
  std::thread thread_;
};

/// Options with these members and their values: with(&offload_client_options::timeout, 10).
inline offload_client_options with() {
  return {};
}
template <class Member, class... Rest>
offload_client_options with(Member offload_client_options::*member,
                            std::type_identity_t<Member> value, Rest... rest) {
  offload_client_options options = with(rest...);
  options.*member = value;
  return options;
}

/// Opens a client of it; `options.host` may be set before.
struct Opened {
  explicit Opened(std::uint16_t port, offload_client_options options = {}) {
    options.struct_size = sizeof options;
    if (options.host == nullptr) options.host = "127.0.0.1";
    options.port = port;
    status = offload_client_open(&options, &client);
  }
  Opened& operator=(Opened&&) = delete;
  ~Opened() { offload_client_close(client); }

  int submit(std::string_view data, std::uint64_t tag = 0, int timeout = 0, unsigned flags = 0) {
    const offload_client_request request{data.data(), data.size(), tag, timeout, flags};
    return offload_client_submit(client, &request);
  }
  int call(std::string_view data, int timeout = 0, unsigned flags = 0) {
    const offload_client_request request{data.data(), data.size(), 0, timeout, flags};
    return offload_client_call(client, &request, &response);
  }
  int wait(int timeout = -1) { return offload_client_wait(client, timeout, &response); }
  [[nodiscard]] std::string_view text() const {
    return {static_cast<const char*>(response.data), response.size};
  }
  [[nodiscard]] std::string_view error() const { return offload_client_error(client); }

  int status = OFFLOAD_INVALID;
  offload_client* client = nullptr;
  offload_client_response response{};
};

}  // namespace offload::clients
