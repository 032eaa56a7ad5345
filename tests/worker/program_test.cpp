#include "apps/worker/program.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "comch/session/server_session.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/telemetry/ask_unix.hpp"

namespace offload::worker {
namespace {

using comch::AttachedWorker;
using comch::WorkerId;

constexpr const char* kFirst = "0000:01:00.0";
constexpr const char* kSecond = "0000:02:00.0";
constexpr std::uint32_t kSlots = 4;
constexpr std::uint32_t kLongest = 1000;

/// A program with a worker for each of two GPUs, which a back end on the CPU does not look for, and
/// their server, on the test's thread.
class ProgramTest : public testing::Test, comch::ServerSession::Observer {
 protected:
  ProgramTest() {
    options_.comch = "unix:" + dir_.file("comch");
    options_.backend = "cpu";
    options_.gpu_pci_addresses = {kFirst, kSecond};
  }
  ~ProgramTest() override {
    if (!status_.valid()) return;
    for (const AttachedWorker& worker : attached_) session_->release(worker.id);
    ends();
  }

  void start(std::size_t most_workers) {
    session_.emplace(engine_, comch::Address::parse(options_.comch),
                     comch::ServerSession::Offer{{-1},
                                                 kSlots,
                                                 kLongest,
                                                 kernels::kLongestDigest,
                                                 {"echo"},
                                                 core::seconds(1),
                                                 most_workers},
                     static_cast<comch::ServerSession::Observer&>(*this));
    program_.emplace(options_, signals_);
    status_ = std::async(std::launch::async, [this] { return program_->run(); });
  }
  template <class Condition>
  bool turn_until(Condition condition) {
    return support::eventually(condition, [this] {
      engine_.run_once(core::Clock::now() + std::chrono::milliseconds(1));
      if (engine_.now() >= session_->next_tick()) session_->tick(engine_.run_time());
    });
  }
  bool ends() {
    return turn_until(
        [this] { return status_.wait_for(core::Duration{}) == std::future_status::ready; });
  }
  /// Waits for the next attachment; returns whether it is that of the first GPU.
  bool next_is_the_first() {
    const auto has = [this](const char* gpu) {
      return log_.has(std::string(gpu) + ": session 1: attached");
    };
    const bool had_first = has(kFirst);
    const bool had_second = has(kSecond);
    EXPECT_TRUE(turn_until([&] { return has(kFirst) != had_first || has(kSecond) != had_second; }))
        << log_.text();
    return has(kFirst) != had_first;
  }

  /// Starts it with a configuration, which is missing at first.
  void start_with_a_file(std::size_t most_workers) {
    options_.configuration.argument_count = static_cast<int>(arguments_.size());
    options_.configuration.arguments = arguments_.data();
    start(most_workers);
  }
  /// Returns whether it rereads the configuration, which is `text` now.
  bool rereads(const char* text) {
    std::ofstream(file_) << text;
    ::kill(::getpid(), SIGHUP);
    return turn_until([this] { return log_.has("were reread"); });
  }

  support::LogCapture log_;
  support::TempDir dir_;
  const std::string file_ = dir_.file("settings.toml");
  const std::array<const char*, 3> arguments_{"offload-worker", "--config", file_.c_str()};
  core::Signals signals_{core::Hangup::rereads};
  Options options_;
  progress::Engine engine_;
  std::optional<comch::ServerSession> session_;
  std::optional<Program> program_;
  std::vector<AttachedWorker> attached_;
  std::future<ExitStatus> status_;
  bool lets_go_ = true;  ///< workers that ask to be detached

