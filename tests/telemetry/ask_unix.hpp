#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <array>
#include <string>

#include "core/fd.hpp"
#include "tests/support/eventually.hpp"

namespace offload::telemetry {

/// Sends an HTTP request without a body to the socket at `path`, as offload-ctl does. Returns all
/// that comes until the server ends the connection.
inline std::string ask_unix(const std::string& path, const std::string& method,
                            const std::string& target) {
  const core::Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{AF_UNIX, {}};
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const timeval bound{support::kBound.count(), 0};
  EXPECT_EQ(::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound), 0);
  const std::string request = method + " " + target +
                              " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n"
                              "Connection: close\r\n\r\n";
  EXPECT_EQ(::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  std::string reply;
  std::array<char, 4096> chunk;
  for (;;) {
    const ssize_t count = ::recv(socket.get(), chunk.data(), chunk.size(), 0);
    if (count <= 0) return count == 0 ? reply : reply + " and no end";
    reply.append(chunk.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace offload::telemetry
