#include "comch/transport/rdma/slots.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "tests/comch/transport/rdma/slots_fixture.hpp"
#include "tests/support/thrown.hpp"

namespace offload::comch {
namespace {

// ---- The server's end

TEST_F(RdmaSlotRequestsTest, EachIsWrittenAndItsResponseTaken) {
  start();
  std::uint64_t sequence = 0;
  for (const std::uint32_t length : {0U, 1U, 12U, 13U, 372U, 373U, kSlotLongest, 5U, 1000U}) {
    const Bytes request = random_bytes(length, length);
    post(request);
    ASSERT_LE(queue().sends.size(), kMostRequestWrites);
    EXPECT_EQ(queue().sends.back().send.send_flags, unsigned{IBV_SEND_SIGNALED});
    carry_out_all();
    answer(sequence++);
    server_.engine.progress();
    const auto response = server_.take();
    ASSERT_TRUE(response.has_value()) << length;
    EXPECT_EQ(*response, Bytes(request.rbegin(), request.rend()));
    EXPECT_EQ(queue().receives.size(), kSlotDepth);
  }
}

TEST_F(RdmaSlotRequestsTest, AllOfATurnGoWithOneCompletion) {
  start();
  EXPECT_EQ(queue().initial.cap.max_send_wr, kSlotDepth * kMostRequestWrites);
  EXPECT_EQ(queue().initial.cap.max_recv_wr, kSlotDepth);
  EXPECT_EQ(queue().initial.cap.max_send_sge, 1U);
  EXPECT_EQ(queue().initial.send_cq->cqe,
            static_cast<int>(kSlotDepth * kMostRequestWrites + kSlotDepth));
  for (std::uint32_t i = 0; i < kSlotDepth; ++i) {
    ASSERT_TRUE(
        server_.requester.post(random_bytes(1500, i), channel::test::Server::somebody()).ok());
  }
  server_.requester.flush();
  EXPECT_TRUE(server_.engine.progress());
  EXPECT_EQ(queue().sends.size(), kSlotDepth * kMostRequestWrites);
  carry_out_all();
  EXPECT_EQ(fake().completions.size(), 1U) << "the last tells all";
  for (std::uint32_t i = 0; i < kSlotDepth; ++i) answer(i);
  EXPECT_TRUE(server_.engine.progress());
  for (std::uint32_t i = 0; i < kSlotDepth; ++i) {
    const auto response = server_.take();
    ASSERT_TRUE(response.has_value());
    const Bytes request = random_bytes(1500, i);
    EXPECT_EQ(*response, Bytes(request.rbegin(), request.rend()));
  }
  EXPECT_EQ(proxy_->failure(), nullptr);
}

TEST_F(RdmaSlotRequestsTest, AnAnswerToNothingEndsTheConnection) {
  for (const std::uint32_t slot : {0U, 1U, kSlotDepth, 0xffff'ffffU}) {
    start();
    if (slot != 0) post(random_bytes(100, 1));  // in slot 0
    say_it_came(slot);
    server_.engine.progress();
    ASSERT_NE(proxy_->failure(), nullptr) << slot;
    EXPECT_EQ(*proxy_->failure(), "the worker answered a request that it did not have");
    proxy_.reset();
  }
}

TEST_F(RdmaSlotRequestsTest, ASecondAnswerEndsTheConnection) {
  start();
  post(random_bytes(100, 1));
  carry_out_all();
  answer(0);
  server_.engine.progress();
  ASSERT_TRUE(server_.take().has_value());
  ASSERT_EQ(proxy_->failure(), nullptr);
  say_it_came(0);
  server_.engine.progress();
  EXPECT_NE(proxy_->failure(), nullptr);
}

TEST_F(RdmaSlotRequestsTest, AReceiveThatIsNotTakenEndsTheConnection) {
  start();
  post(random_bytes(100, 1));
  carry_out_all();
  answer(0);
  fake().fail_call = "post_recv";
  server_.engine.progress();
  ASSERT_NE(proxy_->failure(), nullptr);
  EXPECT_NE(proxy_->failure()->find("cannot post a receive"), std::string::npos);
}

TEST_F(RdmaSlotRequestsTest, TheWorkerSeesNoneBeforeTheAtomic) {
  start();
  post(random_bytes(100, 1));
  ASSERT_EQ(queue().sends.size(), 3U);
  const auto complete = [&] {
    return kernels::is_complete(peer_.view().request(0), peer_.view().layout.flag_of(0));
  };
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(complete());
    carry_out();
  }
  EXPECT_TRUE(complete());
}

TEST_F(RdmaSlotRequestsTest, AFlagThatCannotBeSwappedInEndsTheConnection) {
  start();
  post(random_bytes(100, 1));
  peer_.view().request(0).packets->flag = 8;
  carry_out_all();
  server_.engine.progress();
  ASSERT_NE(proxy_->failure(), nullptr);
  EXPECT_EQ(*proxy_->failure(),
            "a slot of the worker does not hold the value that the last request wrote there");
}

// Its completion may come late, when the slot is the next request's.
TEST_F(RdmaSlotRequestsTest, TheSwapOfAnAnsweredRequestIsNotLookedAt) {
  start();
  post(random_bytes(100, 1));
  carry_out_all();
  const auto late = std::exchange(fake().completions, {});
  ASSERT_EQ(late.size(), 1U);
  answer(0);
  server_.engine.progress();
  ASSERT_TRUE(server_.take().has_value());
  *(memory_.endpoint().view.request(1).packets - 1) = {{1, 2, 3}, 4};  // the end of slot 0
  fake().completions = late;
  server_.engine.progress();
  EXPECT_TRUE(fake().completions.empty());
  EXPECT_EQ(proxy_->failure(), nullptr);
}

TEST_F(RdmaSlotRequestsTest, AFailedWriteEndsTheConnection) {
  start();
  post(random_bytes(100, 1));
  fake().finish_send(queue(), IBV_WC_RETRY_EXC_ERR);
  server_.engine.progress();
  ASSERT_NE(proxy_->failure(), nullptr);
  EXPECT_NE(proxy_->failure()->find("the connection broke"), std::string::npos);
}

TEST_F(RdmaSlotRequestsTest, ADeviceThatWasResetEndsTheConnection) {
  const auto adapter = std::make_shared<Adapter>("fake0");
  start(adapter);
  post(random_bytes(100, 1));
  ASSERT_EQ(proxy_->failure(), nullptr);
  while (server_.engine.progress()) continue;
  adapter->has_failed = true;
  EXPECT_TRUE(server_.engine.progress());
  ASSERT_NE(proxy_->failure(), nullptr);
  EXPECT_EQ(*proxy_->failure(), "fake0 has failed");
}

TEST_F(RdmaSlotRequestsTest, AWriteThatIsNotTakenEndsTheConnection) {
  start();
  fake().fail_call = "post_send";
  post(random_bytes(100, 1));
  ASSERT_NE(proxy_->failure(), nullptr);
  EXPECT_NE(proxy_->failure()->find("cannot write a request: "), std::string::npos);
}

TEST_F(RdmaSlotRequestsTest, AnyCallMayFailAndNothingLeaks) {
  start();
  proxy_.reset();
  const auto calls = fake().calls;
  ASSERT_GT(calls.size(), 10U);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    rdma::test::reset_fake();
    fake().fail_at = static_cast<int>(i);
    EXPECT_THROW(start(), core::Error) << calls[i];
    proxy_.reset();
    EXPECT_EQ(fake().open_objects(), 0) << calls[i];
  }
}

TEST_F(RdmaSlotRequestsTest, WhatIsNoEndIsRefused) {
  RdmaSlotEndpoint endpoint(std::make_shared<Adapter>("fake0"), rdma::PathOptions{},
                            memory_.endpoint().view);
  const Bytes own = endpoint.describe();
  for (std::size_t length = 0; length < own.size(); ++length) {
    const auto error = support::thrown_by([&] { endpoint.connect(std::span(own).first(length)); });
    EXPECT_EQ(error.code(), core::ErrorCode::bad_message);
  }
  const auto error = support::thrown_by(
      [&] { endpoint.connect(PeerSlots::describe(own, peer_.view().requests, 4096)); });
  EXPECT_NE(std::string(error.what()).find("the peer's slots have 4096 bytes"), std::string::npos);
}

// ---- The worker's end

class RdmaSlotResponsesTest : public RdmaSlotsTest {
 protected:
  ~RdmaSlotResponsesTest() override { path_.reset(); }

