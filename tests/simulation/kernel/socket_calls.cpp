#include "tests/simulation/kernel/calls.hpp"

using namespace offload::simulation;  // NOLINT

#pragma GCC visibility push(default)
#pragma GCC diagnostic ignored "-Wmissing-declarations"
constexpr std::initializer_list<int> kLocalConnectErrors{ECONNREFUSED, EAGAIN, EACCES};
constexpr std::initializer_list<int> kConnectErrors{ECONNREFUSED, ENETUNREACH, EADDRNOTAVAIL};

extern "C" {

// ---- Sockets

int socket(int family, int type, int protocol) {
  if (!inside()) return OFFLOAD_LIBC(socket)(family, type, protocol);
  const Call call("socket", {EMFILE, ENFILE, ENOBUFS, ENOMEM});
  if (call.refused()) return call.refusal();
  step("socket");
  auto made = std::make_shared<Socket>();
  made->is_local = family == AF_UNIX;
  return self().add(std::move(made));
}
int setsockopt(int fd, int level, int option, const void* value, socklen_t size) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(setsockopt)(fd, level, option, value, size);
  const Call call("setsockopt", {ENOBUFS, ENOPROTOOPT});
  if (call.refused()) return call.refusal();
  if (const auto socket = self().get<Socket>(fd); socket && option == TCP_USER_TIMEOUT) {
    socket->user_timeout = *static_cast<const int*>(value) * kMillisecond;
  }
  if (level == SOL_SOCKET && option == SO_REUSEPORT) {
    if (const auto socket = self().get<Socket>(fd)) socket->shares_port = true;
    if (const auto listener = self().get<Listener>(fd)) listener->shares_port = true;
  }
  return 0;
}
int getsockopt(int fd, int level, int option, void* value, socklen_t* size) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(getsockopt)(fd, level, option, value, size);
  const Call call("getsockopt", {ENOBUFS});
  if (call.refused()) return call.refusal();
  const auto socket = self().get<Socket>(fd);
  if (!socket) return fails(ENOTSOCK);
  if (option == SO_PEERCRED) {
    *static_cast<ucred*>(value) = {socket->peer_pid, ::geteuid(), 0};
  } else if (option == SO_ERROR) {
    *static_cast<int*>(value) = std::exchange(socket->error, 0);
  } else {
    return fails(ENOPROTOOPT);
  }
  return 0;
}
int bind(int fd, const sockaddr* address, socklen_t size) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(bind)(fd, address, size);
  const Call call("bind", {EADDRINUSE, EACCES});
  if (call.refused()) return call.refusal();
  auto listener = std::make_shared<Listener>();
  listener->is_local = address->sa_family == AF_UNIX;
  listener->name = name_of(address);
  if (!listener->is_local) {
    listener->port = ntohs(reinterpret_cast<const sockaddr_in*>(address)->sin_port);
  }
  listener->shares_port = self().get<Socket>(fd)->shares_port;
  const auto held = kernel->names.find(listener->name);
  if (held == kernel->names.end() || (!listener->is_local && held->second.expired())) {
    kernel->names[listener->name] = listener;
  } else if (const auto first = std::dynamic_pointer_cast<Listener>(held->second.lock());
             !first || !first->shares_port || !listener->shares_port) {
    return fails(EADDRINUSE);
  }
  self().fds[fd] = std::move(listener);
  return 0;
}
int listen(int fd, int backlog) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(listen)(fd, backlog);
  const Call call("listen", {EADDRINUSE});
  if (call.refused()) return call.refusal();
  self().get<Listener>(fd)->listens = true;
  return 0;
}
int connect(int fd, const sockaddr* address, socklen_t size) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(connect)(fd, address, size);
  const Call call("connect",
                  self().get<Socket>(fd)->is_local ? kLocalConnectErrors : kConnectErrors);
  if (call.refused()) return call.refusal();
  step("connect", fd);
  const auto socket = self().get<Socket>(fd);
  const auto found = kernel->names.find(name_of(address));
  if (found == kernel->names.end()) return fails(socket->is_local ? ENOENT : ECONNREFUSED);
  const auto listener = std::dynamic_pointer_cast<Listener>(found->second.lock());
  if (!listener || !listener->listens) return fails(ECONNREFUSED);
  if (socket->is_local && listener->waiting.size() > 100) return fails(EAGAIN);
  auto other = std::make_shared<Socket>();
  Socket::join(socket, other);
  socket->peer_port = other->port = listener->port;
  static std::uint16_t next_port = 40000;
  socket->port = other->peer_port = next_port++;
  other->peer_pid = self().pid;
  other->peer_host = self().host;
  for (const auto& process : kernel->processes) {
    for (const auto& [number, file] : process->fds) {
      if (file == listener) socket->peer_pid = process->pid;
    }
  }
  const auto arrive = [listener = std::weak_ptr(listener), weak = std::weak_ptr(socket), other] {
    const auto connecting = weak.lock();
    const auto at = listener.lock();
    if (connecting) {
      connecting->connecting = false;
      connecting->connected = true;
      if (!at) connecting->reset(ECONNREFUSED);
      ++connecting->out_wakes;
    }
    if (at) {
      at->waiting.push_back(other);
      ++at->in_wakes;
    }
  };
  if (socket->is_local) {
    arrive();
    return 0;
  }
  socket->connecting = true;
  kernel->at(kernel->now + 1000 + static_cast<Time>(kernel->random.below(kMillisecond)), arrive);
  return fails(EINPROGRESS);
}
int accept4(int fd, sockaddr* address, socklen_t* size, int flags) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(accept4)(fd, address, size, flags);
  const Call call("accept", {EMFILE, ENFILE, ENOBUFS, ENOMEM, ECONNABORTED, EPERM});
  if (call.refused()) {
    const auto listener = self().get<Listener>(fd);
    const bool one_is_lost = call.error() == ECONNABORTED || call.error() == EPERM;
    if (one_is_lost && listener->waiting.empty()) return fails(EAGAIN);
    if (one_is_lost) listener->waiting.pop_front();
    return call.refusal();
  }
  step("accept", fd);
  const auto listener = self().get<Listener>(fd);
  if (!listener) return fails(EINVAL);
  if (listener->waiting.empty()) return fails(EAGAIN);
  const int number = self().add(listener->waiting.front());
  if (number < 0) return -1;
  const auto accepted = listener->waiting.front();
  listener->waiting.pop_front();
  if (address != nullptr) put_address(accepted->peer_port, address, size, accepted->peer_host);
  return number;
}
int getsockname(int fd, sockaddr* address, socklen_t* size) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(getsockname)(fd, address, size);
  const Call call("getsockname", {ENOBUFS});
  if (call.refused()) return call.refusal();
  const auto listener = self().get<Listener>(fd);
  const auto socket = self().get<Socket>(fd);
  put_address(listener ? listener->port : socket ? socket->port : std::uint16_t{0}, address, size);
  return 0;
}
int getpeername(int fd, sockaddr* address, socklen_t* size) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(getpeername)(fd, address, size);
  const Call call("getpeername", {ENOBUFS, ENOTCONN});
  if (call.refused()) return call.refusal();
  const auto socket = self().get<Socket>(fd);
  if (!socket || socket->broken) return fails(ENOTCONN);
  put_address(socket->peer_port, address, size, socket->peer_host);
  return 0;
}
int shutdown(int fd, int how) {
  if (inside() && fd < kFirstFd) return fails(ENOTSOCK);  // a worker that gives up shuts down all
  if (!is_ours(fd)) return OFFLOAD_LIBC(shutdown)(fd, how);
  const Call call("shutdown", {ENOTCONN});
  if (call.refused()) return call.refusal();
  step("shutdown", fd);
  const auto socket = self().get<Socket>(fd);
  if (!socket) return fails(ENOTSOCK);
  socket->end_sending();
  return 0;
}
ssize_t send(int fd, const void* data, size_t size, int flags) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(send)(fd, data, size, flags);
  const Call call("send", send_errors(fd));
  if (call.refused()) return refuse_on(fd, call);
  const iovec piece{const_cast<void*>(data), size};
  return send_on(fd, {&piece, 1});
}
ssize_t recv(int fd, void* data, size_t size, int flags) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(recv)(fd, data, size, flags);
  const Call call("receive", kReceiveErrors);
  if (call.refused()) return refuse_on(fd, call);
  const iovec piece{data, size};
  return receive_on(fd, {&piece, 1});
}
ssize_t __recv_chk(int fd, void* data, size_t size, size_t, int flags) {
  return recv(fd, data, size, flags);
}
ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(sendmsg)(fd, message, flags);
  const Call call("sendmsg", send_errors(fd));
  if (call.refused()) return refuse_on(fd, call);
  std::vector<File> files;
  if (message->msg_control != nullptr) {
    const cmsghdr* const rights = CMSG_FIRSTHDR(message);
    const std::size_t count = (rights->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(rights) + i * sizeof(int), sizeof number);
      files.push_back(self().get<Object>(number));
    }
  }
  return send_on(fd, {message->msg_iov, message->msg_iovlen}, std::move(files));
}
ssize_t recvmsg(int fd, msghdr* message, int flags) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(recvmsg)(fd, message, flags);
  const Call call("recvmsg", kReceiveErrors);
  if (call.refused()) return refuse_on(fd, call);
  const std::size_t control_room = std::exchange(message->msg_controllen, 0);
  message->msg_flags = 0;
  const auto has_packet = [fd] {
    const auto socket = self().get<Socket>(fd);
    return socket->is_local && !socket->packets.empty();
  };
  if (!has_packet()) {
    return receive_on(fd, {message->msg_iov, message->msg_iovlen});
  }
  step("receive", fd);
  const auto socket = self().get<Socket>(fd);
  const Socket::Packet packet = std::move(socket->packets.front());
  socket->packets.pop_front();
  if (const auto from = socket->peer.lock()) {
    from->under_way -= packet.bytes.size();
    if (std::exchange(from->wants_room, false)) ++from->out_wakes;
  }
  const std::size_t size = std::min(packet.bytes.size(), message->msg_iov->iov_len);
  std::memcpy(message->msg_iov->iov_base, packet.bytes.data(), size);
  const std::size_t bytes = packet.files.size() * sizeof(int);
  if (bytes != 0 && control_room >= CMSG_SPACE(bytes)) {
    auto* const rights = static_cast<cmsghdr*>(message->msg_control);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(bytes);
    for (std::size_t i = 0; i < packet.files.size(); ++i) {
      const Call taking("SCM_RIGHTS", {EMFILE});
      const int number = taking.refused() ? -1 : self().add(packet.files[i]);
      std::memcpy(CMSG_DATA(rights) + i * sizeof(int), &number, sizeof number);
      if (number < 0) message->msg_flags |= MSG_CTRUNC;
    }
    message->msg_controllen = CMSG_SPACE(bytes);
  }
  return static_cast<ssize_t>(size);
}
int getaddrinfo(const char* host, const char* service, const addrinfo* hints, addrinfo** list) {
  if (!inside()) return OFFLOAD_LIBC(getaddrinfo)(host, service, hints, list);
  const Call call("getaddrinfo", {EAI_AGAIN, EAI_MEMORY});
  if (call.refused()) return call.error();
  auto* const made = static_cast<addrinfo*>(std::calloc(1, sizeof(addrinfo) + sizeof(sockaddr_in)));
  made->ai_family = AF_INET;
  made->ai_socktype = SOCK_STREAM;
  made->ai_addrlen = sizeof(sockaddr_in);
  made->ai_addr = reinterpret_cast<sockaddr*>(made + 1);
  socklen_t size = sizeof(sockaddr_in);
  put_address(static_cast<std::uint16_t>(std::atoi(service)), made->ai_addr, &size);
  *list = made;
  return 0;
}

}  // extern "C"
#pragma GCC visibility pop
