#include "apps/server/channel_selector.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "tests/server/fixtures/worker_fixture.hpp"
#include "tests/support/bytes.hpp"

namespace offload::server {
namespace {

using channel::Wakeup;
using support::Bytes;
using support::bytes_of;

Bytes text(std::string_view characters) {
  return support::copy_of(bytes_of(characters));
}

/// A requester between two workers, both played by the test.
class ChannelSelectorTest : public testing::Test {
 protected:
  ChannelSelectorTest() {
    requester_.open(engine_);
    selector_.add(second_channel_);
  }

  void select(comch::WorkerId worker) {
    selector_.select(worker);
    selector_.progress();
  }
  void post(const Bytes& request) {
    ASSERT_TRUE(requester_.post(request, this).ok());
    requester_.flush();
  }
  /// The responses that are there.
  std::vector<Bytes> take() {
    responses_.clear();
    engine_.progress();
    requester_.flush();
    return responses_;
  }
  /// Expects that the worker's line is cut, which is told once.
  void expect_loss(comch::WorkerId worker) {
    EXPECT_TRUE(selector_.has_loss());
    const auto loss = selector_.take_loss();
    ASSERT_TRUE(loss);
    EXPECT_EQ(loss->worker, worker);
    EXPECT_EQ(loss->reason, "the line is cut");
    EXPECT_FALSE(selector_.has_loss());
    EXPECT_FALSE(selector_.take_loss());
  }

 public:
  void on_response(channel::PostRecvTask& task) {
    responses_.push_back(support::copy_of(task.payload()));
    EXPECT_TRUE(requester_.release(task).ok());
  }