  void start() {
    path_.emplace(std::make_shared<Adapter>("fake0"), rdma::PathOptions{}, view_, engine_);
    path_->connect(PeerSlots::describe(path_->describe(), peer_.view().responses,
                                       peer_.view().layout.response_bytes));
    path_->start();
  }
  kernels::rdma::WorkResult respond(std::uint64_t sequence, const Bytes& payload) {
    return respond_with(path_->writer().slots, view_, sequence, payload);
  }

  channel::ChannelMemory memory_{0, kSlotDepth, kSlotLongest, -1};
  kernels::ChannelView view_ = memory_.endpoint().view;
  progress::Engine engine_;
  std::optional<RdmaSlotPath> path_;
};

TEST_F(RdmaSlotResponsesTest, EachIsInThePeersSlot) {
  start();
  EXPECT_EQ(queue().initial.cap.max_recv_wr, 1U);
  EXPECT_EQ(path_->writer().slots.limit.nanoseconds, 1'000'000'000U);
  for (std::uint64_t sequence = 0; sequence < 40; ++sequence) {
    const Bytes payload = random_bytes(static_cast<std::size_t>(sequence * 50), 3);
    ASSERT_EQ(respond(sequence, payload), kernels::rdma::WorkResult::done);
    for (int turns = 0; turns < 3; ++turns) {
      engine_.progress();
      carry_out_all();
    }
    const kernels::Slot slot = peer_.view().response(sequence);
    const std::uint32_t flag = peer_.view().layout.flag_of(sequence);
    EXPECT_FALSE(kernels::is_complete(slot, flag));
    ASSERT_EQ(arrived_, std::vector{htonl(static_cast<std::uint32_t>(sequence % kSlotDepth))});
    arrived_.clear();
    kernels::rdma::set_flag(slot, flag);
    EXPECT_TRUE(kernels::is_complete(slot, flag));
  }
  EXPECT_EQ(path_->failure(), nullptr);
}

TEST_F(RdmaSlotResponsesTest, AFailedWriteEndsThePathAndEveryWait) {
  start();
  ASSERT_EQ(respond(0, random_bytes(100, 1)), kernels::rdma::WorkResult::done);
  engine_.progress();
  fake().finish_send(queue(), IBV_WC_REM_ACCESS_ERR);
  while (!queue().sends.empty()) fake().finish_send(queue(), IBV_WC_WR_FLUSH_ERR);
  for (int turns = 0; turns < 3; ++turns) engine_.progress();
  ASSERT_NE(path_->failure(), nullptr);
  auto result = kernels::rdma::WorkResult::done;
  for (std::uint64_t sequence = 1; sequence < 20 && result == kernels::rdma::WorkResult::done;
       ++sequence) {
    result = respond(sequence, random_bytes(100, 1));
    engine_.progress();
  }
  EXPECT_EQ(result, kernels::rdma::WorkResult::failed);
}

TEST_F(RdmaSlotResponsesTest, AnyCallMayFailAndNothingLeaks) {
  start();
  path_.reset();
  const auto calls = fake().calls;
  ASSERT_GT(calls.size(), 10U);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    rdma::test::reset_fake();
    fake().fail_at = static_cast<int>(i);
    try {
      start();  // moving the queue pair to error, as it ends, may fail
    } catch (const core::Error&) {
    }
    path_.reset();
    EXPECT_EQ(fake().open_objects(), 0) << calls[i];
  }
}

}  // namespace
}  // namespace offload::comch
