#include "core/service_manager.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "core/fd.hpp"
#include "core/units.hpp"

namespace offload::core {
namespace {

/// The number of notifications within the limit of a watchdog. systemd asks for two; one may be
/// late.
constexpr int kTicksInLimit = 3;

std::string_view environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view{} : std::string_view(value);
}

/// Returns 0 for text that is not a number.
std::int64_t number(std::string_view text) {
  return parse_number<std::int64_t>(text).value_or(0);
}

}  // namespace

ServiceManager::ServiceManager() {
  const std::string_view socket = environment("NOTIFY_SOCKET");
  // A path, or a name in the abstract name space, which begins with '@'.
  if (!socket.starts_with('/') && !socket.starts_with('@')) return;
  if (socket.size() < 2 || socket.size() >= sizeof(sockaddr_un::sun_path)) return;
  socket_ = socket;
  const std::string_view watched = environment("WATCHDOG_PID");
  const std::int64_t limit = number(environment("WATCHDOG_USEC"));
  if (limit <= 0 || (!watched.empty() && number(watched) != ::getpid())) return;
  interval_ = std::chrono::microseconds(limit) / kTicksInLimit;
  next_tick_ = Clock::now();
}

void ServiceManager::tick(TimePoint now) noexcept {
  if (now < next_tick_) return;
  next_tick_ = now + interval_;
  send("WATCHDOG=1", {});
}

/// Sends both parts in one datagram. Allocates nothing, because a notification must not fail.
void ServiceManager::send(std::string_view state, std::string_view text) noexcept {
  if (socket_.empty()) return;
  const Fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  if (socket_.front() == '@') address.sun_path[0] = '\0';
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  // sendmsg() only reads them.
  std::array<iovec, 2> parts{iovec{const_cast<char*>(state.data()), state.size()},
                             iovec{const_cast<char*>(text.data()), text.size()}};
  msghdr message{};
  message.msg_name = &address;
  message.msg_namelen = length;
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  static_cast<void>(::sendmsg(fd.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT));
}

}  // namespace offload::core
