#include "net/fd_passing.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <iterator>
#include <string>

#include "core/error.hpp"

namespace offload::net {
namespace {

constexpr std::size_t kControlSize = CMSG_SPACE(kMaxPassedFds * sizeof(int));

std::vector<core::Fd> take_fds(msghdr& header) {
  // Each has its owner before anything is allocated, which may fail.
  std::array<core::Fd, kMaxPassedFds> taken;
  std::size_t size = 0;
  for (cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr;
       control = CMSG_NXTHDR(&header, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(control) + i * sizeof(int), sizeof fd);
      taken.at(size++).reset(fd);
    }
  }
  return {std::move_iterator(taken.begin()), std::move_iterator(taken.begin() + size)};
}

/// The kernel leaves out descriptors that there is no room for, and says no more than MSG_CTRUNC.
void require_free_descriptor(int socket) {
  const core::Fd one(core::check_errno(::fcntl(socket, F_DUPFD_CLOEXEC, 0),
                                       "cannot receive the descriptors of a message"));
}

}  // namespace

void send_with_fds(int socket, std::span<const std::byte> bytes, std::span<const int> fds) {
  if (fds.size() > kMaxPassedFds) {
    throw core::Error(core::ErrorCode::invalid_value,
                      std::to_string(fds.size()) + " descriptors are too many for one message");
  }
  iovec data{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, kControlSize> control{};
  if (!fds.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
  }
  core::check_errno(::sendmsg(socket, &header, MSG_NOSIGNAL), "cannot send a message");
}

std::optional<MessageWithFds> receive_with_fds(int socket, std::span<std::byte> room) {
  iovec data{room.data(), room.size()};
  alignas(cmsghdr) std::array<char, kControlSize> control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t count = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
  core::check_errno(count, "cannot read a message");
  MessageWithFds message{static_cast<std::size_t>(count), take_fds(header),
                         (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0};
  if ((header.msg_flags & MSG_CTRUNC) != 0) require_free_descriptor(socket);
  return message;
}

}  // namespace offload::net
