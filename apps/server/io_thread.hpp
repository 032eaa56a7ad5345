#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/server/client_table.hpp"
#include "apps/server/handshakes.hpp"
#include "apps/server/mailbox.hpp"
#include "apps/server/request_path.hpp"
#include "channel/channel_memory.hpp"
#include "comch/proxy/worker_proxy.hpp"
#include "core/cpu.hpp"
#include "core/log.hpp"
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

/// One I/O thread: it carries out the control thread's orders and drives its engine, on which its
/// clients and the requester of one channel work. Threads share none of it.
class IoThread final : progress::Pollable {
 public:
  /// Of memory, bytes.
  static constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 62;

  struct Config {
    std::uint32_t index;
    int cpu;  ///< to run on; -1: anywhere
    std::uint32_t max_message_length;
    core::Duration spin;
    /// Called on the thread when its data connection to the worker has ended.
    std::function<void(const std::string& reason)> on_connection_lost;
    ClientLimits client_limits{};
    /// Of all threads together.
    std::shared_ptr<ClientMemory> client_memory = std::make_shared<ClientMemory>(kUnlimited, 1);
  };

  /// `memory` outlives it, and has no other requester.
  IoThread(const Config& config, channel::ChannelMemory& memory);
  ~IoThread();

  /// Throws Error if it cannot be pinned.
  void start();

  // For the control thread, before and while it runs:

  /// `endpoint`: to a worker whose responses come by a connection.
  void set_worker(WorkerState state, std::unique_ptr<comch::DataEndpoint> endpoint = {});
  /// Clients that come from now on speak TLS.
  void set_tls(net::TlsContext context);
  /// A client's socket: connected, non-blocking. Not after drain().
  void take(core::Fd socket, Admission admission = {});
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
  /// From the control thread; of two states of the worker the later one counts.
  struct Orders {
    std::optional<WorkerState> worker;
    std::unique_ptr<comch::DataEndpoint> endpoint;
    std::optional<net::TlsContext> tls;
    std::vector<std::pair<core::Fd, Admission>> sockets;
    bool drain = false;
  };

  void run();

  bool poll() override;
  // What comes is the requester's to expect and to be woken for.
  [[nodiscard]] progress::Expecting expecting() const override {
    return progress::Expecting::nothing;
  }
  core::Duration arm() override { return core::Duration::max(); }
  void disarm() override {}

  template <class Change>
  void give_order(Change change);
  bool apply_orders();
  void set_worker_state(WorkerState state, std::unique_ptr<comch::DataEndpoint> endpoint);
  void take_in(core::Fd socket, Admission admission);
  void add_client(net::Stream stream, Admission admission);
  void log_turned_away(std::string_view address, std::string_view reason);
  [[nodiscard]] std::optional<protocol::Refusal> refusal() const noexcept;
  void report_connection_loss();

  Config config_;
  progress::Engine engine_;
  ClientTable clients_;
  Handshakes handshakes_;
  RequestPath path_;
  WorkerState worker_;
  /// Of a worker on another machine. When it goes its connection ends, by which that worker
  /// learns that its server is gone.
  std::optional<comch::WorkerProxy> worker_proxy_;
  bool draining_ = false;
  std::uint64_t taken_ = 0;     ///< of the sockets that it was given
  std::uint64_t accepted_ = 0;  ///< of those, what became clients
  core::RateLimit turned_away_log_;

  // For the control thread, which looks when a client comes: apart from what the thread uses
  // with every message.
  alignas(core::kCacheLinePair) std::atomic<std::uint64_t> gone_{0};  ///< written by the thread
  std::atomic<bool> drained_{false};     ///< release by the thread, acquire in drained()
  std::atomic<bool> stop_order_{false};  ///< relaxed; then a join

  Mailbox<Orders> orders_;
  std::uint64_t given_ = 0;  ///< the control thread's: sockets by take()
  std::thread thread_;
};

}  // namespace offload::server
