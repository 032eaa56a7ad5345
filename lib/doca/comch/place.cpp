#include "doca/comch/place.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "comch/keys/pre_shared_keys.hpp"
#include "comch/transport/local/runtime_folder.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/units.hpp"
#include "device/device.hpp"
#include "net/unix_socket.hpp"

namespace offload::doca {
namespace {

using core::Error;
using core::ErrorCode;

constexpr int kBacklog = 128;
constexpr core::Duration kLongestDial = std::chrono::seconds(3);

Error malformed(std::string_view entry, const std::string& why) {
  return {ErrorCode::invalid_value, "OFFLOAD_DOCA_COMCH: '" + std::string(entry) + "' " + why +
                                        ", as b1:00.0=unix:PATH or b1:00.0=tcp:HOST:PORT"};
}

/// Returns the address that the variable gives a function; empty if it gives none.
std::string configured_address(const std::string& pci_address) {
  const char* const variable = std::getenv("OFFLOAD_DOCA_COMCH");
  std::string_view rest = variable != nullptr ? variable : "";
  std::string found;
  while (!rest.empty()) {
    const std::string_view entry = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(entry.size() + 1, rest.size()));
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) throw malformed(entry, "has no '='");
    const auto address = device::full_pci_address(entry.substr(0, equals));
    if (!address) throw malformed(entry, "does not begin with a PCI address");
    if (*address == pci_address) found = entry.substr(equals + 1);
  }
  return found;
}

/// FNV-1a: a short name of the file, whatever the server's name has. hello has the name itself.
std::string hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char each : text) {
    hash = (hash ^ static_cast<unsigned char>(each)) * 0x100000001b3;
  }
  return fmt::format("{:016x}", hash);
}

/// Sets the host and the port of "HOST:PORT".
void parse_network(std::string_view entry, std::string_view text, ComchPlace& place) {
  const std::size_t colon = text.rfind(':');
  const auto port = colon != std::string_view::npos
                        ? core::parse_number<std::uint16_t>(text.substr(colon + 1))
                        : std::nullopt;
  if (!port || *port == 0 || colon == 0) throw malformed(entry, "has no host and port");
  place.host = text.substr(0, colon);
  place.port = *port;
  const char* const key_file = std::getenv("OFFLOAD_DOCA_COMCH_KEY_FILE");
  if (key_file == nullptr || *key_file == '\0') {
    throw Error(ErrorCode::not_permitted,
                "a network needs a key: OFFLOAD_DOCA_COMCH_KEY_FILE is not set");
  }
  place.keys = std::make_shared<comch::Keyring>(std::vector<std::string>{key_file});
}

/// Returns whether a connect may succeed later that has failed with this errno: the system lacks
/// descriptors or memory now, or the queue of the server's socket is full.
bool may_try_again(int error) noexcept {
  return error == EAGAIN || error == EMFILE || error == ENFILE || error == ENOBUFS ||
         error == ENOMEM;
}

core::Fd connect_unix(const std::string& path) {
  comch::check_runtime_folder(path);
  core::Fd socket(core::check_errno(
      ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "cannot open a socket"));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.data(), path.size());
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) {
    const int error = errno;
    throw Error(ErrorCode::not_connected,
                "no server at " + path + ": " + core::describe_errno(error),
                {core::Cause::Domain::system, error});
  }
  return socket;
}

}  // namespace

ComchPlace ComchPlace::of(const std::string& pci_address, const std::string& server_name) {
  ComchPlace place;
  const std::string address = configured_address(pci_address);
  if (address.empty()) {
    place.path = comch::runtime_folder() + "/doca-" + pci_address + "-" + hash_of(server_name);
  } else if (address.starts_with("unix:")) {
    place.path = address.substr(5);
    if (place.path.empty()) throw malformed(address, "has no path");
  } else if (address.starts_with("tcp:")) {
    parse_network(address, std::string_view(address).substr(4), place);
    return place;
  } else {
    throw malformed(address, "has no scheme that is known");
  }
  if (!net::is_unix_path(place.path)) throw malformed(address, "has a path that is too long");
  return place;
}

void ComchPlace::resolve() {
  if (is_network()) address = net::resolve(host, port).front();
}

std::string ComchPlace::to_string() const {
  return is_network() ? fmt::format("tcp:{}:{}", host, port) : "unix:" + path;
}

StreamListener::StreamListener(const ComchPlace& place) {
  if (place.is_network()) {
    tls_ = comch::server_context(*place.keys);
    for (const auto& address : net::resolve(place.host, place.port)) {
      sockets_.push_back(net::listen_tcp(address, kBacklog));
    }
    return;
  }
  comch::make_runtime_folder(place.path);
  sockets_.push_back(net::listen_unix(place.path, kBacklog));
  file_.emplace(place.path);
}

std::unique_ptr<Link> StreamListener::accept() {
  for (const core::Fd& socket : sockets_) {
    // Most looks find none, and a look costs a fraction of an accept4(2).
    pollfd readable{socket.get(), POLLIN, 0};
    if (::poll(&readable, 1, 0) == 0) continue;
    core::Fd fd(::accept4(socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd.valid()) {
      if (may_try_again(errno) && errno != EAGAIN) core::throw_errno("cannot accept a client");
      continue;
    }
    return std::make_unique<Link>(tls_ ? comch::TcpStream(std::move(fd), *tls_)
                                       : comch::TcpStream(std::move(fd)));
  }
  return nullptr;
}

std::unique_ptr<Link> Dial::poll() {
  if (limit_ == core::TimePoint{}) limit_ = core::Clock::now() + kLongestDial;
  if (advance()) return std::move(link_);
  if (core::Clock::now() < limit_) return nullptr;
  throw Error(ErrorCode::timed_out, "the server does not accept the connection");
}

/// Returns whether the link is open.
bool Dial::advance() {
  if (!link_) {
    if (!socket_.valid() && !connect()) return false;
    pollfd writable{socket_.get(), POLLOUT, 0};
    if (::poll(&writable, 1, 0) == 0) return false;
    if (const int error = tls_ ? net::connect_result(socket_.get()) : 0; error != 0) {
      throw Error(ErrorCode::not_connected, "no server: " + core::describe_errno(error));
    }
    link_ = std::make_unique<Link>(tls_ ? comch::TcpStream(std::move(socket_), *tls_)
                                        : comch::TcpStream(std::move(socket_)));
  }
  return link_->handshake();
}

/// Returns whether there is a socket.
bool Dial::connect() {
  try {
    if (place_->is_network()) {
      if (!tls_) tls_ = comch::worker_context(*place_->keys);
      socket_ = net::start_connect(place_->address);
    } else {
      socket_ = connect_unix(place_->path);
    }
    return true;
  } catch (const Error& error) {
    if (may_try_again(error.system_errno())) return false;
    throw;
  }
}

}  // namespace offload::doca
