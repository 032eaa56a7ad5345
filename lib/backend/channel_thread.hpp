#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "core/process/thread.hpp"
#include "kernels/channel_packets.hpp"
#include "kernels/serve.hpp"
#include "progress/engine.hpp"

namespace offload::backend {

/// A thread that serves one channel in turns of an engine: it spins for a while after the last
/// request, then sleeps until the server rings. Each turn calls poll() of the derived class.
///
/// The thread that made it makes all calls, except that the started thread calls poll(),
/// expecting() and arm().
class ChannelThread : protected progress::Pollable, progress::EventHandler {
 public:
  /// `times`: its counters.
  ChannelThread(const channel::SharedChannel& channel, core::Duration spin,
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
  ChannelThread& operator=(ChannelThread&&) = delete;

  /// Throws Error.
  void start() {
    thread_ = core::start_thread("worker-" + std::to_string(channel_->index()), [this] { run(); });
  }
  /// Stops the thread after its present turn, and waits for that.
  void stop() {
    stop_.store(true, std::memory_order_relaxed);  // notify() wakes the thread and orders this
    engine_.notify();
    if (thread_.joinable()) thread_.join();
  }

  /// Returns the number of the thread's turns, without those in which it waits for a device.
  [[nodiscard]] std::uint64_t heartbeat() const { return turns_.load(std::memory_order_relaxed); }

  [[nodiscard]] bool take_fault(Fault& fault) {
    // Acquire: pairs with the release in report(), before which the fields were written.
    if (!has_fault_.load(std::memory_order_acquire)) return false;
    fault = fault_;
    has_fault_.store(false, std::memory_order_release);  // pairs with the acquire in report()
    return true;
  }

 protected:
  /// The derived class must have called stop().
  ~ChannelThread() = default;

  /// Called on the thread, before its first turn.
  virtual void on_start() {}
  core::Duration arm() override {
    // A network card writes requests without ringing.
    if (writer() != nullptr) return kLookInterval;
    waiter_.arm();
    return core::Duration::max();
  }
  void disarm() override { waiter_.disarm(); }

  [[nodiscard]] const kernels::ChannelView& channel() const { return channel_->view(); }
  [[nodiscard]] const channel::ResponseWriter* writer() const { return channel_->writer(); }
  /// Wakes the server, if it sleeps, because there are answers.
  void ring() { ringer_.ring(); }
  /// Records that a request was refused, until take_fault(); drops later ones until then.
  void report(std::uint64_t sequence) {
    if (has_fault_.load(std::memory_order_acquire)) return;  // the last one is not read yet
    fault_ = {channel_->index(), channel_->view().layout.slot_index(sequence),
              kernels::load_packet(channel_->view().request(sequence).packets).data[0]};
    has_fault_.store(true, std::memory_order_release);  // pairs with the acquire in take_fault()
  }
  /// Returns the counters of the thread; only for the thread.
  [[nodiscard]] ChannelTimes& times() noexcept { return *times_; }

  std::uint64_t sequence_;  ///< the next message to take; the thread's, when it is started
  kernels::Staging staging_{};

 private:
  /// The longest sleep of a thread; the doorbell or stop() wakes it earlier.
  static constexpr core::Duration kLongestSleep = std::chrono::seconds(1);
  /// The interval of polls for requests that no doorbell announces.
  static constexpr core::Duration kLookInterval = std::chrono::microseconds(50);

  void run() {
    on_start();
    while (!stop_.load(std::memory_order_relaxed)) {
      const bool worked = engine_.run_once(core::Clock::now() + kLongestSleep);
      if (!worked && expecting() == progress::Expecting::from_device) continue;
      // Relaxed, one writer: a counter for the watchdog.
      turns_.store(turns_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
  }
  void on_events(std::uint32_t) override { waiter_.drain(); }

  channel::SharedChannel channel_;
  channel::Waiter waiter_;
  channel::Ringer ringer_;
  SharedChannelTimes times_;
  progress::Engine engine_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> turns_{0};
  Fault fault_{};
  std::atomic<bool> has_fault_{false};
  std::thread thread_;
};

// The functions of Backend for all threads of a back end.

template <class Thread>
std::vector<std::uint64_t> heartbeats_of(const std::vector<std::unique_ptr<Thread>>& threads) {
  std::vector<std::uint64_t> beats;
  for (const auto& thread : threads) beats.push_back(thread->heartbeat());
  return beats;
}

template <class Thread>
std::vector<Fault> take_faults_of(const std::vector<std::unique_ptr<Thread>>& threads) {
  std::vector<Fault> faults;
  for (const auto& thread : threads) {
    if (Fault fault{}; thread->take_fault(fault)) faults.push_back(fault);
  }
  return faults;
}

}  // namespace offload::backend
