#include "apps/worker/worker.hpp"

#include <gtest/gtest.h>

#include <array>
#include <future>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/worker/service_source.hpp"
#include "channel/packets.hpp"
#include "comch/session/server_session.hpp"
#include "tests/channel/channel_fixture.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::worker {
namespace {

/// A worker on a separate thread, whose back end is on the CPU; the test is its server.
class WorkerTest : public testing::Test, comch::ServerSession::Observer {
 protected:
  WorkerTest() {
    options_.comch = "unix:" + dir_.file("comch");
    options_.backend = "cpu";
  }
  ~WorkerTest() override {
    if (!end_.valid()) return;
    worker_->leave();
    EXPECT_TRUE(ends());
  }

  /// Lets workers in.
  void serve(std::size_t most_workers = 1) {
    session_.emplace(
        engine_, comch::Address::parse(options_.comch),
        comch::ServerSession::Offer{
            {-1, -1}, 4, 1000, kernels::kLongestDigest, {"echo"}, core::seconds(1), most_workers},
        static_cast<comch::ServerSession::Observer&>(*this));
  }
  void start() {
    worker_.emplace(options_, make_services(options_, signals_), "", "", most_memory_);
    end_ = std::async(std::launch::async, [this] { return worker_->run(); });
  }
  template <class Condition>
  bool turn_until(Condition condition) {
    return support::eventually(condition, [this] {
      engine_.run_once(core::Clock::now() + std::chrono::milliseconds(1));
      if (session_ && engine_.now() >= session_->next_tick()) session_->tick(engine_.run_time());
    });
  }
  [[nodiscard]] const WorkerCounts& counts() const { return *worker_->counts(); }
  /// Returns whether it is attached, for the `session`th time.
  bool attaches(std::uint64_t session = 1) {
    return turn_until([&] {
      // The channels are counted last.
      return counts().attaches.value() == session && counts().channels.value() != 0;
    });
  }
  /// Returns whether run() returns or throws.
  bool ends() {
    return turn_until(
        [this] { return end_.wait_for(core::Duration{}) == std::future_status::ready; });
  }
  /// Waits for the end of run(); returns the text of its error.
  std::string failure() {
    EXPECT_TRUE(ends()) << log_.text();
    return support::thrown_by([this] { end_.get(); }).what();
  }

  support::LogCapture log_;
  support::TempDir dir_;
  core::Signals signals_{core::Hangup::rereads};
  Options options_;
  progress::Engine engine_;
  std::optional<comch::ServerSession> session_;
  std::optional<Worker> worker_;
  std::vector<comch::AttachedWorker> attached_;
  std::future<WorkerEnd> end_;
  std::uint64_t most_memory_ = std::uint64_t{1} << 30;
  bool lets_go_ = true;  ///< a worker that asks to be detached
  int asked_to_leave_ = 0;
  int asked_to_end_ = 0;
  int lost_ = 0;

