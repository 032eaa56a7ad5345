#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comch/session/server_session.hpp"
#include "comch/session/worker_session.hpp"
#include "comch/transport/transport.hpp"
#include "core/error.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/temp_dir.hpp"

/// Both sessions over a real socket, and hand-made peers for messages that no session would send.
namespace offload::comch::test {

/// Notes the events of the server's program.
class WorkerEvents final : public ServerSession::Observer {
 public:
  void on_worker_attached(AttachedWorker worker) override {
    ++attached;
    last = std::move(worker);
  }
  void on_worker_leaving(WorkerId worker) override { leaving.push_back(worker); }
  void on_worker_lost(WorkerId worker, WorkerLoss how) override {
    ++lost;
    last_lost = worker;
    last_loss = how;
  }
  void on_shutdown_requested() override { ++shutdown_requests; }

  int attached = 0;
  int lost = 0;
  int shutdown_requests = 0;
  AttachedWorker last{};  ///< that attached
  WorkerId last_lost = 0;
  WorkerLoss last_loss{};
  std::vector<WorkerId> leaving;
};

/// Notes the events of the worker's program.
class ServerEvents final : public WorkerSession::Observer {
 public:
  void on_channels(std::vector<AttachedChannel> attached_channels) override {
    service = attached_channels.front().service;
    channels = std::move(attached_channels);
    std::this_thread::sleep_for(start_time);
    if (fail_to_start) throw core::Error(core::ErrorCode::driver, "the back end is out of order");
  }
  void on_attached() override { ++attached; }
  void on_assignment(std::uint32_t count) override { assignments.push_back(count); }
  void on_start_shutdown(protocol::ShutdownReason why) override {
    ++start_shutdowns;
    shutdown_reason = why;
  }
  void on_lost(const std::string& why, std::optional<protocol::Refusal> by) override {
    ++lost;
    reason = why;
    refused = by;
  }

  bool fail_to_start = false;
  core::Duration start_time{};  ///< the time that the back end takes
  std::string service;          ///< of the first channel
  std::vector<AttachedChannel> channels;
  int attached = 0;
  std::vector<std::uint32_t> assignments;
  int start_shutdowns = 0;
  std::optional<protocol::ShutdownReason> shutdown_reason;
  int lost = 0;
  std::string reason;
  std::optional<protocol::Refusal> refused;
};

/// Shorter than the 5 keep-alives after which silence is a loss; tests that do not wait for it call
/// tick() with simulated times.
inline constexpr core::Duration kKeepAlive = std::chrono::seconds(1);
inline constexpr core::Duration kSilence = 5 * kKeepAlive;

inline protocol::Hello hello() {
  protocol::Hello hello;
  hello.capabilities = protocol::kRingsDoorbell;
  hello.max_channels = 16;
  hello.max_message_length = 4096;
  hello.backend = "test";
  hello.services = {"echo", "reverse"};
  return hello;
}

class SessionTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kChannels = 2;
  static constexpr std::uint32_t kMaxLength = 600;

  static constexpr std::uint32_t kDepth = 4;
  static constexpr std::size_t kMostWorkers = 3;
  static constexpr std::uint64_t kMostMemory = 1U << 20;

  void SetUp() override {
    for (std::uint32_t i = 0; i < kChannels; ++i) {
      channels_.push_back(std::make_unique<channel::ChannelMemory>(i, kDepth, kMaxLength, -1));
    }
  }

  void listen(core::Duration keep_alive = kKeepAlive,
              std::vector<std::string> services = {"reverse"}) {
    server_session_.reset();
    ServerSession::Offer offer{std::vector<int>(kChannels, -1),
                               kDepth,
                               kMaxLength,
                               48,
                               std::move(services),
                               keep_alive,
                               kMostWorkers};
    server_session_.emplace(server_engine_, address_, std::move(offer), worker_events_);
  }

  void attach() {
    worker_session_.emplace(worker_engine_, address_, hello(), kMostMemory, server_events_);
  }

  /// Runs both sides until `condition` holds; returns false if it does not within a bound.
  template <class Condition>
  bool run_until(Condition condition) {
    return support::eventually(condition, [this] {
      const auto soon = core::Clock::now() + std::chrono::milliseconds(1);
      server_engine_.run_once(soon);
      worker_engine_.run_once(soon);
    });
  }

  /// Returns the next message for a hand-made peer; fails if none comes.
  ControlMessage next(ControlConnection& connection) {
    std::optional<ControlMessage> message;
    EXPECT_TRUE(run_until([&] { return (message = connection.receive()).has_value(); }));
    return message ? *std::move(message) : ControlMessage{};
  }

  /// Returns whether the other side closes the connection, whatever it sends before.
  bool is_closed_on(ControlConnection& connection) {
    return run_until([&] {
      try {
        connection.receive();
        return false;
      } catch (const core::Error& error) {
        return error.code() == core::ErrorCode::connection_reset;
      }
    });
  }

  support::LogCapture log_;
  support::TempDir dir_;
  Address address_ = Address::parse("unix:" + dir_.file("comch"));
  std::vector<std::unique_ptr<channel::ChannelMemory>> channels_;  ///< for a server made by hand
  progress::Engine server_engine_;
  progress::Engine worker_engine_;
  WorkerEvents worker_events_;
  ServerEvents server_events_;
  std::optional<ServerSession> server_session_;
  std::optional<WorkerSession> worker_session_;
};

}  // namespace offload::comch::test
