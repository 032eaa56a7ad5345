#include "apps/worker/udp/place.hpp"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <charconv>
#include <cstring>
#include <memory>
#include <vector>

#include "core/error.hpp"
#include "core/fd.hpp"

namespace offload::worker {
namespace {

/// The bytes of an address in network order; empty for any other text.
std::vector<std::uint8_t> address_bytes(const std::string& text) {
  std::vector<std::uint8_t> bytes(sizeof(in6_addr));
  if (::inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1) return bytes;
  bytes.resize(sizeof(in_addr));
  if (::inet_pton(AF_INET, text.c_str(), bytes.data()) == 1) return bytes;
  return {};
}

bool has_bytes(const sockaddr* address, const std::vector<std::uint8_t>& bytes) {
  if (address == nullptr) return false;
  if (address->sa_family == AF_INET && bytes.size() == sizeof(in_addr)) {
    const auto& own = reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
    return std::memcmp(&own, bytes.data(), bytes.size()) == 0;
  }
  if (address->sa_family == AF_INET6 && bytes.size() == sizeof(in6_addr)) {
    const auto& own = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
    return std::memcmp(&own, bytes.data(), bytes.size()) == 0;
  }
  return false;
}

}  // namespace

std::optional<DatagramPlace> DatagramPlace::parse(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return std::nullopt;
  DatagramPlace place;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data() + colon + 1, end, place.port);
  if (error != std::errc{} || rest != end || place.port == 0) return std::nullopt;
  std::string host = text.substr(0, colon);
  const bool is_v6 = host.starts_with('[') && host.ends_with(']');
  if (is_v6) host = host.substr(1, host.size() - 2);
  const std::size_t bytes = address_bytes(host).size();
  if (is_v6 != (bytes == sizeof(in6_addr))) return std::nullopt;  // brackets, or an address, alone
  const bool is_name = host.size() < IFNAMSIZ && host.find_first_of(":/[]") == host.npos;
  if (bytes == 0 && !is_name) return std::nullopt;
  (bytes == 0 ? place.interface : place.address) = host;
  return place;
}

std::string interface_with(const std::string& address) {
  ifaddrs* first = nullptr;
  core::check_errno(::getifaddrs(&first), "getifaddrs");
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(first, ::freeifaddrs);
  const auto bytes = address_bytes(address);
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (has_bytes(one->ifa_addr, bytes)) return one->ifa_name;
  }
  throw core::Error(core::ErrorCode::not_found,
                    fmt::format("no interface of this machine has the address {}", address));
}

std::uint32_t mtu_of(const std::string& interface) {
  const core::Fd socket(
      core::check_errno(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket"));
  ifreq request{};
  std::strncpy(request.ifr_name, interface.c_str(), sizeof request.ifr_name - 1);
  core::check_errno(::ioctl(socket.get(), SIOCGIFMTU, &request),
                    fmt::format("the MTU of {}", interface));
  return static_cast<std::uint32_t>(request.ifr_mtu);
}

}  // namespace offload::worker
