#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>

#include "tests/comch/transport/rdma/slots_fixture.hpp"
#include "tests/rdma/fake_fabric.hpp"

/// Both ends of slots that are written, on a fabric that places writes in any order.
namespace offload::comch {
namespace {

class RdmaSlotOrderTest : public RdmaSlotRequestsTest {
 protected:
  RdmaSlotOrderTest() {
    auto endpoint = std::make_unique<RdmaSlotEndpoint>(
        std::make_shared<Adapter>("fake0"), rdma::PathOptions{}, memory_.endpoint().view);
    path_.emplace(std::make_shared<Adapter>("fake0"), rdma::PathOptions{}, worker_, engine_);
    endpoint->connect(path_->describe());
    path_->connect(endpoint->describe());
    path_->start();
    proxy_.emplace(server_.requester, memory_.endpoint(), std::move(endpoint));
    server_.requester.set_wakeup(channel::Wakeup::engine);
  }
  ~RdmaSlotOrderTest() override { path_.reset(); }

  /// Has the worker's back end poll for its next request once.
  void serve() {
    const auto received = kernels::receive<true>(kernels::SingleLane{}, worker_, served_, staging_);
    if (received.arrival == kernels::Arrival::none) return;
    const auto response = kernels::respond(kernels::SingleLane{}, worker_, served_,
                                           kernels::Reverse{}, staging_, received);
    ASSERT_EQ(response.outcome, kernels::Outcome::answered);
    ASSERT_EQ(kernels::rdma::write_response(kernels::SingleLane{}, path_->writer().slots, worker_,
                                            served_++, response.header),
              kernels::rdma::Result::done);
  }

  channel::ChannelMemory worker_memory_{0, kSlotDepth, kSlotLongest, -1};
  kernels::ChannelView worker_ = worker_memory_.endpoint().view;
  kernels::Staging staging_{};
  progress::Engine engine_;
  std::optional<RdmaSlotPath> path_;
  std::uint64_t served_ = 0;
};

TEST_F(RdmaSlotOrderTest, WritesInAnyOrderMakeNoWrongAnswer) {
  constexpr std::size_t kMessages = 4000;
  // Another one with each repetition of --gtest_repeat --gtest_shuffle.
  const auto seed = static_cast<std::uint32_t>(testing::UnitTest::GetInstance()->random_seed());
  rdma::test::FakeFabric fabric(*fake().queue_pairs[0], *fake().queue_pairs[1], seed);
  std::minstd_rand random(seed + 1);
  std::deque<Bytes> asked;
  std::size_t posted = 0;
  std::size_t taken = 0;
  for (std::size_t turns = 0; taken != kMessages; ++turns) {
    ASSERT_LT(turns, 1000 * kMessages);
    if (posted != kMessages && random() % 2 == 0) {
      const std::size_t longest = random() % 2 == 0 ? kernels::kMaxPacketPayload : kSlotLongest;
      const Bytes request =
          random_bytes(random() % (longest + 1), static_cast<std::uint32_t>(posted));
      if (server_.post(request)) {
        asked.push_back(request);
        ++posted;
      }
    }
    server_.engine.progress();
    for (auto steps = random() % 4; steps != 0; --steps) fabric.step();
    ASSERT_NO_FATAL_FAILURE(serve());
    engine_.progress();
    const auto response = server_.take();
    if (!response) continue;
    ASSERT_EQ(*response, support::reversed(asked.front())) << taken;
    asked.pop_front();
    ++taken;
  }
  EXPECT_EQ(proxy_->failure(), nullptr);
  EXPECT_EQ(path_->failure(), nullptr);
}

}  // namespace
}  // namespace offload::comch
