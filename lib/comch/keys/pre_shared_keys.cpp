#include "comch/keys/pre_shared_keys.hpp"

#include <openssl/crypto.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace offload::comch {
namespace {

/// The size of a record's header, and a bound of a worker's first message (some 300 bytes).
constexpr std::size_t kRecordHeader = 5;
constexpr std::size_t kMostOfClientHello = 2048;
constexpr std::string_view kIdentity = "dpu-gpu-offload worker ";
constexpr unsigned char kHandshake = 22;  // ContentType, RFC 8446 B.1

/// Returns the identity that a worker offers, which names its key.
std::string identity_of(const Key& key) {
  return std::string(kIdentity) + fingerprint(key);
}

net::PreSharedKey derive(const Key& key) {
  constexpr std::string_view kLabel = "dpu-gpu-offload TLS 1.3 PSK";
  Mac secret = hmac(key, {std::as_bytes(std::span(kLabel))});
  net::PreSharedKey derived{identity_of(key), {secret.begin(), secret.end()}};
  ::OPENSSL_cleanse(secret.data(), secret.size());
  return derived;
}

}  // namespace

net::TlsContext worker_context(const Keyring& keys) {
  return net::TlsContext::psk_client(derive(keys.keys().front()));
}

net::TlsContext server_context(const Keyring& keys) {
  std::vector<net::PreSharedKey> derived;
  derived.reserve(Keyring::kMost);  // reallocation would leave copies
  for (const Key& key : keys.keys()) derived.push_back(derive(key));
  return net::TlsContext::psk_server(std::move(derived));
}

std::string fingerprint_in(std::string_view identity) {
  return identity.starts_with(kIdentity) ? std::string(identity.substr(kIdentity.size())) : "";
}

std::optional<bool> names_a_key(int socket, const Keyring& keys) {
  std::array<char, kRecordHeader + kMostOfClientHello> first;
  const auto received = ::recv(socket, first.data(), first.size(), MSG_PEEK | MSG_DONTWAIT);
  if (received < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  if (received <= 0) return false;
  const std::string_view text(first.data(), static_cast<std::size_t>(received));
  std::size_t wanted = kRecordHeader;
  if (text.size() >= kRecordHeader) {
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
    wanted += static_cast<std::size_t>(byte(3)) << 8 | byte(4);
    if (byte(0) != kHandshake || wanted > first.size()) return false;
  }
  const bool whole = text.size() >= wanted;
  // Until then the socket is not readable, socket(7).
  const int low = whole ? 1 : static_cast<int>(wanted);
  static_cast<void>(::setsockopt(socket, SOL_SOCKET, SO_RCVLOWAT, &low, sizeof low));
  if (!whole) {
    // After a peer has stopped sending, the socket stays readable.
    pollfd end{socket, POLLRDHUP, 0};
    if (::poll(&end, 1, 0) != 0) return false;
    return std::nullopt;
  }
  return std::ranges::any_of(keys.keys(), [&](const Key& key) {
    return text.find(identity_of(key)) != std::string_view::npos;
  });
}

}  // namespace offload::comch