 protected:
  std::shared_ptr<comch::WorkerChannel> first_channel_ = test::make_channel(1, Wakeup::polling);
  std::shared_ptr<comch::WorkerChannel> second_channel_ = test::make_channel(2, Wakeup::polling);
  test::Worker first_{first_channel_->memory};
  test::Worker second_{second_channel_->memory};
  progress::Engine engine_;
  channel::Requester requester_{first_channel_->memory.endpoint(), *this};
  ChannelSelector selector_{requester_, first_channel_};
  std::vector<Bytes> responses_;
};

TEST_F(ChannelSelectorTest, WithNobodySelectedNothingIsReady) {
  EXPECT_EQ(selector_.serving(), 0U);
  EXPECT_FALSE(selector_.ready());
  EXPECT_FALSE(selector_.progress());
}

TEST_F(ChannelSelectorTest, TheFirstWorkerServes) {
  select(1);
  EXPECT_TRUE(selector_.ready());
  post(text("abc"));
  ASSERT_TRUE(first_.serve());
  EXPECT_EQ(take(), std::vector<Bytes>{text("cba")});
}

TEST_F(ChannelSelectorTest, ALiveWorkerAnswersBeforeTheMove) {
  select(1);
  post(text("abc"));
  select(2);
  EXPECT_EQ(selector_.serving(), 1U);
  EXPECT_FALSE(selector_.ready());
  EXPECT_FALSE(selector_.progress()) << "it has not moved yet";
  ASSERT_TRUE(first_.serve());
  EXPECT_EQ(take(), std::vector<Bytes>{text("cba")});
  EXPECT_TRUE(selector_.progress());
  EXPECT_EQ(selector_.serving(), 2U);
  post(text("def"));
  EXPECT_FALSE(first_.has_request());
  ASSERT_TRUE(second_.serve());
  EXPECT_EQ(take(), std::vector<Bytes>{text("fed")});
}

TEST_F(ChannelSelectorTest, WhatALostWorkerHadGoesToTheNextInOrder) {
  select(1);
  const Bytes long_request = support::random_bytes(1000, 1);
  post(text("answered"));
  ASSERT_TRUE(first_.serve());
  EXPECT_EQ(take().size(), 1U);
  post(text("short"));
  post(long_request);
  post({});
  selector_.remove(1);
  EXPECT_EQ(selector_.serving(), 0U);
  EXPECT_EQ(first_.serve_all(), 3);  // too late
  EXPECT_TRUE(take().empty());
  select(2);
  EXPECT_TRUE(take().empty());
  EXPECT_EQ(second_.serve_all(), 3);
  EXPECT_EQ(take(), (std::vector<Bytes>{text("trohs"), support::reversed(long_request), Bytes{}}));
}

TEST_F(ChannelSelectorTest, BackWithAWorkerItGoesOnWhereItWas) {
  for (int round = 0; round < 10; ++round) {
    for (comch::WorkerId worker : {1U, 2U}) {
      select(worker);
      ASSERT_TRUE(selector_.ready());
      for (int i = 0; i < 3; ++i) post(text("abc"));
      EXPECT_EQ((worker == 1 ? first_ : second_).serve_all(), 3);
      EXPECT_EQ(take().size(), 3U);
    }
  }
}

TEST_F(ChannelSelectorTest, WithNobodyTheAnswersOfTheFormerWorkerAreAwaited) {
  select(1);
  post(text("abc"));
  select(0);
  EXPECT_EQ(selector_.serving(), 1U);
  ASSERT_TRUE(first_.serve());
  EXPECT_EQ(take().size(), 1U);
  EXPECT_TRUE(selector_.progress());
  EXPECT_EQ(selector_.serving(), 0U);
  select(1);
  EXPECT_TRUE(selector_.ready());
}

TEST_F(ChannelSelectorTest, AWorkerThatIsNotThereIsNotServing) {
  select(1);
  select(9);
  EXPECT_EQ(selector_.serving(), 0U);
  EXPECT_FALSE(selector_.ready());
}

TEST_F(ChannelSelectorTest, ALineThatCannotBeUsedIsToldOnce) {
  select(1);
  post(text("abc"));
  const auto broken = test::make_channel(3, Wakeup::engine);
  broken->endpoint = std::make_unique<test::BrokenLine>();
  selector_.add(broken);
  selector_.remove(1);
  select(3);
  EXPECT_EQ(selector_.serving(), 0U);
  expect_loss(3);
  selector_.remove(3);
  select(2);
  ASSERT_TRUE(second_.serve());  // nothing is lost
  EXPECT_EQ(take(), std::vector<Bytes>{text("cba")});
}

/// A connection to a worker on another machine, which the test cuts.
class CutLine final : public comch::DataConnection {
 public:
  CutLine(comch::DataHandler& handler, const kernels::ChannelLayout& layout)
      : DataConnection(handler, layout, 0) {}
  void post_send(const protocol::DataHeader&, const std::byte*) noexcept override {}
  void cut() { fail("the line is cut"); }
};

class CutLineEndpoint final : public comch::DataEndpoint {
 public:
  explicit CutLineEndpoint(CutLine*& line) : line_(&line) {}
  std::unique_ptr<comch::DataConnection> start(progress::Engine&,
                                               const kernels::ChannelView& channel,
                                               comch::DataHandler& handler,
                                               std::uint32_t) override {
    auto line = std::make_unique<CutLine>(handler, channel.layout);
    *line_ = line.get();
    return line;
  }

 private:
  CutLine** line_;
};

TEST_F(ChannelSelectorTest, ALineThatBreaksInUseIsToldOnce) {
  CutLine* line = nullptr;
  const auto remote = test::make_channel(3, Wakeup::engine);
  remote->endpoint = std::make_unique<CutLineEndpoint>(line);
  selector_.add(remote);
  select(3);
  ASSERT_NE(line, nullptr);
  EXPECT_EQ(selector_.serving(), 3U);
  EXPECT_FALSE(selector_.has_loss());
  EXPECT_FALSE(selector_.take_loss());
  line->cut();
  expect_loss(3);
  selector_.remove(3);
  select(1);
  EXPECT_TRUE(selector_.ready());
}

}  // namespace
}  // namespace offload::server
