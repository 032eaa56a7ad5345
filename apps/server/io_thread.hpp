#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "apps/server/connection.hpp"
#include "comch/channel.hpp"
#include "comch/consumer.hpp"
#include "comch/producer.hpp"
#include "comch/remote_worker.hpp"
#include "core/log.hpp"
#include "memory/block_cache.hpp"
#include "net/gather.hpp"
#include "progress/engine.hpp"
#include "progress/task_pool.hpp"

namespace offload::server {

/// What the control thread knows of the worker, told to the I/O threads.
enum class WorkerState : std::uint8_t {
  absent,   ///< requests wait
  rings,    ///< attached, wakes a sleeping server
  silent,   ///< attached, must be polled
  relayed,  ///< attached, at the other end of a line
  expired,  ///< absent for longer than --worker-timeout: requests are refused
};

/// One I/O thread: a listener, its connections, a channel's producer and consumer, an engine;
/// shares none of it. Requests go from socket to slot in one copy. Short responses go through the
/// cache to one gathered write, long ones into it from where they lie.
class IoThread final : progress::Pollable, progress::EventHandler, ConnectionOwner {
 public:
  struct Config {
    std::uint32_t index;
    int cpu;  ///< to run on; -1: anywhere
    std::uint32_t max_message_length;
    core::Duration spin;
    /// Clients get only descriptors below: the rest is for workers to attach with.
    int first_reserved_fd;
    /// Called on the thread when its line to the worker has ended.
    std::function<void(const std::string& reason)> on_line_lost;
  };

  /// `channel` outlives it, and has no other producer and consumer.
  IoThread(const Config& config, comch::Channel& channel, core::Fd listener);
  ~IoThread();

  /// Throws Error if it cannot be pinned.
  void start();

  // For the control thread, before and while it runs:

  /// `line`: to a worker that is relayed.
  void set_worker(WorkerState state, std::unique_ptr<comch::Line> line = {});
  /// Stop accepting and reading; answer what was read.
  void drain() noexcept;
  /// Whether the last connection is gone.
  [[nodiscard]] bool drained() const noexcept { return drained_.load(std::memory_order_acquire); }
  /// Ends it, drained or not, and logs what it did.
  void stop() noexcept;

 private:
  void run();

  bool poll() override;
  // What comes is the consumer's to expect and to be woken for.
  [[nodiscard]] progress::Expecting expecting() const override {
    return progress::Expecting::nothing;
  }
  core::Duration arm() override { return core::Duration::max(); }
  void disarm() override {}

  void on_events(std::uint32_t epoll_events) override;  // the listener's
  void pause_accepting();
  void resume_accepting();
  void log_turned_away(const std::string& reason);
  void on_ready(Connection& connection) override;

  bool apply_orders();
  bool apply_worker_order();
  void look_after_line();
  void abandon_requests(protocol::Refusal reason);
  void start_draining();
  void post_receives();
  static void free_send(comch::SendTask& task, void* self);
  void deliver(comch::PostRecvTask& task);
  bool finish_batch();
  bool serve_ready();
  bool serve(Connection& connection);
  bool take_frames(Connection& connection);
  bool forward(Connection& connection, std::span<const std::byte> payload);
  void refuse(Connection& connection, protocol::Refusal reason);
  void append_error(Connection& connection, protocol::Refusal reason);
  void touch(Connection& connection);
  void send_touched();
  void start_sweeping();
  void sweep();
  void erase(Connection& connection);

  /// The channel's doorbell only has to end the sleep.
  struct Bell final : progress::EventHandler {
    void on_events(std::uint32_t) override {}
  };

  Config config_;
  core::Fd listener_;
  Bell bell_;
  progress::Engine engine_;
  comch::ServerEnd server_end_;
  comch::Producer producer_;
  comch::Consumer consumer_;
  progress::TaskPool<comch::SendTask> sends_;
  progress::TaskPool<comch::PostRecvTask> receives_;
  memory::BlockCache buffers_;
  net::Gather gather_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> ready_;              ///< want attention
  std::vector<Connection*> serving_;            ///< are getting it
  std::vector<Connection*> sated_;              ///< got some, want more
  std::vector<Connection*> touched_;            ///< have output in gather_
  std::vector<comch::PostRecvTask*> received_;  ///< in this batch, to be posted again
  WorkerState worker_ = WorkerState::absent;
  /// While the worker is relayed, and until this goes: a worker whose line ends takes its server
  /// for lost.
  std::optional<comch::RemoteWorker> remote_;
  bool accepting_ = true;
  bool draining_ = false;
  core::TimePoint next_sweep_{};

  std::uint64_t accepted_ = 0;
  std::uint64_t answered_ = 0;
  std::uint64_t refused_ = 0;
  core::RateLimit refusal_log_;
  core::RateLimit turned_away_log_;

  // Orders, from the control thread; each is followed by engine_.notify(), which wakes the thread
  // and, as a system call on both sides, orders them.
  std::mutex worker_order_mutex_;
  WorkerState worker_order_ = WorkerState::absent;
  std::unique_ptr<comch::Line> line_order_;
  std::atomic<bool> has_worker_order_{false};  ///< set with release, seen with acquire
  std::atomic<bool> drain_order_{false};
  std::atomic<bool> stop_order_{false};
  std::atomic<bool> drained_{false};  ///< release by the thread, acquire in drained()
  std::thread thread_;
};

}  // namespace offload::server
