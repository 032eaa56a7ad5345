#include "comch/transport/rdma/slots.hpp"

#include <csignal>
#include <cstdlib>
#include <deque>
#include <random>

#include "comch/proxy/worker_proxy.hpp"
#include "comch/transport/rdma/adapters.hpp"
#include "kernels/serve.hpp"
#include "kernels/services/reverse.hpp"
#include "tests/channel/channel_fixture.hpp"
#include "tests/softcard/fixture.hpp"
#include "tests/support/bytes.hpp"

/// Both ends of a channel whose sides write each other's slots. A card that places writes in any
/// order finds an end that takes a slot before all of it is there.
namespace offload::softcard::test {
namespace {

using support::Bytes;

class SlotsTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kDepth = 8;
  static constexpr std::uint32_t kLongest = 2000;

  SlotsTest() {
    auto endpoint =
        std::make_unique<comch::RdmaSlotEndpoint>(place_.adapter, place_.path, server_view_);
    endpoint->connect(path_.describe());
    path_.connect(endpoint->describe());
    path_.start();
    proxy_.emplace(server_.requester, server_memory_.endpoint(), std::move(endpoint));
    server_.requester.set_wakeup(channel::Wakeup::engine);
  }

  comch::Adapters::Place find_place() {
    const char* const address = std::getenv("RDMA_GUEST_ADDRESS");
    return adapters_.find(net::resolve(address, 4711).front());
  }
  /// Looks for the worker's next request once, and answers it.
  void serve() {
    const auto received = kernels::receive<true>(kernels::SingleLane{}, worker_, served_, staging_);
    if (received.arrival == kernels::Arrival::none) return;
    const auto response = kernels::respond(kernels::SingleLane{}, worker_, served_,
                                           kernels::Reverse{}, staging_, received);
    ASSERT_EQ(response.outcome, kernels::Outcome::answered);
    ASSERT_EQ(kernels::rdma::write_response(kernels::SingleLane{}, path_.writer().slots, worker_,
                                            served_++, response.header),
              kernels::rdma::WorkResult::done);
  }

  comch::Adapters adapters_{rdma::PathChoice{}};
  comch::Adapters::Place place_ = find_place();
  channel::ChannelMemory server_memory_{0, kDepth, kLongest, -1};
  kernels::ChannelView server_view_ = server_memory_.endpoint().view;
  channel::test::Server server_{server_memory_.endpoint()};
  channel::ChannelMemory worker_memory_{0, kDepth, kLongest, -1};
  kernels::ChannelView worker_ = worker_memory_.endpoint().view;
  kernels::Staging staging_{};
  progress::Engine engine_;
  comch::RdmaSlotPath path_{place_.adapter, place_.path, worker_, engine_};
  std::optional<comch::WorkerProxy> proxy_;
  std::uint64_t served_ = 0;
};

TEST_F(SlotsTest, EachAnswerIsRight) {
  constexpr std::size_t kMessages = 1000;
  std::minstd_rand random(7);
  std::deque<Bytes> asked;
  std::size_t posted = 0;
  auto latest = std::chrono::steady_clock::now();
  for (std::size_t taken = 0; taken != kMessages;) {
    ASSERT_LT(std::chrono::steady_clock::now() - latest, kPatience);
    if (posted != kMessages) {
      const std::size_t longest = random() % 2 == 0 ? kernels::kMaxPacketPayload : kLongest;
      const Bytes request =
          support::random_bytes(random() % (longest + 1), static_cast<std::uint32_t>(posted));
      if (server_.post(request)) {
        asked.push_back(request);
        ++posted;
      }
    }
    server_.engine.progress();
    ASSERT_NO_FATAL_FAILURE(serve());
    engine_.progress();
    ASSERT_EQ(proxy_->failure(), nullptr) << *proxy_->failure();
    ASSERT_EQ(path_.failure(), nullptr) << *path_.failure();
    const auto response = server_.take();
    if (!response) continue;
    ASSERT_EQ(*response, support::reversed(asked.front())) << taken;
    asked.pop_front();
    ++taken;
    latest = std::chrono::steady_clock::now();
  }
}

/// The same on a card that the test resets.
class ResetChannel : public SlotsTest {};

// Nothing that is posted completes any more, and no queue pair changes its state.
TEST_F(ResetChannel, FailsByTheEventAlone) {
  const char* const card = std::getenv("SOFTCARD_PID");
  ASSERT_NE(card, nullptr);
  ASSERT_EQ(::kill(std::atoi(card), SIGUSR1), 0);
  std::string failed;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (failed.empty()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    server_.engine.progress();
    ASSERT_EQ(proxy_->failure(), nullptr);
    failed = adapters_.log_events();
  }
  EXPECT_EQ(failed, "mlx5_0");
  server_.engine.progress();
  ASSERT_NE(proxy_->failure(), nullptr);
  EXPECT_EQ(*proxy_->failure(), "mlx5_0 has failed");
}

}  // namespace
}  // namespace offload::softcard::test
