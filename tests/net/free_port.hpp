#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/fd.hpp"

namespace offload::net::test {

/// Returns a TCP port of loopback that is free, and that no other test gets before this process
/// ends: an abstract socket stands for it (free_port() in tests/process/harness.py has the same).
/// It is below those that the kernel gives to port 0. For one thread.
inline std::uint16_t free_port() {
  static std::vector<core::Fd> reservations;
  std::random_device seed;
  std::uniform_int_distribution<int> ports(10'000, 29'999);
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const auto port = static_cast<std::uint16_t>(ports(seed));
    const std::string text = "offload-test-port-" + std::to_string(port);
    ::sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::copy(text.begin(), text.end(), &name.sun_path[1]);
    const auto size = static_cast<socklen_t>(offsetof(::sockaddr_un, sun_path) + 1 + text.size());
    core::Fd reservation(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (::bind(reservation.get(), reinterpret_cast<const ::sockaddr*>(&name), size) != 0) continue;
    const core::Fd probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ::sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::bind(probe.get(), reinterpret_cast<const ::sockaddr*>(&address), sizeof address) == 0) {
      reservations.push_back(std::move(reservation));
      return port;
    }
  }
  throw std::runtime_error("no port of loopback is free");
}

}  // namespace offload::net::test
