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

/// A thread that serves one channel in turns of an engine: it spins for a while after the last
/// request, then sleeps until the server rings. Each turn calls poll() of the derived class.
///
/// The thread that made it makes all calls, except that the started thread calls poll(),
/// expecting() and arm().
class ChannelThread : protected progress::Pollable, progress::EventHandler {
 public:
  /// `times`: its counters.
  ChannelThread(const channel::SharedChannel& channel, core::Duration spin,
                SharedChannelTimes times);
  ChannelThread& operator=(ChannelThread&&) = delete;

  /// Throws Error.
  void start();
  /// Stops the thread after its present turn, and waits for that.
  void stop();

  /// Returns the number of the thread's turns, without those in which it waits for a device.
  [[nodiscard]] std::uint64_t heartbeat() const { return turns_.load(std::memory_order_relaxed); }

  [[nodiscard]] bool take_fault(Fault& fault);

 protected:
  /// The derived class must have called stop().
  ~ChannelThread() = default;

  /// Called on the thread, before its first turn.
  virtual void on_start() {}
  core::Duration arm() override;
  void disarm() override { waiter_.disarm(); }

  [[nodiscard]] const kernels::ChannelView& channel() const { return channel_->view(); }
  [[nodiscard]] const channel::ResponseWriter* writer() const { return channel_->writer(); }
  /// Wakes the server, if it sleeps, because there are answers.
  void ring() { ringer_.ring(); }
  /// Records that a request was refused, until take_fault(); drops later ones until then.
  void report(std::uint64_t sequence);
  /// Returns the counters of the thread; only for the thread.
  [[nodiscard]] ChannelTimes& times() noexcept { return *times_; }

  std::uint64_t sequence_;  ///< the next message to take; the thread's, when it is started
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
