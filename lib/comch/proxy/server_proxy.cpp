#include "comch/proxy/server_proxy.hpp"

#include <string>
#include <utility>

#include "comch/proxy/own_channel.hpp"
#include "core/process/thread.hpp"

namespace offload::comch {
namespace {

/// The time for which the thread polls for the back end's answer before it sleeps.
constexpr core::Duration kSpin = std::chrono::microseconds(50);
/// The longest sleep; the connection, the back end and the end of the proxy wake the thread.
constexpr core::Duration kLongestSleep = std::chrono::seconds(1);

}  // namespace

ServerProxy::ServerProxy(const protocol::ChannelDescriptor& shape,
                         std::unique_ptr<DataEndpoint> endpoint)
    : memory_(checked_shape(shape).channel, shape.depth, shape.max_message_length, -1, 0,
              shape.max_response_length),
      channel_(import_own(memory_)),
      engine_(kSpin),
      slots_(memory_.endpoint(), *this),
      connection_(endpoint->start(engine_, slots_.view(), *this, slots_.depth())) {}

ServerProxy::~ServerProxy() {
  stop_.store(true, std::memory_order_relaxed);
  engine_.notify();
  if (thread_.joinable()) thread_.join();
}

void ServerProxy::open(channel::Wakeup wakeup) {
  slots_.set_wakeup(wakeup);
  slots_.open(engine_);
}

void ServerProxy::start(channel::Wakeup wakeup, std::function<void()> on_failure) {
  on_failure_ = std::move(on_failure);
  open(wakeup);
  thread_ = core::start_thread("relay-" + std::to_string(channel_->index()), [this] { run(); });
}

bool ServerProxy::on_received(const protocol::DataHeader& header,
                              std::span<const std::byte> content) {
  if (slots_.full()) return false;
  slots_.post({content, header.count});
  return true;
}

void ServerProxy::on_content(const channel::ContentResponse& response) {
  const auto length = static_cast<std::uint32_t>(response.bytes.size());
  // A header that the server's end would refuse is a failure of the request, not of the connection.
  if (response.status != kernels::Status::ok ||
      !kernels::is_valid_content(slots_.view().layout, length, response.count)) {
    constexpr auto kFailed = static_cast<std::uint16_t>(kernels::Status::bad_length);
    return connection_->post_send({response.sequence, 0, 0, kFailed}, nullptr);
  }
  connection_->post_send({response.sequence, length, static_cast<std::uint16_t>(response.count), 0},
                         response.bytes.data());
}

void ServerProxy::on_sent(std::size_t count) {
  answers_sent_ += count;
  slots_.release_until(answers_sent_);
  slots_.flush();
}

void ServerProxy::run() {
  while (!stop_.load(std::memory_order_relaxed) && failure() == nullptr) {
    turn(engine_.now() + kLongestSleep);
  }
  if (failure() != nullptr) on_failure_();
}

}  // namespace offload::comch
