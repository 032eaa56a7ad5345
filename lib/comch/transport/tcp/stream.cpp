#include "comch/transport/tcp/stream.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "core/error.hpp"

namespace offload::comch {

using core::Error;
using core::ErrorCode;

bool wait_for(short event, int fd, core::TimePoint until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - core::Clock::now());
  pollfd poll{fd, event, 0};
  return left.count() > 0 && ::poll(&poll, 1, static_cast<int>(left.count())) != 0;
}

TcpStream::TcpStream(core::Fd socket, const net::TlsContext& context)
    : socket_(std::move(socket)),
      tls_(std::make_unique<net::TlsStream>(context, socket_.get())),
      is_server_(context.is_server()) {}

TcpStream& TcpStream::operator=(TcpStream&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(tls_, other.tls_);
  std::swap(is_server_, other.is_server_);
  return *this;
}

TcpStream::~TcpStream() {
  if (tls_) tls_->close_notify();
}

bool TcpStream::handshake() {
  if (!tls_) return true;
  switch (tls_->handshake()) {
    case net::TlsHandshake::done: return true;
    case net::TlsHandshake::under_way: return false;
    default: break;
  }
  if (is_server_) {
    throw Error(ErrorCode::not_permitted,
                "TLS: " + tls_->failure() + ": the peer proves no key of this server");
  }
  if (tls_->peer_is_plain()) {
    throw Error(ErrorCode::connection_aborted,
                "TLS: the peer does not use TLS: it is not the --comch of an offload server, or "
                "has --insecure");
  }
  throw Error(
      ErrorCode::connection_aborted,
      "TLS: " + tls_->failure() +
          ": the server lacks this worker's key, the address is not its --comch but another "
          "port, or a third party is between the two");
}

ssize_t TcpStream::receive(std::span<std::byte> to) {
  return tls_ ? tls_->receive(to) : ::recv(fd(), to.data(), to.size(), MSG_DONTWAIT);
}

ssize_t TcpStream::send(std::span<const iovec> pieces) {
  if (tls_) return tls_->send(pieces);
  msghdr header{};
  header.msg_iov = const_cast<iovec*>(pieces.data());  // sendmsg does not write it
  header.msg_iovlen = pieces.size();
  return ::sendmsg(fd(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void TcpStream::end_output() noexcept {
  if (tls_) tls_->close_notify();
  static_cast<void>(::shutdown(fd(), SHUT_WR));
}

std::string TcpStream::failure(int error) const {
  if (!tls_ || error != EPROTO) return core::describe_errno(error);
  return "TLS: " + tls_->failure() +
         ": the connection is damaged, or a third party is between its two ends";
}

std::string TcpStream::describe() const {
  if (!tls_) return "without encryption";
  if (!tls_->kernel_sends()) return "TLS 1.3, by OpenSSL";
  return tls_->kernel_receives() ? "TLS 1.3, by the kernel" : "TLS 1.3, encrypted by the kernel";
}

}  // namespace offload::comch
