#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <string>

#include "core/fd.hpp"

namespace offload::core::test {

/// The socket of a service manager, which a program finds in its environment: sd_notify(3).
class ServiceManagerSocket {
 public:
  ServiceManagerSocket() = default;
  ServiceManagerSocket& operator=(ServiceManagerSocket&&) = delete;
  ~ServiceManagerSocket() {
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) ::unsetenv(name);
  }

  /// Binds it to a path, or to "@NAME" of the abstract name space, and names it in the environment.
  /// Returns whether the name is free.
  bool bind(const std::string& name) {
    fd_.reset(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{AF_UNIX, {}};
    name.copy(address.sun_path, sizeof address.sun_path);
    if (name.front() == '@') address.sun_path[0] = '\0';
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
    return ::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0;
  }

  /// Returns the next message, which is empty if there is none.
  std::string heard() {
    std::array<char, 512> text{};
    const auto length = ::recv(fd_.get(), text.data(), text.size(), 0);
    return length < 0 ? "" : std::string(text.data(), static_cast<std::size_t>(length));
  }

 private:
  Fd fd_;
};

}  // namespace offload::core::test
