#pragma once

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <sys/socket.h>

#include <csignal>
#include <string>

#include "core/fd.hpp"
#include "net/tls/stream.hpp"
#include "tests/support/bytes.hpp"

namespace offload::net {

/// A test after which OpenSSL's queue of errors must be empty: they are the thread's, and its next
/// user would take them for its own.
class LeavesNoErrors : public testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(::ERR_peek_error(), 0U); }
};

/// Two ends of a connection on one thread.
struct TlsPair {
  TlsPair(const TlsContext& server_context, const TlsContext& client_context)
      : sockets(make_sockets()),
        server(server_context, sockets.first.get()),
        client(client_context, sockets.second.get()) {}

  /// Both ends' handshakes, until they have ended: whether both are done.
  bool connect() {
    auto here = TlsHandshake::under_way;
    auto there = TlsHandshake::under_way;
    for (int turn = 0; turn < 10; ++turn) {
      if (there == TlsHandshake::under_way) there = client.handshake();
      if (here == TlsHandshake::under_way) here = server.handshake();
    }
    return here == TlsHandshake::done && there == TlsHandshake::done;
  }

  static std::pair<core::Fd, core::Fd> make_sockets() {
    std::signal(SIGPIPE, SIG_IGN);  // as core::Signals does: OpenSSL writes by write(2)
    int ends[2];
    core::check_errno(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends),
                      "socketpair");
    return {core::Fd(ends[0]), core::Fd(ends[1])};
  }

  std::pair<core::Fd, core::Fd> sockets;  ///< the server's and the client's
  TlsStream server;
  TlsStream client;
};

/// Sends all of `bytes` from one end and returns what the other one received, with the `before`
/// bytes that were under way.
inline support::Bytes carry(TlsStream& from, TlsStream& to, std::span<const std::byte> bytes,
                            std::size_t before = 0) {
  const std::size_t wanted = before + bytes.size();
  support::Bytes received;
  support::Bytes room(20'000);
  for (int turn = 0; turn < 100'000 && received.size() < wanted; ++turn) {
    if (!bytes.empty()) {
      const ssize_t count = from.send(bytes);
      if (count > 0) bytes = bytes.subspan(static_cast<std::size_t>(count));
      if (count < 0 && errno != EAGAIN) return received;
    }
    const ssize_t count = to.receive(room);
    if (count == 0 || (count < 0 && errno != EAGAIN)) return received;
    if (count > 0) received.insert(received.end(), room.begin(), room.begin() + count);
  }
  return received;
}

}  // namespace offload::net
