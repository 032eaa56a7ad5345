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
#include "channel/channel_memory.hpp"
#include "channel/consumer.hpp"
#include "channel/producer.hpp"
#include "comch/proxy/worker_proxy.hpp"
#include "core/cpu.hpp"
#include "core/intrusive_list.hpp"
#include "core/log.hpp"
#include "memory/block_cache.hpp"
#include "net/output_batch.hpp"
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

/// One I/O thread: connections, a channel's producer and consumer, an engine; shares none of it.
/// Requests go from socket to slot in one copy. Short responses go through the cache to one
/// gathered write, long ones into it from where they lie.
class IoThread final : progress::Pollable, ConnectionOwner {
 public:
  struct Config {
    std::uint32_t index;
    int cpu;  ///< to run on; -1: anywhere
    std::uint32_t max_message_length;
    core::Duration spin;
    /// Called on the thread when its line to the worker has ended.
    std::function<void(const std::string& reason)> on_line_lost;
  };

  /// `channel` outlives it, and has no other producer and consumer.
  IoThread(const Config& config, channel::Channel& channel);
  ~IoThread();

  /// Throws Error if it cannot be pinned.
  void start();

  // For the control thread, before and while it runs:

  /// `line`: to a worker that is relayed.
  void set_worker(WorkerState state, std::unique_ptr<comch::DataEndpoint> line = {});
  /// A client's socket: connected, non-blocking. Not after drain().
  void take(core::Fd socket);
  /// Clients that it was given and that are not gone.
  [[nodiscard]] std::uint64_t client_count() const noexcept {
    return given_ - gone_.load(std::memory_order_relaxed);
  }
  /// Stop reading, also from who was given before; answer what was read.
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

  void on_ready(Connection& connection) override;

  template <class Change>
  void give_order(Change change);
  bool apply_orders();
  void apply_worker_order(WorkerState state, std::unique_ptr<comch::DataEndpoint> line);
  void welcome(core::Fd socket);
  void look_after_line();
  void abandon_requests(protocol::Refusal reason);
  void start_draining();
  void go_on_draining();
  void post_receives();
  static void free_send(channel::SendTask& task, void* self);
  void deliver(channel::PostRecvTask& task);
  bool finish_batch();
  [[nodiscard]] bool refuses_requests() const noexcept;
  [[nodiscard]] bool full() const noexcept;
  bool serve_ready();
  bool tend(Connection& connection);
  bool serve(Connection& connection);
  bool take_frames(Connection& connection);
  bool forward(Connection& connection, std::span<const std::byte> payload);
  void refuse(Connection& connection, protocol::Refusal reason);
  void append_error(Connection& connection, protocol::Refusal reason);
  void touch(Connection& connection);
  void send_touched();
  void finish(Connection& connection);
  void enqueue(Connection& connection, Connection::Queue queue);
  void close_lingering();
  void erase(Connection& connection);
  void count_gone() noexcept;

  /// The channel's doorbell only has to end the sleep.
  struct Bell final : progress::EventHandler {
    void on_events(std::uint32_t) override {}
  };

  using Connections = core::IntrusiveList<Connection>;

  Config config_;
  Bell bell_;
  progress::Engine engine_;
  channel::ServerEnd server_end_;
  channel::Producer producer_;
  channel::Consumer consumer_;
  progress::TaskPool<channel::SendTask> sends_;
  progress::TaskPool<channel::PostRecvTask> receives_;
  memory::BlockCache buffers_;
  net::OutputBatch gather_;
  std::vector<std::unique_ptr<Connection>> connections_;
  Connections ready_;    ///< want attention
  Connections waiting_;  ///< want room in the channel, who was there first in front
  Connections serving_;  ///< of either, in this round
  core::IntrusiveList<Connection, Lingering> lingering_;  ///< the first to be closed in front
  std::vector<Connection*> touched_;                      ///< have output in gather_
  std::vector<channel::PostRecvTask*> received_;          ///< in this batch, to be posted again
  WorkerState worker_ = WorkerState::absent;
  /// While the worker is relayed, and until this goes: a worker whose line ends takes its server
  /// for lost.
  std::optional<comch::WorkerProxy> remote_;
  bool draining_ = false;

  std::uint64_t accepted_ = 0;
  std::uint64_t answered_ = 0;
  std::uint64_t refused_ = 0;
  core::RateLimit refusal_log_;
  core::RateLimit turned_away_log_;
  std::vector<core::Fd> newcomers_;  ///< of the orders that are being applied

  // For the control thread, which looks when a client comes: apart from what the thread uses
  // with every message.
  alignas(core::kCacheLinePair) std::atomic<std::uint64_t> gone_{0};  ///< written by the thread
  std::atomic<bool> drained_{false};  ///< release by the thread, acquire in drained()

  // Orders, from the control thread, under the mutex; engine_.notify() follows and wakes the
  // thread, unless it has yet to take those before.
  alignas(core::kCacheLinePair) std::atomic<bool> has_orders_{false};  ///< release, acquire
  std::atomic<bool> stop_order_{false};                                ///< relaxed; then a join
  std::mutex orders_mutex_;
  std::optional<WorkerState> worker_order_;
  std::unique_ptr<comch::DataEndpoint> line_order_;
  std::vector<core::Fd> socket_orders_;
  bool drain_order_ = false;

  std::uint64_t given_ = 0;  ///< the control thread's: sockets by take()
  std::thread thread_;
};

}  // namespace offload::server
