#include "comch/transport/control_connection.hpp"

#include <poll.h>

#include <string_view>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/process/out_of_memory.hpp"

namespace offload::comch {

using core::Error;
using core::ErrorCode;
using protocol::MessageId;

void ControlConnection::refuse(protocol::Refusal code, const std::string& text) noexcept {
  try {
    constexpr std::size_t kMostText = protocol::kMaxControlLength - sizeof code;
    send_frame(protocol::make_error_frame(code, std::string_view(text).substr(0, kMostText)));
  } catch (const std::exception& error) {
    core::log_debug("a refusal could not be sent: {}", core::what_of(error));
  }
}

ControlMessage ControlConnection::await() {
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

std::unique_ptr<DataEndpoint> NetworkControlConnection::request_data_endpoint(
    protocol::AttachChannel request, std::uint32_t depth) {
  request.endpoint = open_data_endpoint(depth);
  return connect_data_endpoint(exchange_endpoints(request));
}

std::vector<std::byte> NetworkControlConnection::exchange_endpoints(
    const protocol::AttachChannel& request) {
  send(MessageId::attach_channel, request.encode());
  ControlMessage answer = await();
  if (answer.id != MessageId::channel_attached) {
    const bool is_error = answer.id == MessageId::error;
    throw Error(ErrorCode::bad_message,
                "the server does not attach channel " + std::to_string(request.channel) +
                    (is_error ? ": " + protocol::parse_error(answer.payload).text : ""));
  }
  return std::move(answer.payload);
}

namespace {

[[noreturn]] void throw_no_slots() {
  throw Error(ErrorCode::not_supported,
              "a back end can post responses (--data-path gpu) only over RDMA");
}

}  // namespace

void NetworkControlConnection::require_slots() const {
  throw_no_slots();
}

std::unique_ptr<SlotPath> NetworkControlConnection::request_slot_path(protocol::AttachChannel,
                                                                      const kernels::ChannelView&,
                                                                      progress::Engine&) {
  throw_no_slots();
}

std::unique_ptr<DataEndpoint> NetworkControlConnection::grant_slot_endpoint(
    const protocol::AttachChannel&, const kernels::ChannelView&) {
  throw_no_slots();
}

std::unique_ptr<DataEndpoint> NetworkControlConnection::grant_data_endpoint(
    const protocol::AttachChannel& request, std::uint32_t depth) {
  // The answer is sent first: over TCP only data may follow it. The worker sends no data before it
  // has a request.
  send(MessageId::channel_attached, open_data_endpoint(depth));
  return connect_data_endpoint(request.endpoint);
}

ControlMessage parse_packet(std::span<const std::byte> bytes) {
  const auto frame = protocol::parse_frame(bytes, protocol::kMaxControlLength);
  if (frame.state != protocol::FrameView::State::complete || frame.size() != bytes.size()) {
    throw Error(ErrorCode::bad_message, "a control message is not one whole frame");
  }
  return {frame.id, {frame.payload.begin(), frame.payload.end()}, {}};
}

}  // namespace offload::comch
