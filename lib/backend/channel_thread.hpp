#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "backend/backend.hpp"
#include "progress/engine.hpp"

namespace offload::backend {

/// A thread that serves one channel by turns of an engine: it spins for a while after the last
/// request, then sleeps until the server rings. What a turn does is the derived class's.
///
/// All is called by the thread that made it, but poll, expecting and arm by the one started.
class ChannelThread : protected progress::Pollable, progress::EventHandler {
 public:
  ChannelThread(const channel::SharedChannel& channel, core::Duration spin);
  ChannelThread(const ChannelThread&) = delete;
  ChannelThread& operator=(const ChannelThread&) = delete;

  /// Ends the thread once its turn is over.
  void stop();

  /// Moves while the thread makes its turns, but for those in which it waits for a device.
  [[nodiscard]] std::uint64_t heartbeat() const { return turns_.load(std::memory_order_relaxed); }

  [[nodiscard]] bool take_fault(Fault& fault);

 protected:
  /// The derived class has stopped it.
  ~ChannelThread() = default;

  void start();

  /// On the thread, before its first turn.
  virtual void on_start() {}
  core::Duration arm() override;
  void disarm() override { waiter_.disarm(); }

  [[nodiscard]] const kernels::ChannelView& channel() const { return channel_->view(); }
  /// Tells the server of answers.
  void ring() { ringer_.ring(); }
  /// Notes that a request was refused; one at a time until it is taken.
  void report(std::uint64_t sequence);
  /// Where a worker that attaches starts to look: all before it is done.
  [[nodiscard]] std::uint64_t consumed() const;

 private:
  void run();
  void on_events(std::uint32_t) override {}  // the wake-up itself is all there is to it

  channel::SharedChannel channel_;
  channel::Waiter waiter_;
  channel::Ringer ringer_;
  progress::Engine engine_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> turns_{0};
  Fault fault_{};
  std::atomic<bool> has_fault_{false};
  std::thread thread_;
};

// Of all threads of a back end, as Backend has them.

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
