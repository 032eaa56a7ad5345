#include <gtest/gtest.h>

#include "kernels/serve.hpp"
#include "kernels/services.hpp"
#include "tests/channel/channel_fixture.hpp"
#include "tests/comch/session/session_fixture.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/thrown.hpp"

namespace offload::comch {
namespace {

using core::Clock;
using test::kKeepAlive;
using test::kSilence;

/// Server and worker against each other.
class SessionsOfBothSides : public test::SessionTest {
 protected:
  void attach_one() {
    listen();
    attach();
    ASSERT_TRUE(run_until([&] { return worker_events_.attached == 1; }));
    ASSERT_TRUE(run_until([&] { return server_events_.attached == 1; }));
  }
};

TEST_F(SessionsOfBothSides, AWorkerAttaches) {
  attach_one();
  EXPECT_EQ(worker_events_.last.channels.front()->wakeup, channel::Wakeup::doorbell);
  EXPECT_EQ(server_events_.service, "reverse");
  EXPECT_EQ(worker_events_.lost + server_events_.lost, 0);
  ASSERT_EQ(server_events_.channels.size(), kChannels);
  for (std::uint32_t i = 0; i < kChannels; ++i) {
    EXPECT_EQ(server_events_.channels[i].channel->index(), i);
  }
}

TEST_F(SessionsOfBothSides, EachServiceHasChannelsOfItsOwn) {
  listen(kKeepAlive, {"echo", "reverse"});
  attach();
  ASSERT_TRUE(run_until([&] { return server_events_.attached == 1; }));
  ASSERT_EQ(server_events_.channels.size(), 2U);
  EXPECT_EQ(server_events_.channels[0].service, "echo");
  EXPECT_EQ(server_events_.channels[1].service, "reverse");
}

TEST_F(SessionsOfBothSides, ChannelsThatWereHandedOverWork) {
  attach_one();
  for (std::uint32_t i = 0; i < kChannels; ++i) {
    const auto message = support::random_bytes(500, i);
    channel::test::Server server(worker_events_.last.channels[i]->memory.endpoint());
    server.requester.set_wakeup(channel::Wakeup::polling);
    ASSERT_TRUE(server.post(message));
    kernels::Staging staging{};
    kernels::serve(kernels::SingleLane{}, server_events_.channels[i].channel->view(), 0,
                   kernels::Reverse{}, staging);
    EXPECT_EQ(server.take(), support::reversed(message));
  }
}

TEST_F(SessionsOfBothSides, WithoutAServerThereIsNothingToAttachTo) {
  const auto error = support::thrown_by([this] { attach(); });
  EXPECT_EQ(error.code(), core::ErrorCode::not_found);
}

TEST_F(SessionsOfBothSides, ASecondWorkerAttachesBesideTheFirst) {
  attach_one();
  progress::Engine engine;
  test::ServerEvents events;
  WorkerSession second(engine, address_, test::hello(), kMostMemory, events);
  EXPECT_TRUE(run_until([&] {
    engine.run_once(Clock::now());
    return events.attached == 1;
  }));
  EXPECT_EQ(worker_events_.attached, 2);
  EXPECT_EQ(worker_events_.lost + server_events_.lost, 0);
}

TEST_F(SessionsOfBothSides, AFormerWorkersWritesLandNowhere) {
  attach_one();
  const auto former = std::move(server_events_.channels);
  const auto former_memory = worker_events_.last.channels.front();
  worker_session_.reset();
  ASSERT_TRUE(run_until([&] { return worker_events_.lost == 1; }));
  attach();
  ASSERT_TRUE(run_until([&] { return server_events_.attached == 2; }));

  channel::test::Server server(former_memory->memory.endpoint());
  server.requester.set_wakeup(channel::Wakeup::polling);
  const auto message = support::random_bytes(500, 1);
  ASSERT_TRUE(server.post(message));
  server.requester.set_wakeup(channel::Wakeup::none);  // the worker is gone
  server.requester.move_to(worker_events_.last.channels.front()->memory.endpoint(),
                           channel::Wakeup::polling);
  kernels::Staging staging{};
  kernels::serve(kernels::SingleLane{}, former.front().channel->view(), 0, kernels::Echo{},
                 staging);
  EXPECT_EQ(server.take(), std::nullopt);
  kernels::serve(kernels::SingleLane{}, server_events_.channels.front().channel->view(), 0,
                 kernels::Reverse{}, staging);
  EXPECT_EQ(server.take(), support::reversed(message));
}

TEST_F(SessionsOfBothSides, AWorkerAsksToBeLetGo) {
  attach_one();
  worker_session_->request_detach();
  ASSERT_TRUE(run_until([&] { return worker_events_.leaving.size() == 1; }));
  server_session_->release(worker_events_.leaving.front());
  ASSERT_TRUE(run_until([&] { return server_events_.start_shutdowns == 1; }));
  EXPECT_EQ(server_events_.shutdown_reason, protocol::ShutdownReason::released);
  worker_session_->complete();
  EXPECT_TRUE(run_until([&] { return worker_events_.lost == 1; }));
}

TEST_F(SessionsOfBothSides, AWorkerHearsHowManyChannelsItServes) {
  attach_one();
  server_session_->assign(worker_events_.last.id, 1);
  EXPECT_TRUE(run_until([&] { return server_events_.assignments == std::vector{1U}; }));
}

TEST_F(SessionsOfBothSides, AServerThatWantsMoreMemoryThanAllowedIsRefused) {
  listen();
  worker_session_.emplace(worker_engine_, address_, test::hello(), 4096, server_events_);
  EXPECT_TRUE(run_until([&] { return server_events_.lost == 1; }));
  EXPECT_NE(server_events_.reason.find("4096 remain"), std::string::npos) << server_events_.reason;
  EXPECT_TRUE(run_until([&] { return log_.has("is gone"); }));
}

TEST_F(SessionsOfBothSides, AWorkerThatGoesIsReplacedByTheNext) {
  attach_one();
  worker_session_.reset();
  ASSERT_TRUE(run_until([&] { return worker_events_.lost == 1; }));
  EXPECT_EQ(worker_events_.last_loss, WorkerLoss::ended);
  EXPECT_FALSE(server_session_->done());
  attach();
  EXPECT_TRUE(run_until([&] { return worker_events_.attached == 2; }));
  EXPECT_TRUE(run_until([&] { return server_events_.attached == 2; }));
}

TEST_F(SessionsOfBothSides, AWorkerThatEndsOnceItWasToLeaveHasNotCrashed) {
  for (const bool told : {false, true}) {
    worker_events_ = {};
    told ? attach() : attach_one();
    ASSERT_TRUE(run_until([&] { return worker_events_.attached == 1; }));
    if (told) {
      server_session_->release(worker_events_.last.id);
    } else {
      worker_session_->request_detach();
      ASSERT_TRUE(run_until([&] { return !worker_events_.leaving.empty(); }));
    }
    worker_session_.reset();
    ASSERT_TRUE(run_until([&] { return worker_events_.lost == 1; })) << told;
    EXPECT_EQ(worker_events_.last_loss, WorkerLoss::given_up) << told;
  }
}

TEST_F(SessionsOfBothSides, AWorkerThatTheServerDropsHasCrashedOnlyIfItHasEnded) {
  for (const bool ended : {false, true}) {
    worker_events_ = {};
    ended ? attach() : attach_one();
    ASSERT_TRUE(run_until([&] { return worker_events_.attached == 1; }));
    if (ended) worker_session_.reset();
    server_session_->drop(worker_events_.last.id, "its data connection has ended");
    EXPECT_EQ(worker_events_.lost, 1);
    EXPECT_EQ(worker_events_.last_loss, ended ? WorkerLoss::ended : WorkerLoss::given_up);
    worker_session_.reset();
  }
}

TEST_F(SessionsOfBothSides, AServerThatGoesIsNoticed) {
  attach_one();
  server_session_.reset();
  EXPECT_TRUE(run_until([&] { return server_events_.lost == 1; }));
  EXPECT_FALSE(server_events_.refused);
  worker_session_->tick(worker_engine_.run_time() + kSilence * 2);
  EXPECT_EQ(server_events_.lost, 1);
}

TEST_F(SessionsOfBothSides, ABackEndThatDoesNotStartEndsTheAttachment) {
  server_events_.fail_to_start = true;
  listen();
  attach();
  EXPECT_TRUE(run_until([&] { return server_events_.lost == 1; }));
  EXPECT_EQ(server_events_.reason, "the back end is out of order");
  worker_session_.reset();
  EXPECT_TRUE(run_until([&] { return log_.has("is gone"); }));
  EXPECT_EQ(worker_events_.attached, 0);
  EXPECT_EQ(worker_events_.lost, 0);  // it never was attached
}

TEST_F(SessionsOfBothSides, TheServerShutsDown) {
  attach_one();
  server_session_->start_shutdown(protocol::ShutdownReason::server_leaves);
  EXPECT_FALSE(server_session_->done());
  ASSERT_TRUE(run_until([&] { return server_events_.start_shutdowns == 1; }));
  EXPECT_FALSE(server_session_->done());
  worker_session_->complete();
  EXPECT_TRUE(run_until([&] { return server_session_->done(); }));
}

TEST_F(SessionsOfBothSides, AShutdownWithoutAWorkerIsDoneAtOnce) {
  listen();
  EXPECT_FALSE(server_session_->done());
  server_session_->start_shutdown(protocol::ShutdownReason::server_leaves);
  EXPECT_TRUE(server_session_->done());
}

TEST_F(SessionsOfBothSides, AWorkerThatIsLostInAShutdownEndsIt) {
  attach_one();
  server_session_->start_shutdown(protocol::ShutdownReason::server_leaves);
  worker_session_.reset();
  EXPECT_TRUE(run_until([&] { return server_session_->done(); }));
}

TEST_F(SessionsOfBothSides, NobodyAttachesDuringAShutdown) {
  listen();
  server_session_->start_shutdown(protocol::ShutdownReason::server_leaves);
  attach();
  EXPECT_TRUE(run_until([&] { return server_events_.lost == 1; }));
  EXPECT_EQ(server_events_.refused, protocol::Refusal::shutting_down);
}

TEST_F(SessionsOfBothSides, TheWorkerAsksForTheShutdown) {
  attach_one();
  worker_session_->request_shutdown();
  EXPECT_TRUE(run_until([&] { return worker_events_.shutdown_requests == 1; }));
  EXPECT_EQ(worker_events_.lost, 0);
}

TEST_F(SessionsOfBothSides, KeepAlivesKeepItAlive) {
  attach_one();
  const auto server_start = server_engine_.run_time();
  const auto worker_start = worker_engine_.run_time();
  for (int i = 1; i <= 3; ++i) {
    // Each side speaks; what it says arrives before the other one's patience ends.
    server_session_->tick(server_start + i * kKeepAlive);
    worker_session_->tick(worker_start + i * kKeepAlive);
    EXPECT_EQ(server_session_->next_tick(), server_engine_.now() + kKeepAlive);
    EXPECT_EQ(worker_session_->next_tick(), worker_engine_.now() + kKeepAlive);
    // The worker's tick has read what the server's sent.
    server_engine_.run_once(Clock::now() + support::kBound);
  }
  // Both were heard just now, in real time: a tick within the limit of that is no loss.
  server_session_->tick(server_engine_.run_time() + kSilence - kKeepAlive);
  worker_session_->tick(worker_engine_.run_time() + kSilence - kKeepAlive);
  EXPECT_EQ(worker_events_.lost, 0);
  EXPECT_EQ(server_events_.lost, 0);
}

TEST_F(SessionsOfBothSides, ASilentWorkerIsGone) {
  attach_one();
  server_session_->tick(server_engine_.run_time() + kSilence + kKeepAlive);
  EXPECT_EQ(worker_events_.lost, 1);
  EXPECT_EQ(worker_events_.last_loss, WorkerLoss::given_up);
  EXPECT_TRUE(log_.has("silent for too long")) << log_.text();
  EXPECT_TRUE(run_until([&] { return server_events_.lost == 1; }));
}

TEST_F(SessionsOfBothSides, ARefusalThatHasComeIsReadBeforeAnythingIsSent) {
  attach_one();
  server_session_->refuse(worker_events_.last.id, protocol::Refusal::worker_stuck, "nothing on 0");
  worker_session_->tick(
      worker_engine_.run_time());  // its connection is closed: a keep-alive would fail
  EXPECT_EQ(server_events_.lost, 1);
  EXPECT_EQ(server_events_.reason, "nothing on 0");
}

TEST_F(SessionsOfBothSides, ASilentServerIsGone) {
  attach_one();
  worker_session_->tick(worker_engine_.run_time() + kSilence + kKeepAlive);
  EXPECT_EQ(server_events_.lost, 1);
  EXPECT_EQ(server_events_.reason, "it has been silent for too long");
  // The worker tells the server, which may only have been paused.
  EXPECT_TRUE(run_until([&] { return worker_events_.lost == 1; }));
  EXPECT_EQ(worker_events_.last_loss, WorkerLoss::given_up);
  EXPECT_TRUE(log_.has("the server has been silent")) << log_.text();
}

}  // namespace
}  // namespace offload::comch
