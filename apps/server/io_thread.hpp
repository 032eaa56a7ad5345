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
#include "channel/requester.hpp"
#include "comch/proxy/worker_proxy.hpp"
#include "core/cpu.hpp"
#include "core/intrusive_list.hpp"
#include "core/log.hpp"
#include "memory/block_cache.hpp"
#include "net/output_batch.hpp"
#include "progress/engine.hpp"

namespace offload::server {

/// What the control thread knows of the worker, told to the I/O threads.
struct WorkerState {
  /// How the attached worker's responses are noticed; none: no worker is attached, requests wait.
  channel::Wakeup wakeup = channel::Wakeup::none;
  /// No worker for longer than --worker-timeout: requests are refused.
  bool expired = false;

  [[nodiscard]] bool attached() const noexcept { return wakeup != channel::Wakeup::none; }
};

/// One I/O thread: connections, a channel's requester, an engine; shares none of it.
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

  /// `memory` outlives it, and has no other requester.
  IoThread(const Config& config, channel::ChannelMemory& memory);
  ~IoThread();

  /// Throws Error if it cannot be pinned.
  void start();

  // For the control thread, before and while it runs:

  /// `line`: to a worker whose responses come by a connection.
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

  /// Called in turns of the engine, which poll() follows.
  void on_response(channel::PostRecvTask& task);

 private:
  void run();

  bool poll() override;
  // What comes is the requester's to expect and to be woken for.
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

  using Connections = core::IntrusiveList<Connection>;

  Config config_;
  progress::Engine engine_;
  channel::Requester requester_;
  memory::BlockCache buffers_;
  net::OutputBatch gather_;
  std::vector<std::unique_ptr<Connection>> connections_;
  Connections ready_;    ///< want attention
  Connections waiting_;  ///< want room in the channel, who was there first in front
  Connections serving_;  ///< of either, in this round
  core::IntrusiveList<Connection, Lingering> lingering_;  ///< the first to be closed in front
  std::vector<Connection*> touched_;                      ///< have output in gather_
  std::vector<channel::PostRecvTask*> received_;          ///< in this batch, to be released
  WorkerState worker_;
  /// Of a worker on another machine. It closes its line to that worker when it goes, which thereby
  /// loses its server.
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
