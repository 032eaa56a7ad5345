#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "backend/backend.hpp"
#include "kernels/serve.hpp"
#include "progress/engine.hpp"

namespace offload::backend {

/// A thread that serves one channel by turns of an engine: it spins for a while after the last
/// request, then sleeps until the server rings. The derived class's poll() is what a turn does.
///
/// The thread that made it makes all calls, except that the started thread calls poll, expecting
/// and arm.
class ChannelThread : protected progress::Pollable, progress::EventHandler {
 public:
  /// `times`: where it counts its own.
  ChannelThread(const channel::SharedChannel& channel, core::Duration spin,
                SharedChannelTimes times);
  ChannelThread(const ChannelThread&) = delete;
  ChannelThread& operator=(const ChannelThread&) = delete;

  /// Throws Error.
  void start();
  /// Ends the thread after its present turn. Waits for that.
  void stop();

  /// Counts the thread's turns, except those in which it waits for a device.
  [[nodiscard]] std::uint64_t heartbeat() const { return turns_.load(std::memory_order_relaxed); }

  [[nodiscard]] bool take_fault(Fault& fault);

 protected:
  /// The derived class has called stop().
  ~ChannelThread() = default;

  /// Called on the thread, before its first turn.
  virtual void on_start() {}
  core::Duration arm() override;
  void disarm() override { waiter_.disarm(); }

  [[nodiscard]] const kernels::ChannelView& channel() const { return channel_->view(); }
  [[nodiscard]] const channel::ResponseWriter* writer() const { return channel_->writer(); }
  /// Wakes the server, if it sleeps, as there are answers.
  void ring() { ringer_.ring(); }
  /// Notes that a request was refused. Kept until take_fault(); others meanwhile are dropped.
  void report(std::uint64_t sequence);
  /// Where the thread counts its times; the thread's.
  [[nodiscard]] ChannelTimes& times() noexcept { return *times_; }

  std::uint64_t sequence_;  ///< the next message to take; the thread's, once it is started
  kernels::Staging staging_{};

 private:
  void run();
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

// What Backend asks, of all threads of a back end.

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
