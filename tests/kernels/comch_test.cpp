#include <memory>
#include <thread>
#include <vector>

#include "tests/kernels/bodies/comch_body.hpp"
#include "tests/kernels/bodies/host_runner.hpp"
#include "tests/kernels/bodies/host_warp.hpp"

namespace offload::kernels::test {

INSTANTIATE_TYPED_TEST_SUITE_P(Host, Comch, testing::Types<HostRunner>);
INSTANTIATE_TYPED_TEST_SUITE_P(HostWarp, Comch, testing::Types<HostWarpRunner<32>>);

namespace {

constexpr std::uint64_t kMessages = 3000;
constexpr std::uint64_t kDepth = 8;

Octets nth(std::uint64_t i) {
  return random_octets(i % 5 == 4 ? 400 + i % 90 : i % 60);
}

/// Takes up to four messages, answers the newest first, and posts their memory again when they are
/// complete.
void loop_of(const ChannelView& channel) {
  const auto memory = std::make_unique<Staging[]>(kInHand);
  comch::SentMessage sent[kInHand] = {};
  comch::Consumer<kInHand> consumer(channel, 0);
  comch::Producer producer(channel, sent, kInHand);
  for (std::uint32_t i = 0; i < kInHand; ++i) {
    ASSERT_TRUE(consumer.post_receive(memory[i]));
  }
  for (std::uint64_t completed = 0; completed < kMessages;) {
    std::vector<comch::Message> taken;
    for (comch::Message message{}; consumer.poll(SingleLane{}, message);) taken.push_back(message);
    for (; !taken.empty(); taken.pop_back()) {
      const auto which = static_cast<std::uint32_t>(taken.back().memory - memory.get());
      ASSERT_EQ(producer.send(SingleLane{}, taken.back(), Reverse{}, which),
                comch::SendResult::sent);
    }
    for (std::uint32_t which = 0; producer.poll_completion(SingleLane{}, which); ++completed) {
      ASSERT_TRUE(consumer.post_receive(memory[which]));
    }
    std::this_thread::yield();
  }
}

TEST(ComchThreads, ALoopAnswersWhileItsServerPostsAndTakes) {
  TestChannel<HostRunner> end(kDepth, 500);
  std::jthread loop([channel = end.channel()] { loop_of(channel); });
  std::uint64_t posted = 0;
  for (std::uint64_t taken = 0; taken < kMessages;) {
    while (posted < kMessages && posted - taken < kDepth) {
      end.post(posted, nth(posted));
      ++posted;
    }
    const auto response = end.response(taken);
    if (!response) {
      std::this_thread::yield();
      continue;
    }
    ASSERT_EQ(response, expected_response("reverse", nth(taken))) << taken;
    ++taken;
    // Relaxed: as SlotQueue::flush, pairs with Producer::poll_completion.
    __atomic_store_n(&end.channel().request_header().consumed, taken, __ATOMIC_RELAXED);
  }
}

}  // namespace

}  // namespace offload::kernels::test
