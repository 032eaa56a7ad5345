#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <memory>
#include <string_view>

#include "apps/server/client_connection.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/eventually.hpp"

namespace offload::server {

using support::Bytes;
using support::bytes_of;
using support::copy_of;

/// A connection, and the test as its client.
class ClientConnectionTest : public testing::Test, ConnectionOwner {
 protected:
  static constexpr std::size_t kBufferSize = 4096;

  void SetUp() override { open(SOCK_STREAM); }

  void open(int type) {
    int fds[2];
    ASSERT_EQ(::socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    client_ = core::Fd(fds[0]);
    connection_ = std::make_unique<ClientConnection>(core::Fd(fds[1]), engine_, cache_, kBufferSize,
                                                     static_cast<ConnectionOwner&>(*this));
    turn();  // that it is writable is the first event of all
    receive_all();
  }

  void on_ready(ClientConnection& connection) override {
    EXPECT_EQ(&connection, connection_.get());
    ++ready_;
  }

  /// Takes the pending events.
  void turn() { engine_.run_once(core::TimePoint{}); }

  void receive_all() {
    turn();
    while (connection_->wants_to_read()) connection_->receive();
  }

  void client_sends(std::span<const std::byte> bytes) {
    ASSERT_EQ(::send(client_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  /// Returns the bytes that the client can read now.
  Bytes client_reads() {
    Bytes all;
    std::byte chunk[65536];
    for (;;) {
      const ssize_t count = ::recv(client_.get(), chunk, sizeof chunk, 0);
      if (count <= 0) {
        client_at_end_ = count == 0;
        return all;
      }
      all.insert(all.end(), chunk, chunk + count);
    }
  }

  /// Sends this answer, as the owner of a connection does.
  void respond(std::string_view text) {
    std::memcpy(gather_.room(), text.data(), text.size());
    gather_.commit(connection_->chain(), text.size());
    connection_->send(gather_);
    gather_.reset();
  }

  /// Sends until the client's socket takes no more; returns all bytes that were sent. An unread
  /// byte of the client shows when that is: the connection does not want to read it any more.
  Bytes respond_until_stuck() {
    client_sends(bytes_of("?"));
    turn();
    EXPECT_TRUE(connection_->wants_to_read());
    Bytes sent;
    auto payload = support::random_bytes(60'000, 1);
    while (connection_->wants_to_read() && sent.size() < (std::size_t{64} << 20)) {
      gather_.refer(connection_->chain(), payload);
      connection_->send(gather_);
      gather_.reset();
      sent.insert(sent.end(), payload.begin(), payload.end());
    }
    EXPECT_FALSE(connection_->wants_to_read());
    return sent;
  }

  /// Returns the bytes that arrive at the client until there are `size`, or a bound passes.
  Bytes client_reads_until(std::size_t size) {
    Bytes all;
    support::eventually([&] { return all.size() >= size; },
                        [&] {
                          const auto more = client_reads();
                          all.insert(all.end(), more.begin(), more.end());
                          turn();
                        });
    return all;
  }

  progress::Engine engine_;
  memory::BlockCache cache_{1024 * 1024};
  net::OutputBatch gather_{8, 512};
  core::Fd client_;
  std::unique_ptr<ClientConnection> connection_;
  int ready_ = 0;
  bool client_at_end_ = false;
};

}  // namespace offload::server
