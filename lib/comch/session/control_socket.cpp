#include "comch/session/control_socket.hpp"

#include <poll.h>

#include "comch/session/handshake.hpp"
#include "core/error.hpp"
#include "core/log.hpp"

namespace offload::comch {
namespace {

using core::Error;
using core::ErrorCode;
using protocol::MessageId;

std::unique_ptr<Listener> open_door(const Address& address) {
  if (address.local()) return listen_locally(address);
  return address.over_rdma ? listen_rdma(address) : listen_tcp(address);
}

}  // namespace

ControlSocket ControlSocket::connect(const Address& address) {
  if (address.local()) return ControlSocket(connect_locally(address));
  ControlSocket socket(address.over_rdma ? connect_rdma(address) : connect_tcp(address));
  prove_as_worker(socket, address.key);
  return socket;
}

ControlSocket ControlSocket::connect_again(const Address& address) const {
  ControlSocket socket(wire_->connect_again(address));
  prove_as_worker(socket, address.key);
  return socket;
}

void ControlSocket::send(MessageId id, std::span<const std::byte> payload,
                         std::span<const int> fds) {
  wire_->send(protocol::make_frame(id, payload), fds);
}

void ControlSocket::refuse(protocol::Refusal code, const std::string& text) noexcept {
  try {
    wire_->send(protocol::make_error_frame(code, text), {});
  } catch (const std::exception& error) {
    core::log_debug("a refusal could not be sent: {}", error.what());
  }
}

ControlMessage ControlSocket::await() {
  const auto deadline = core::Clock::now() + kHandshakeTime;
  while (true) {
    if (auto message = receive()) return *std::move(message);
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - core::Clock::now()).count();
    pollfd poll{fd(), POLLIN, 0};
    if (left <= 0 || ::poll(&poll, 1, static_cast<int>(left)) == 0) {
      throw Error(ErrorCode::timed_out, "the peer does not answer");
    }
  }
}

std::unique_ptr<DataEndpoint> ControlSocket::request_line(protocol::AttachChannel request,
                                                          std::uint32_t depth) {
  request.endpoint = wire_->begin_line(depth);
  send(MessageId::attach_channel, request.encode());
  const ControlMessage answer = await();
  if (answer.id != MessageId::channel_attached) {
    throw Error(ErrorCode::bad_message,
                "the server does not attach channel " + std::to_string(request.channel));
  }
  return wire_->end_line(answer.payload);
}

std::unique_ptr<DataEndpoint> ControlSocket::grant_line(const protocol::AttachChannel& request,
                                                        std::uint32_t depth) {
  // Said first: over TCP nothing but data may follow. The worker sends none before it is asked.
  send(MessageId::channel_attached, wire_->begin_line(depth));
  return wire_->end_line(request.endpoint);
}

ControlListener::ControlListener(const Address& address)
    : address_(address), door_(open_door(address)) {
  if (!address_.local()) address_.port = door_->port();
}

std::optional<ControlSocket> ControlListener::accept() {
  auto wire = door_->accept();
  return wire ? std::optional<ControlSocket>(std::move(wire)) : std::nullopt;
}

}  // namespace offload::comch
