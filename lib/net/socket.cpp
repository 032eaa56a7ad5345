#include "net/socket.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <memory>

#include "core/error.hpp"
#include "net/tcp_options.hpp"

namespace offload::net {
namespace {

using core::check_errno;
using core::Error;
using core::ErrorCode;

/// Idle time before the first keep-alive probe, and the interval of the next ones (tcp(7)).
constexpr int kKeepAliveIdleSeconds = 60;
constexpr int kKeepAliveIntervalSeconds = 10;

/// The address that `call`, getsockname or getpeername, reports.
template <class Call>
SocketAddress address_by(Call call, int fd, const char* name) {
  SocketAddress address;
  address.size = sizeof address.storage;
  check_errno(call(fd, reinterpret_cast<sockaddr*>(&address.storage), &address.size), name);
  return address;
}

std::string without_brackets(const std::string& host) {
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    return host.substr(1, host.size() - 2);
  }
  return host;
}

}  // namespace

void set_option(int fd, int level, int option, int value, const char* name) {
  check_errno(::setsockopt(fd, level, option, &value, sizeof value), name);
}

core::Fd open_tcp(int family) {
  core::Fd fd(check_errno(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP),
                          "cannot open a TCP socket"));
  set_option(fd.get(), IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
  set_option(fd.get(), SOL_SOCKET, SO_KEEPALIVE, 1, "SO_KEEPALIVE");
  set_option(fd.get(), IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveIdleSeconds, "TCP_KEEPIDLE");
  set_option(fd.get(), IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveIntervalSeconds, "TCP_KEEPINTVL");
  return fd;
}

void bind_to(const core::Fd& fd, const SocketAddress& address) {
  set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
  try {
    check_errno(::bind(fd.get(), address.get(), address.size),
                "cannot listen on " + address.to_string());
  } catch (const Error& error) {
    const char* hint = "";
    if (error.system_errno() == EADDRINUSE) hint = " (it is in use: choose another port)";
    if (error.system_errno() == EADDRNOTAVAIL) hint = " (this machine does not have the address)";
    throw Error(error.code(), error.what() + std::string(hint), error.cause());
  }
}

SocketAddress SocketAddress::from(const sockaddr* address) noexcept {
  SocketAddress copy;
  if (address == nullptr) return copy;
  if (address->sa_family == AF_INET) copy.size = sizeof(sockaddr_in);
  if (address->sa_family == AF_INET6) copy.size = sizeof(sockaddr_in6);
  std::memcpy(&copy.storage, address, copy.size);
  return copy;
}

std::uint16_t SocketAddress::port() const noexcept {
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  return ntohs(reinterpret_cast<const sockaddr_in&>(storage).sin_port);
}

bool SocketAddress::is_wildcard() const noexcept {
  if (family() == AF_INET) {
    return reinterpret_cast<const sockaddr_in&>(storage).sin_addr.s_addr == htonl(INADDR_ANY);
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
  return family() == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&v6.sin6_addr);
}

bool SocketAddress::is_loopback() const noexcept {
  if (family() == AF_INET) {
    constexpr std::uint32_t kNetwork = 127;
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
    return ntohl(v4.sin_addr.s_addr) >> 24 == kNetwork;
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
  return family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

std::string SocketAddress::host() const {
  std::array<char, INET6_ADDRSTRLEN + IF_NAMESIZE> host{};  // "fe80::1%eth0"
  if (::getnameinfo(get(), size, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST) != 0) {
    return "?";
  }
  return host.data();
}

std::string SocketAddress::to_string() const {
  std::string text = host();
  if (family() != AF_INET && family() != AF_INET6) return text;
  return (family() == AF_INET6 ? "[" + text + "]" : text) + ":" + std::to_string(port());
}

std::vector<SocketAddress> resolve(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* raw = nullptr;
  const int rc =
      ::getaddrinfo(without_brackets(host).c_str(), std::to_string(port).c_str(), &hints, &raw);
  if (rc != 0) {
    throw Error(ErrorCode::not_found,
                "cannot resolve '" + host + "': " + ::gai_strerror(rc) +
                    (rc == EAI_NONAME ? "; correct it, or use an address" : ""));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(raw, &::freeaddrinfo);
  std::vector<SocketAddress> addresses;
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    SocketAddress address;
    std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
    address.size = entry->ai_addrlen;
    // A hosts file with two lines of a name may give an address twice.
    const bool is_there = std::ranges::any_of(addresses, [&](const SocketAddress& other) {
      return std::memcmp(&other.storage, &address.storage, sizeof address.storage) == 0;
    });
    if (!is_there) addresses.push_back(address);
  }
  const auto& of_ip6 = reinterpret_cast<const sockaddr_in6&>(addresses.front().storage);
  if (addresses.size() == 1 && addresses.front().family() == AF_INET6 &&
      IN6_IS_ADDR_LINKLOCAL(&of_ip6.sin6_addr) && of_ip6.sin6_scope_id == 0) {
    throw Error(ErrorCode::invalid_value,
                "the link-local address " + host + " needs its interface, as in fe80::1%eth0");
  }
  return addresses;
}

core::Fd bind_tcp(const SocketAddress& address) {
  core::Fd fd = open_tcp(address.family());
  bind_to(fd, address);
  return fd;
}

void start_listening(int fd, int backlog) {
  const std::string what = "cannot listen on " + local_address(fd).to_string();
  check_errno(::listen(fd, backlog), what);
}

core::Fd listen_tcp(const SocketAddress& address, int backlog) {
  core::Fd fd = bind_tcp(address);
  start_listening(fd.get(), backlog);
  return fd;
}

void set_dead_peer_timeout(int fd, core::Duration timeout) {
  const auto milliseconds = std::chrono::ceil<std::chrono::milliseconds>(timeout).count();
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT,
             static_cast<int>(std::min<std::int64_t>(milliseconds, INT_MAX)), "TCP_USER_TIMEOUT");
}

SocketAddress local_address(int fd) {
  return address_by(::getsockname, fd, "getsockname");
}

SocketAddress peer_address(int fd) {
  return address_by(::getpeername, fd, "getpeername");
}

core::Fd start_connect(const SocketAddress& address) {
  core::Fd fd = open_tcp(address.family());
  if (::connect(fd.get(), address.get(), address.size) < 0 && errno != EINPROGRESS) {
    core::throw_errno("cannot connect to " + address.to_string());
  }
  return fd;
}

int connect_result(int fd) noexcept {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0) return errno;
  return error;
}

}  // namespace offload::net
