#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <optional>
#include <span>
#include <utility>

#include "core/fd.hpp"
#include "protocol/frame.hpp"
#include "tests/support/bytes.hpp"

namespace offload::server::test {

/// A connected pair: the client's end, played by the test, and the server's.
inline std::pair<core::Fd, core::Fd> connected_sockets() {
  std::array<int, 2> fds{-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds.data()), 0);
  return {core::Fd(fds[0]), core::Fd(fds[1])};
}

inline void send_all(const core::Fd& client, std::span<const std::byte> bytes) {
  ASSERT_EQ(::send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
}

inline void send_request(const core::Fd& client, std::span<const std::byte> payload) {
  send_all(client, protocol::make_frame(protocol::MessageId::client_request, payload));
}

/// What a client finds in its socket, put together over several reads.
struct Received {
  support::Bytes bytes;
  bool ended = false;  ///< the server sends no more

  /// Reads what is there now.
  void read(const core::Fd& client) {
    std::array<std::byte, 65536> chunk;
    for (;;) {
      const ssize_t count = ::recv(client.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
      if (count <= 0) {
        ended = ended || count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
        return;
      }
      bytes.insert(bytes.end(), chunk.begin(), chunk.begin() + count);
    }
  }

  struct Frame {
    protocol::MessageId id{};
    support::Bytes payload{};
    bool operator==(const Frame&) const = default;
  };
  /// Takes the frame in front; nothing if there is none, whole.
  std::optional<Frame> take() {
    const auto view = protocol::parse_frame(bytes, 1 << 20);
    if (view.state != protocol::FrameView::State::complete) return std::nullopt;
    Frame frame{view.id, support::copy_of(view.payload)};
    bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(view.size()));
    return frame;
  }
};

inline Received::Frame response(std::span<const std::byte> payload) {
  return {protocol::MessageId::client_response, support::copy_of(payload)};
}

inline Received::Frame error(protocol::Refusal reason) {
  const auto frame = protocol::make_error_frame(reason, protocol::describe(reason));
  return {protocol::MessageId::error,
          {frame.begin() + static_cast<std::ptrdiff_t>(protocol::kFrameHeaderSize), frame.end()}};
}

}  // namespace offload::server::test
