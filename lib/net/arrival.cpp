#include "net/arrival.hpp"

#include <sys/socket.h>

#include <cstring>
#include <ctime>

#include "core/error.hpp"

namespace offload::net {

void tell_arrivals(int fd) {
  const int on = 1;
  core::check_errno(::setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on), "SO_TIMESTAMPNS");
}

ssize_t receive_with_arrival(int fd, std::span<std::byte> room, WallTime& arrival) {
  alignas(cmsghdr) std::byte control[CMSG_SPACE(sizeof(timespec))];
  iovec piece{room.data(), room.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t count = ::recvmsg(fd, &message, 0);
  const cmsghdr* const first = count > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (first != nullptr && first->cmsg_level == SOL_SOCKET && first->cmsg_type == SCM_TIMESTAMPNS) {
    timespec time{};
    std::memcpy(&time, CMSG_DATA(first), sizeof time);
    arrival = WallTime(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
  }
  return count;
}

}  // namespace offload::net
