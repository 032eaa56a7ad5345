#include <memory>
#include <thread>
#include <vector>

#include "tests/kernels/bodies/host_runner.hpp"
#include "tests/kernels/bodies/host_warp.hpp"
#include "tests/kernels/comch/comch_body.hpp"
#include "tests/kernels/comch/unsolicited_body.hpp"

namespace offload::kernels::test {

INSTANTIATE_TYPED_TEST_SUITE_P(Host, Comch, testing::Types<HostRunner>);
INSTANTIATE_TYPED_TEST_SUITE_P(HostWarp, Comch, testing::Types<HostWarpRunner<32>>);
INSTANTIATE_TYPED_TEST_SUITE_P(Host, Unsolicited, testing::Types<HostRunner>);
INSTANTIATE_TYPED_TEST_SUITE_P(HostWarp, Unsolicited, testing::Types<HostWarpRunner<32>>);

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

TEST(ComchThreads, UnsolicitedMessagesComeInOrderWhileTheirPeerPostsReceives) {
  TestChannel<HostRunner> end(kDepth, 500);
  std::jthread sender([channel = end.channel()] {
    const auto memory = std::make_unique<Staging>();
    comch::SentMessage sent[kDepth] = {};
    comch::UnsolicitedProducer<> producer(channel, *memory, sent, kDepth);
    for (std::uint64_t i = 0; i < kMessages;) {
      std::uint32_t id = 0;
      while (producer.poll_completion(SingleLane{}, id)) ASSERT_LT(id, i);
      Octets message = random_octets(i % 49);
      message.insert(message.begin(), kSlack, 0);
      message.insert(message.end(), kSlack, 0);
      const auto result =
          producer.send(SingleLane{}, message.data() + kSlack, static_cast<std::uint32_t>(i % 49),
                        static_cast<std::uint32_t>(i));
      if (result == comch::SendResult::sent) {
        ++i;
      } else {
        ASSERT_TRUE(result == comch::SendResult::no_receive || result == comch::SendResult::full);
        std::this_thread::yield();
      }
    }
  });
  std::uint64_t posted = 0;
  for (std::uint64_t taken = 0; taken < kMessages;) {
    for (; posted - taken < kDepth; ++posted) end.post(posted, {});
    const auto message = end.response(taken);
    if (!message) {
      std::this_thread::yield();
      continue;
    }
    ASSERT_EQ(message, random_octets(taken % 49)) << taken;
    ++taken;
    // Relaxed: as SlotQueue::flush, pairs with Producer::poll_completion.
    __atomic_store_n(&end.channel().request_header().consumed, taken, __ATOMIC_RELAXED);
  }
}

}  // namespace

}  // namespace offload::kernels::test
