#include "comch/transport/tcp/stream_connection.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "comch/keys/pre_shared_keys.hpp"
#include "comch/transport/tcp/data.hpp"
#include "core/error.hpp"

namespace offload::comch {
namespace {

using core::Error;
using core::ErrorCode;

/// Returns `address` with the host and port of `peer`, if that has a network address.
Address narrowed(Address address, const net::SocketAddress& peer) {
  if (peer.family() != AF_INET && peer.family() != AF_INET6) return address;
  address.host = peer.family() == AF_INET6 ? "[" + peer.host() + "]" : peer.host();
  address.port = peer.port();
  return address;
}

}  // namespace

TcpStream secure_stream(core::Fd socket, const Address& address, const std::string& name,
                        core::TimePoint until) {
  if (!address.takes_key()) return TcpStream(std::move(socket));
  TcpStream stream(std::move(socket), worker_context(*address.keys));
  while (!stream.handshake()) {
    const short event = stream.wants_to_send() ? POLLOUT : POLLIN;
    if (!wait_for(event, stream.fd(), until)) {
      throw Error(ErrorCode::timed_out, name + " did not prove a key in time");
    }
  }
  return stream;
}

TcpStream ServerStreams::make(core::Fd socket) {
  if (!keys_) return TcpStream(std::move(socket));
  const unsigned generation = keys_->generation();
  if (!context_ || generation_ != generation) context_ = server_context(*keys_);
  generation_ = generation;
  return {std::move(socket), *context_};
}

std::optional<ControlMessage> StreamControlConnection::receive() {
  if (keys_ && !proven_) {
    proven_ = stream_.handshake();
    if (!proven_) return std::nullopt;
  }
  while (true) {
    const auto frame = protocol::parse_frame(input_, protocol::kMaxControlLength);
    if (frame.state == protocol::FrameView::State::bad) {
      throw Error(ErrorCode::bad_message,
                  "no control message: " + std::string(protocol::describe(frame.reason)));
    }
    if (frame.state == protocol::FrameView::State::complete) {
      ControlMessage message{frame.id, {frame.payload.begin(), frame.payload.end()}, {}};
      input_.erase(input_.begin(), input_.begin() + static_cast<std::ptrdiff_t>(frame.size()));
      return message;
    }
    std::array<std::byte, protocol::kFrameHeaderSize + protocol::kMaxControlLength> bytes;
    const auto received = stream_.receive(bytes);
    if (received < 0 && errno == EAGAIN) return std::nullopt;
    if (received <= 0) {
      throw Error(ErrorCode::connection_reset,
                  received == 0 ? "the peer closed the control channel" : stream_.failure(errno));
    }
    input_.insert(input_.end(), bytes.begin(), bytes.begin() + received);
  }
}

std::string StreamControlConnection::peer_name() const {
  const net::SocketAddress peer = source();
  return peer.size != 0 ? peer.to_string() : "a disconnected peer";
}

net::SocketAddress StreamControlConnection::source() const {
  try {
    return net::peer_address(stream_.fd());
  } catch (const Error&) {
    return {};
  }
}

std::optional<bool> StreamControlConnection::may_have_key() {
  return keys_ ? names_a_key(stream_.fd(), *keys_) : true;
}

TcpStream StreamControlConnection::connect_stream_again(const Address& address) const {
  return connect_(narrowed(address, source()));
}

std::unique_ptr<NetworkControlConnection> StreamControlConnection::connect_another(
    const Address& address) const {
  return std::make_unique<StreamControlConnection>(connect_stream_again(address), connect_);
}

void StreamControlConnection::send_frame(std::span<const std::byte> frame) {
  // The socket has room for many times the messages in flight: a partial send means that the peer
  // does not read.
  const iovec piece{const_cast<std::byte*>(frame.data()), frame.size()};
  const auto sent = stream_.send({&piece, 1});
  if (sent == static_cast<ssize_t>(frame.size())) return;
  if (sent >= 0 || errno == EAGAIN) {
    throw Error(ErrorCode::timed_out, "the peer does not read its messages");
  }
  throw Error(ErrorCode::connection_reset, "the control channel broke: " + stream_.failure(errno));
}

std::unique_ptr<DataEndpoint> StreamControlConnection::connect_data_endpoint(
    std::span<const std::byte> peer) {
  if (!peer.empty()) {
    throw Error(ErrorCode::bad_message,
                "the peer sent an endpoint, as over RDMA: both sides need the same --comch");
  }
  if (!input_.empty()) {
    throw Error(ErrorCode::bad_message, "the peer sent its next message before it had the answer");
  }
  return std::make_unique<TcpDataEndpoint>(std::move(stream_));
}

}  // namespace offload::comch
