#include "backend/channel_thread.hpp"

#include <string>
#include <utility>

#include "core/process/thread.hpp"
#include "kernels/packet_access.hpp"

namespace offload::backend {

/// The longest sleep of a thread; the doorbell or stop() wakes it earlier.
constexpr core::Duration kLongestSleep = std::chrono::seconds(1);
/// The interval of polls for requests that no doorbell announces.
constexpr core::Duration kLookInterval = std::chrono::microseconds(50);

ChannelThread::ChannelThread(const channel::SharedChannel& channel, core::Duration spin,
                             SharedChannelTimes times)
    : sequence_(channel->first_sequence()),
      channel_(channel),
      waiter_(channel->waiter()),
      ringer_(channel->ringer()),
      times_(std::move(times)),
      engine_(spin, &times_->turns) {
  engine_.attach(*this);
  engine_.watch(waiter_.fd(), EPOLLIN | EPOLLET, *this);
}

void ChannelThread::start() {
  thread_ = core::start_thread("worker-" + std::to_string(channel_->index()), [this] { run(); });
}

void ChannelThread::stop() {
  stop_.store(true, std::memory_order_relaxed);  // notify() wakes the thread and orders this
  engine_.notify();
  if (thread_.joinable()) thread_.join();
}

void ChannelThread::run() {
  on_start();
  while (!stop_.load(std::memory_order_relaxed)) {
    const bool worked = engine_.run_once(core::Clock::now() + kLongestSleep);
    if (!worked && expecting() == progress::Expecting::from_device) continue;
    // Relaxed, one writer: a counter for the watchdog.
    turns_.store(turns_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
}

core::Duration ChannelThread::arm() {
  if (writer() != nullptr) return kLookInterval;  // a network card writes requests without ringing
  waiter_.arm();
  return core::Duration::max();
}

bool ChannelThread::take_fault(Fault& fault) {
  // Acquire: pairs with the release in report(), before which the fields were written.
  if (!has_fault_.load(std::memory_order_acquire)) return false;
  fault = fault_;
  has_fault_.store(false, std::memory_order_release);  // pairs with the acquire in report()
  return true;
}

void ChannelThread::report(std::uint64_t sequence) {
  if (has_fault_.load(std::memory_order_acquire)) return;  // the last one is not read yet
  fault_ = {channel_->index(), channel_->view().layout.slot_index(sequence),
            kernels::load_packet(channel_->view().request(sequence).packets).data[0]};
  has_fault_.store(true, std::memory_order_release);  // pairs with the acquire in take_fault()
}

}  // namespace offload::backend
