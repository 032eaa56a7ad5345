#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend/backend.hpp"
#include "comch/proxy/worker_proxy.hpp"
#include "comch/session/server_session.hpp"
#include "comch/session/worker_session.hpp"
#include "tests/channel/channel_fixture.hpp"
#include "tests/support/eventually.hpp"

/// A server and workers like the programs', without TCP clients and processes.
namespace offload::comch::conformance {

inline constexpr std::uint32_t kChannels = 2;
inline constexpr std::uint32_t kDepth = 8;
inline constexpr std::uint32_t kLongest = 20'000;
/// The bytes of a message that shares no slot.
inline constexpr std::uint32_t kAlone = channel::BatchBuffer::kLongest + 1;
inline constexpr std::size_t kMostWorkers = 2;
inline constexpr std::uint64_t kMostMemory = 1U << 20;

/// A server that runs on a separate thread, as a connection to it may wait for it. Tests use it on
/// that thread, through with().
class ServerSide final : ServerSession::Observer {
 public:
  explicit ServerSide(const Address& address);
  ~ServerSide();

  /// Returns the address, with the port that it has.
  [[nodiscard]] const Address& address() const { return address_; }

  /// Runs `work` between two turns and returns its result.
  template <class Work>
  auto with(Work work) {
    std::optional<decltype(work(*this))> result;
    run_there([&] { result = work(*this); });
    return *std::move(result);
  }
  template <class Condition>
  bool eventually(Condition condition) {
    return support::eventually([&] { return with(condition); });
  }

  // For use on its thread only:

  /// The end of one channel, which is with the worker that has attached last.
  struct End {
    explicit End(std::uint32_t index)
        : unattached(index, kDepth, kLongest, -1), server(unattached.endpoint()) {
      server.requester.set_wakeup(channel::Wakeup::none);
    }
    channel::ChannelMemory unattached;  ///< until the first worker
    std::shared_ptr<WorkerChannel> attached;
    channel::test::Server server;
    std::unique_ptr<WorkerProxy> remote;
    /// The ends of earlier workers of the channel, which may still be attached.
    std::vector<std::pair<std::shared_ptr<WorkerChannel>, std::unique_ptr<WorkerProxy>>> former;
    std::deque<support::Bytes> responses;
  };
  void send(const support::Bytes& bytes) { session->send_user_message(current_, bytes); }
  std::vector<std::unique_ptr<End>> ends;
  std::unique_ptr<ServerSession> session;
  int attached = 0;
  int lost = 0;
  int shutdown_requests = 0;
  std::vector<support::Bytes> user_messages;
  std::string connection_lost;  ///< why, last

 private:
  void on_worker_attached(AttachedWorker worker) override;
  void on_worker_leaving(WorkerId worker) override;
  void on_worker_lost(WorkerId worker, WorkerLoss loss) override;
  void on_shutdown_requested() override { ++shutdown_requests; }
  void on_user_message(WorkerId, std::span<const std::byte> bytes) override {
    user_messages.emplace_back(bytes.begin(), bytes.end());
  }

  void run_there(const std::function<void()>& work);
  void run();
  void turn();
  void move_to(AttachedWorker worker);

  progress::Engine engine_;
  std::optional<AttachedWorker> next_;  ///< gets the channels in the next turn
  WorkerId current_ = 0;                ///< has the channels; 0: none has
  Address address_;
  std::mutex mutex_;
  std::condition_variable done_;
  const std::function<void()>* work_ = nullptr;
  bool stop_ = false;
  std::thread thread_;
};

/// A worker with the CPU back end. Its end is sudden, when the object is destroyed.
class WorkerSide final : WorkerSession::Observer {
 public:
  /// The step at which it stops by itself.
  enum class Until : std::uint8_t { greeted, offered, attached };

  /// Throws Error as WorkerSession does. `hello`: its greeting.
  explicit WorkerSide(const Address& address, Until until = Until::attached,
                      std::optional<protocol::Hello> hello = {});
  ~WorkerSide();

  /// Runs it until `condition` holds; returns false if it does not within a bound.
  template <class Condition>
  bool run_until(Condition condition) {
    return support::eventually(condition, [this] {
      engine_.run_once(core::Clock::now() + std::chrono::milliseconds(5));
      check_connections();
    });
  }
  [[nodiscard]] WorkerSession& session() noexcept { return *session_; }

  int attached = 0;
  std::vector<std::uint32_t> assignments;
  int start_shutdowns = 0;
  std::vector<support::Bytes> user_messages;
  std::optional<std::string> lost;  ///< why
  std::optional<protocol::Refusal> refused;

 private:
  void on_channels(std::vector<AttachedChannel> channels) override;
  void on_attached() override { ++attached; }
  void on_assignment(std::uint32_t channels) override { assignments.push_back(channels); }
  void on_start_shutdown(protocol::ShutdownReason) override { ++start_shutdowns; }
  void on_user_message(std::span<const std::byte> bytes) override {
    user_messages.emplace_back(bytes.begin(), bytes.end());
  }
  void on_lost(const std::string& reason, std::optional<protocol::Refusal> by) override;
  void check_connections();

  Until until_;
  progress::Engine engine_;
  std::vector<AttachedChannel> channels_;
  std::unique_ptr<backend::Backend> backend_;
  std::unique_ptr<WorkerSession> session_;
};

/// Returns the greeting of a worker of this suite, for a test of it.
protocol::Hello hello();

}  // namespace offload::comch::conformance