 private:
  void on_worker_attached(AttachedWorker worker) override {
    attached_.push_back(std::move(worker));
  }
  void on_worker_leaving(WorkerId worker) override {
    if (lets_go_) session_->release(worker);
  }
  void on_worker_lost(WorkerId, comch::WorkerLoss) override {}
  void on_shutdown_requested() override {}
};

TEST_F(ProgramTest, TheWorstStatusOfItsWorkersCounts) {
  start(1);  // one after the other
  for (int i = 0; i < 2; ++i) {
    const bool is_first = next_is_the_first();
    const WorkerId worker = attached_.back().id;
    if (is_first) {
      session_->refuse(worker, protocol::Refusal::worker_failed, "as the test says");
    } else {
      session_->release(worker);
    }
  }
  ASSERT_TRUE(ends()) << log_.text();
  EXPECT_EQ(status_.get(), ExitStatus::failed);
}

TEST_F(ProgramTest, ItsWorkersShareTheMemory) {
  const std::uint64_t bytes =
      kernels::make_layout(kSlots, kLongest, kernels::kLongestDigest).bytes();
  options_.max_memory = 2 * bytes;
  start(2);
  ASSERT_TRUE(turn_until([&] { return attached_.size() == 2; })) << log_.text();
}

TEST_F(ProgramTest, EachOfItsWorkersHasItsPartOfTheMemoryAlone) {
  const std::uint64_t bytes =
      kernels::make_layout(kSlots, kLongest, kernels::kLongestDigest).bytes();
  options_.max_memory = 2 * bytes - 2;
  start(2);
  ASSERT_TRUE(ends()) << log_.text();
  EXPECT_EQ(status_.get(), ExitStatus::failed);
  EXPECT_TRUE(attached_.empty());
}

TEST_F(ProgramTest, ASignalDetachesItsWorkers) {
  start(2);
  ASSERT_TRUE(turn_until([&] { return attached_.size() == 2; })) << log_.text();
  ::kill(::getpid(), SIGTERM);
  ASSERT_TRUE(ends()) << log_.text();
  EXPECT_EQ(status_.get(), ExitStatus::done);
  EXPECT_TRUE(log_.has("SIGTERM: detaching"));
  EXPECT_TRUE(log_.has(std::string(kFirst) + ": session 1: the server has detached this worker"));
  EXPECT_TRUE(log_.has(std::string(kSecond) + ": session 1: the server has detached this worker"));
}

TEST_F(ProgramTest, AHangupSetsTheTimeOfAShutdown) {
  options_.shutdown_timeout = std::chrono::hours(1);
  lets_go_ = false;
  start_with_a_file(2);
  ASSERT_TRUE(turn_until([&] { return attached_.size() == 2; })) << log_.text();
  ASSERT_TRUE(rereads("shutdown-timeout = \"20ms\"\n")) << log_.text();
  ::kill(::getpid(), SIGTERM);
  ASSERT_TRUE(ends()) << log_.text();
  EXPECT_TRUE(log_.has("the server did not detach this worker in time")) << log_.text();
}

TEST_F(ProgramTest, AHangupSetsTheTimeToConnect) {
  options_.connect_timeout = 2 * support::kBound;
  start_with_a_file(0);
  ASSERT_TRUE(turn_until([&] { return log_.has("cannot accept this worker yet"); }));
  ASSERT_TRUE(rereads("connect-timeout = \"20ms\"\n")) << log_.text();
  ASSERT_TRUE(ends()) << log_.text();
  EXPECT_EQ(status_.get(), ExitStatus::failed);
}

TEST_F(ProgramTest, AHangupSetsTheLogLevelOnce) {
  start_with_a_file(2);
  ASSERT_TRUE(turn_until([&] { return attached_.size() == 2; })) << log_.text();
  ASSERT_TRUE(rereads("log-level = \"info\"\n")) << log_.text();
  EXPECT_FALSE(log_.has("were reread: nothing changed")) << log_.text();
  core::log_debug("below the level");
  EXPECT_FALSE(log_.has("below the level"));
  ::kill(::getpid(), SIGHUP);
  EXPECT_TRUE(turn_until([&] { return log_.has("were reread: nothing changed"); })) << log_.text();
}

TEST_F(ProgramTest, AHangupWithAMistakeChangesNothing) {
  start_with_a_file(2);
  ASSERT_TRUE(turn_until([&] { return attached_.size() == 2; })) << log_.text();
  std::ofstream(file_) << "connect-timeout = \"soon\"\n";
  ::kill(::getpid(), SIGHUP);
  EXPECT_TRUE(turn_until([&] { return log_.has("SIGHUP: nothing was changed: "); }));
  EXPECT_TRUE(log_.has("connect-timeout")) << log_.text();
}

TEST_F(ProgramTest, RepliesToCommands) {
  options_.admin = dir_.file("admin");
  start_with_a_file(2);
  const auto ask = [this](const char* method, const char* target) {
    return telemetry::ask_unix(options_.admin, method, target).substr(9, 3);
  };
  EXPECT_EQ(ask("GET", "/readyz"), "503");
  ASSERT_TRUE(turn_until([&] { return attached_.size() == 2; })) << log_.text();
  EXPECT_TRUE(turn_until([&] { return ask("GET", "/readyz") == "200"; }));
  EXPECT_EQ(ask("GET", "/healthz"), "200");
  EXPECT_EQ(ask("POST", "/log-level?value=loud"), "409");
  EXPECT_EQ(ask("POST", "/reload"), "409");  // its file is missing
  std::ofstream(file_) << "shutdown-timeout = \"1s\"\n";
  EXPECT_EQ(ask("POST", "/reload"), "200");
  EXPECT_EQ(ask("POST", "/drain"), "404");
  lets_go_ = false;
  EXPECT_EQ(ask("POST", "/detach"), "200");
  EXPECT_TRUE(turn_until([&] { return ask("GET", "/readyz") == "503"; }));
  for (const AttachedWorker& worker : attached_) session_->release(worker.id);
  ASSERT_TRUE(ends()) << log_.text();
  EXPECT_EQ(status_.get(), ExitStatus::done);
}

}  // namespace
}  // namespace offload::worker
