#include "comch/proxy/slot_exchange.hpp"

#include <string>
#include <utility>

#include "comch/proxy/own_channel.hpp"
#include "core/process/thread.hpp"

namespace offload::comch {
namespace {

/// The time for which the thread polls for entries of the back end before it sleeps between polls.
constexpr core::Duration kSlotSpin = std::chrono::microseconds(50);
/// The longest sleep, unless a shorter one is required.
constexpr core::Duration kLongestSlotSleep = std::chrono::seconds(1);

}  // namespace

SlotExchange::SlotExchange(const protocol::ChannelDescriptor& shape, const Connect& connect)
    : memory_(checked_shape(shape).channel, shape.depth, shape.max_message_length, -1, 0,
              shape.max_response_length),
      engine_(kSlotSpin),
      path_(connect(memory_.endpoint().view, engine_)),
      channel_(import_own(memory_, &path_->writer())) {}

SlotExchange::~SlotExchange() {
  stop_.store(true, std::memory_order_relaxed);
  engine_.notify();
  if (thread_.joinable()) thread_.join();
}

/// The back end polls for requests: nothing wakes it.
void SlotExchange::start(channel::Wakeup, std::function<void()> on_failure) {
  on_failure_ = std::move(on_failure);
  path_->start();
  thread_ = core::start_thread("slots-" + std::to_string(channel_->index()), [this] { run(); });
}

void SlotExchange::run() {
  while (!stop_.load(std::memory_order_relaxed) && failure() == nullptr) {
    engine_.run_once(engine_.now() + kLongestSlotSleep);
  }
  if (failure() != nullptr) on_failure_();
  path_->stop();
}

}  // namespace offload::comch