 private:
  void on_worker_attached(comch::AttachedWorker worker) override {
    attached_.push_back(std::move(worker));
  }
  void on_worker_leaving(comch::WorkerId worker) override {
    ++asked_to_leave_;
    if (lets_go_) session_->release(worker);
  }
  void on_worker_lost(comch::WorkerId, comch::WorkerLoss) override { ++lost_; }
  void on_shutdown_requested() override {
    ++asked_to_end_;
    session_->start_shutdown(protocol::ShutdownReason::together);
  }
};

TEST_F(WorkerTest, WithoutAServerNothingIsServedNorStuck) {
  options_.stuck_after = std::chrono::milliseconds(1);
  serve();
  start();
  ASSERT_TRUE(attaches()) << log_.text();
  EXPECT_EQ(counts().channels.value(), 2U);
  // The second of two requests: the worker waits for the first.
  const auto channel = attached_.front().channels.front()->memory.endpoint().view;
  const std::array<std::byte, 20> content{};
  channel::write_packets(channel.request(1).packets, channel.layout.flag_of(1), content.data(),
                         content.size());
  ASSERT_TRUE(turn_until([this] { return counts().stuck.value() == 1; })) << log_.text();
  session_.reset();
  EXPECT_TRUE(turn_until([this] { return counts().stuck.value() == 0; }));
  EXPECT_EQ(counts().channels.value(), 0U);
  EXPECT_EQ(counts().attached.value(), 0U);
  EXPECT_EQ(counts().losses.value(), 1U);
}

TEST_F(WorkerTest, AttachesToTheNextServer) {
  start();
  for (std::uint64_t session = 1; session <= 3; ++session) {
    serve();
    ASSERT_TRUE(attaches(session)) << log_.text();
    EXPECT_TRUE(worker_->serves());
    EXPECT_TRUE(log_.has("session " + std::to_string(session) + ": serving 2 channels"));
    EXPECT_EQ(counts().attached.value(), 1U);
    EXPECT_EQ(counts().description().data_path, "shared memory with a local server");
    session_.reset();
    ASSERT_TRUE(turn_until([&] { return counts().losses.value() == session; })) << log_.text();
    ASSERT_TRUE(turn_until([&] { return !worker_->serves(); })) << log_.text();
    EXPECT_TRUE(turn_until([&] { return counts().description().data_path.empty(); }));
  }
  EXPECT_EQ(counts().times().size(), 2U);
  const nlohmann::json events = counts().events.to_json();
  ASSERT_EQ(events.size(), 6U);
  EXPECT_EQ(events[0]["text"], "session 1: attached to a server");
  EXPECT_TRUE(std::string(events[1]["text"]).starts_with("session 1: the server is gone: "));
  EXPECT_EQ(events[4]["text"], "session 3: attached to a server");
}

TEST_F(WorkerTest, AnswersWhatItIsAsked) {
  serve();
  start();
  ASSERT_TRUE(attaches()) << log_.text();
  const auto content = support::random_bytes(20, 1);
  for (const auto& channel : attached_.front().channels) {
    channel::test::Server server(channel->memory.endpoint());
    ASSERT_TRUE(server.post(content));
    std::optional<support::Bytes> answer;
    EXPECT_TRUE(turn_until([&] { return (answer = server.take()).has_value(); }));
    EXPECT_EQ(answer, content);
  }
}

TEST_F(WorkerTest, GreetsWithItsOptions) {
  options_.stands_by = options_.replaces = true;
  start();
  for (std::size_t session = 1; session <= 2; ++session) {
    serve();
    ASSERT_TRUE(turn_until([&] { return attached_.size() == session; })) << log_.text();
    EXPECT_TRUE(attached_.back().stands_by);
    EXPECT_EQ(attached_.back().replaces, session == 1);  // it has taken the place then
    EXPECT_EQ(attached_.back().backend, "cpu");
    ASSERT_TRUE(attaches(session));
    session_.reset();
  }
}

TEST_F(WorkerTest, GreetsAsOneThatServesAtOnce) {
  serve();
  start();
  ASSERT_TRUE(turn_until([&] { return !attached_.empty(); })) << log_.text();
  EXPECT_FALSE(attached_.front().stands_by);
  EXPECT_FALSE(attached_.front().replaces);
  EXPECT_EQ(attached_.front().channels.front()->wakeup, channel::Wakeup::doorbell);
}

TEST_F(WorkerTest, SaysWhichChannelsItHas) {
  serve();
  start();
  ASSERT_TRUE(attaches());
  session_->assign(attached_.front().id, 0);
  EXPECT_TRUE(turn_until([&] { return log_.has("session 1: standing by: no channel"); }));
  session_->assign(attached_.front().id, 1);
  EXPECT_TRUE(turn_until([&] { return log_.has("session 1: 1 of 2 channels are assigned"); }));
}

TEST_F(WorkerTest, LeavesOnceTheServerLetsItGo) {
  lets_go_ = false;
  serve();
  start();
  ASSERT_TRUE(attaches());
  worker_->leave();
  ASSERT_TRUE(turn_until([&] { return asked_to_leave_ == 1; }));
  EXPECT_TRUE(worker_->serves());
  session_->release(attached_.front().id);
  ASSERT_TRUE(ends());
  EXPECT_EQ(end_.get(), WorkerEnd::done);
  EXPECT_TRUE(turn_until([&] { return lost_ == 1; }));
  EXPECT_TRUE(log_.has("it has shut down")) << log_.text();
  EXPECT_TRUE(log_.has("the server has detached this worker"));
  EXPECT_EQ(counts().losses.value(), 0U);
  EXPECT_EQ(counts().attached.value(), 0U);
  EXPECT_EQ(asked_to_end_, 0);
}

TEST_F(WorkerTest, LeavesAfterItsTimeLimitWithoutTheServersWord) {
  lets_go_ = false;
  options_.shutdown_timeout = 2 * support::kBound;
  serve();
  start();
  ASSERT_TRUE(attaches());
  // The limit that counts is the last that was set.
  worker_->set({comch::make_address(options_.comch, {}, {}), options_.connect_timeout,
                std::chrono::milliseconds(20)});
  worker_->leave();
  ASSERT_TRUE(ends());
  EXPECT_EQ(end_.get(), WorkerEnd::done);
  EXPECT_TRUE(turn_until([&] { return asked_to_leave_ == 1; }));
  EXPECT_TRUE(log_.has("the server did not detach this worker in time"));
}

TEST_F(WorkerTest, EndsTogetherWithItsServer) {
  options_.shutdown_together = true;
  serve();
  start();
  ASSERT_TRUE(attaches());
  worker_->leave();
  ASSERT_TRUE(ends());
  EXPECT_EQ(asked_to_end_, 1);
  EXPECT_EQ(asked_to_leave_, 0);
  EXPECT_TRUE(log_.has("the server has ended: shutting down"));
}

TEST_F(WorkerTest, GoesOnWhenAServerEndsAlone) {
  serve();
  start();
  ASSERT_TRUE(attaches());
  session_->start_shutdown(protocol::ShutdownReason::server_leaves);
  ASSERT_TRUE(turn_until([&] { return lost_ == 1; })) << log_.text();
  EXPECT_TRUE(log_.has("the server is shutting down: waiting for the next one"));
  EXPECT_EQ(counts().losses.value(), 0U);
  session_.reset();
  serve();
  EXPECT_TRUE(attaches(2)) << log_.text();
}

TEST_F(WorkerTest, EndsTogetherWithAServerThatEndsAlone) {
  options_.shutdown_together = true;
  serve();
  start();
  ASSERT_TRUE(attaches());
  session_->start_shutdown(protocol::ShutdownReason::server_leaves);
  ASSERT_TRUE(ends());
  EXPECT_TRUE(log_.has("the server has ended: shutting down"));
}

TEST_F(WorkerTest, ThatIsTakenForStuckAttachesAgain) {
  serve();
  start();
  ASSERT_TRUE(attaches());
  session_->refuse(attached_.front().id, protocol::Refusal::worker_stuck, "it is stuck");
  EXPECT_TRUE(attaches(2)) << log_.text();
  EXPECT_TRUE(log_.has("error: session 1: the server has dropped this worker: it is stuck"));
}

TEST_F(WorkerTest, ThatIsRefusedFails) {
  // Each reason counts; that of a port for clients only before there are channels.
  for (const protocol::Refusal reason :
       {protocol::Refusal::bad_hello, protocol::Refusal::misplaced_message}) {
    serve();
    start();
    ASSERT_TRUE(attaches());
    session_->refuse(attached_.back().id, reason, "a bad one");
    EXPECT_EQ(failure(), "this worker cannot attach: a bad one");
    EXPECT_FALSE(worker_->serves());
    session_.reset();
  }
}

TEST_F(WorkerTest, ReportsWhatItsBackEndRefuses) {
  serve();
  start();
  ASSERT_TRUE(attaches()) << log_.text();
  const auto channel = attached_.front().channels.back()->memory.endpoint().view;
  kernels::store_packet(channel.request(0).packets, {{1001, 0, 0}, channel.layout.flag_of(0)});
  ASSERT_TRUE(turn_until([this] { return counts().faults.value() == 1; })) << log_.text();
  EXPECT_TRUE(log_.has("error: session 1: channel 1 slot 0: refused 1001 bytes: ")) << log_.text();
}

TEST_F(WorkerTest, WaitsForAServerThatIsBusy) {
  serve(0);
  start();
  ASSERT_TRUE(turn_until([&] {
    return log_.has("the server cannot accept this worker yet: 0 workers are attached");
  })) << log_.text();
  EXPECT_EQ(counts().losses.value(), 0U);
  session_.reset();
  serve();
  EXPECT_TRUE(attaches()) << log_.text();
}

TEST_F(WorkerTest, WaitsForTheNextServerWhileOneShutsDown) {
  serve();
  session_->start_shutdown(protocol::ShutdownReason::server_leaves);
  start();
  ASSERT_TRUE(turn_until([&] {
    return log_.has("the server cannot accept this worker yet: the server is shutting down");
  })) << log_.text();
  session_.reset();
  serve();
  EXPECT_TRUE(attaches()) << log_.text();
}

TEST_F(WorkerTest, SaysWhyNoServerLetItIn) {
  options_.connect_timeout = std::chrono::milliseconds(50);
  start();
  const std::string text = failure();
  EXPECT_NE(text.find("no server at " + options_.comch + " accepted this worker within 0.05 s"),
            std::string::npos)
      << text;
  EXPECT_TRUE(text.ends_with("; start it, or correct --comch")) << text;
}

TEST_F(WorkerTest, AServerThatDoesNotLetItInIsThere) {
  start();
  ASSERT_TRUE(turn_until([this] { return log_.has("cannot connect"); })) << log_.text();
  serve(0);
  ASSERT_TRUE(turn_until([this] { return log_.has("cannot accept this worker yet"); }));
  // The attempt after this one ends before the server can reply.
  worker_->set(
      {comch::make_address(options_.comch, {}, {}), core::Duration{}, options_.shutdown_timeout});
  const std::string text = failure();
  EXPECT_NE(text.find(" accepted this worker within 0 s: the server sent no channels: is this the "
                      "address of its --comch?; before: the server cannot accept this worker yet"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("start it"), std::string::npos) << text;
}

TEST_F(WorkerTest, AnAddressThatDoesNotAnswerIsNamed) {
  const core::Fd listener = net::listen_tcp(net::resolve("127.0.0.1", 0).front(), 0);
  const net::SocketAddress address = net::local_address(listener.get());
  // The queue is full, so another connection gets no answer.
  const std::array waiting{net::start_connect(address), net::start_connect(address)};
  options_.comch = "tcp:" + address.to_string();
  options_.comch_security.insecure = true;
  options_.connect_timeout = std::chrono::milliseconds(50);
  start();
  EXPECT_TRUE(failure().ends_with(": Connection timed out; start it, or correct --comch"));
}

TEST_F(WorkerTest, AReasonIsLoggedOnceWhileItIsTheSame) {
  start();
  const std::string reason = "info: cannot connect";
  ASSERT_TRUE(turn_until([&] { return log_.has("debug: cannot connect"); })) << log_.text();
  const std::string text = log_.text();
  EXPECT_EQ(text.find(reason), text.rfind(reason)) << text;
  EXPECT_NE(text.find(reason), std::string::npos) << text;
}

TEST_F(WorkerTest, EndsWhileItWaitsForAServer) {
  start();
  ASSERT_TRUE(turn_until([&] { return log_.has("cannot connect"); }));
  worker_->leave();
  ASSERT_TRUE(ends());
  EXPECT_EQ(end_.get(), WorkerEnd::done);
}

TEST_F(WorkerTest, TakesNoMoreMemoryThanItMay) {
  most_memory_ = 1000;
  serve();
  start();
  const std::string text = failure();
  EXPECT_NE(text.find("this worker cannot attach: channel 0 needs"), std::string::npos) << text;
  EXPECT_EQ(text.find("a port for clients"), std::string::npos) << text;
  EXPECT_TRUE(attached_.empty());
}

}  // namespace
}  // namespace offload::worker
