#include "apps/rdma/device_lane.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "rdma/model/card.hpp"
#include "tests/rdma/queue_owner.hpp"

/// Lanes of both ends on a card in memory. tests/rdma_tool/matrix has them over a device.
namespace offload::rdma_tool {
namespace {

using Kind = DeviceWork::Kind;

constexpr std::uint32_t kSize = 64;
constexpr std::uint64_t kIterations = 60;

/// One end: memory and queues, as a DevicePath has them.
struct End {
  End(rdma::model::Card& card, std::size_t in_flight) : bytes(layout(in_flight).receives + kRoom) {
    number = card.add(owner.queues);
    owner.queues.send.number = number;
    queues.sends.queue = owner.queues.send;
    queues.shared = {owner.queues.send, &state, marks.data()};
    queues.receives.queue = owner.queues.receive;
    const auto key = card.register_memory(bytes, {true, true, true});
    memory = layout(in_flight);
    memory.here = bytes.data();
    memory.lkey = key;
  }

  static DeviceMemory layout(std::size_t in_flight) {
    DeviceMemory memory;
    memory.stride = kSize;
    memory.in_flight = in_flight;
    memory.slots = 2 * in_flight + 1;
    memory.words = (memory.in_flight + memory.slots) * kSize;
    memory.receives = memory.words + DeviceWords::kBytes;
    return memory;
  }

  static constexpr std::size_t kRoom = 64 * std::size_t{kSize};
  std::vector<std::byte> bytes;
  rdma::QueueOwner owner{rdma::QueueSizes{32, 16}, 0};
  std::vector<std::uint64_t> marks = std::vector<std::uint64_t>(32);
  kernels::rdma::SharedSendState state{};
  DeviceQueues queues{};
  DeviceMemory memory;
  std::uint32_t number;
};

class DeviceLaneTest : public testing::Test {
 protected:
  void make(std::size_t in_flight) {
    card_.emplace();
    requester_.emplace(*card_, in_flight);
    responder_.emplace(*card_, in_flight);
    card_->connect(requester_->number, responder_->number);
    requester_->memory.there = {reinterpret_cast<std::uint64_t>(responder_->memory.here),
                                responder_->memory.lkey};
    responder_->memory.there = {reinterpret_cast<std::uint64_t>(requester_->memory.here),
                                requester_->memory.lkey};
  }
  [[nodiscard]] DeviceWork work(Kind kind, const End& end) const {
    DeviceWork work;
    work.kind = kind;
    work.is_requester = work.sends = &end == &*requester_;
    work.size = kind == Kind::swap || kind == Kind::add ? 8 : kSize;
    work.seed = 3;
    work.end = kIterations;
    work.memory = end.memory;
    work.limit.nanoseconds = 10'000'000'000;
    return work;
  }
  void post_receives(End& end, bool has_data) {
    static_cast<void>(kernels::rdma::post_receives(
        kernels::SingleLane{}, end.queues.receives,
        static_cast<std::uint32_t>(2 * end.memory.in_flight),
        [&](std::uint32_t i) { return receive_buffer(end.memory, i, has_data); }));
  }
  /// Runs a lane of each of the works at once, the card beside them.
  std::vector<DeviceOutcome> run(const std::vector<std::pair<DeviceWork, End*>>& works) {
    std::vector<DeviceOutcome> outcomes(works.size());
    std::atomic<std::size_t> finished = 0;
    std::vector<std::thread> threads;
    std::uint32_t lane = 0;
    for (std::size_t i = 0; i < works.size(); ++i) {
      const std::uint32_t number = works[i].first.sends ? lane++ : 0;
      threads.emplace_back([&, i, number] {
        std::vector<std::uint64_t> times(works[i].first.memory.in_flight == 1 ? kIterations : 0);
        outcomes[i] = run_lane(works[i].first, number, works[i].second->queues, times);
        finished.fetch_add(1);
      });
    }
    while (finished.load() != works.size()) {
      if (!card_->progress()) std::this_thread::yield();
    }
    for (std::thread& thread : threads) thread.join();
    return outcomes;
  }

  std::optional<End> requester_;
  std::optional<End> responder_;
  std::optional<rdma::model::Card> card_;
};

struct Messages {
  Kind kind;
  bool has_immediate;
  std::size_t in_flight;
  std::uint32_t lanes = 1;
};

class DeviceMessagesTest : public DeviceLaneTest, public testing::WithParamInterface<Messages> {};

TEST_P(DeviceMessagesTest, AllOfThemComeAndAreRight) {
  const Messages& messages = GetParam();
  make(messages.in_flight);
  DeviceWork there = work(messages.kind, *requester_);
  DeviceWork back = work(messages.kind, *responder_);
  there.has_immediate = back.has_immediate = messages.has_immediate;
  there.lanes = back.lanes = messages.lanes;
  if (messages.kind == Kind::send || messages.has_immediate) {
    post_receives(*requester_, messages.kind == Kind::send);
    post_receives(*responder_, messages.kind == Kind::send);
  }
  std::vector<std::pair<DeviceWork, End*>> works{{back, &*responder_}};
  for (std::uint32_t i = 0; i < messages.lanes; ++i) works.emplace_back(there, &*requester_);
  const auto outcomes = run(works);
  for (const DeviceOutcome& outcome : outcomes) {
    EXPECT_TRUE(outcome.is_good()) << outcome.what << ", iteration " << outcome.iteration;
  }
  EXPECT_EQ(outcomes[0].checked, kIterations);
  // In a ping-pong both ends check.
  EXPECT_EQ(outcomes[1].checked, messages.in_flight == 1 ? kIterations : 0);
  EXPECT_EQ(card_->fault(), "");
}

INSTANTIATE_TEST_SUITE_P(
    , DeviceMessagesTest,
    testing::Values(Messages{Kind::send, false, 1}, Messages{Kind::send, true, 4},
                    Messages{Kind::write, false, 1}, Messages{Kind::write, true, 1},
                    Messages{Kind::write, true, 4}, Messages{Kind::put_signal, false, 1},
                    Messages{Kind::put_signal, false, 4}, Messages{Kind::put_signal, false, 6, 3}));

TEST_F(DeviceLaneTest, ReadsAndAtomicsOfSeveralLanesFindWhatTheyShould) {
  for (const Kind kind : {Kind::read, Kind::swap, Kind::add}) {
    make(4);
    for (std::uint64_t slot = 0; slot < responder_->memory.slots; ++slot) {
      const std::size_t size = kind == Kind::read ? kSize : 8;
      fill(std::span(responder_->memory.here + responder_->memory.incoming(slot), size),
           {3, 0, false, slot});
    }
    DeviceWork there = work(kind, *requester_);
    there.lanes = 2;
    const auto outcomes = run({{there, &*requester_}, {there, &*requester_}});
    for (const DeviceOutcome& outcome : outcomes) {
      EXPECT_TRUE(outcome.is_good()) << outcome.what << ", iteration " << outcome.iteration;
    }
    EXPECT_EQ(outcomes[0].checked + outcomes[1].checked, kIterations);
  }
}

TEST_F(DeviceLaneTest, AByteThatIsWrongIsFound) {
  make(1);
  DeviceWork there = work(Kind::put_signal, *requester_);
  there.seed = 4;
  there.limit.nanoseconds = 100'000'000;  // for an answer that does not come
  there.end = 1;
  const auto outcomes =
      run({{work(Kind::put_signal, *responder_), &*responder_}, {there, &*requester_}});
  EXPECT_TRUE(outcomes[0].mismatch.has_value());
  EXPECT_EQ(outcomes[0].iteration, 0U);
  EXPECT_FALSE(outcomes[0].is_good());
}

TEST_F(DeviceLaneTest, ALaneLeavesWhenThePeerDoesNotComeAndWhenItIsStopped) {
  make(1);
  DeviceWork alone = work(Kind::put_signal, *requester_);
  alone.limit.nanoseconds = 20'000'000;
  const auto outcomes = run({{alone, &*requester_}});
  EXPECT_EQ(outcomes[0].result, kernels::rdma::Result::timed_out);
  EXPECT_STREQ(outcomes[0].what, "a message of the peer");

  const std::uint32_t stop = 1;
  DeviceWork stopped = work(Kind::put_signal, *responder_);
  stopped.limit.stop = &stop;  // the limit itself is far away
  EXPECT_EQ(run({{stopped, &*responder_}})[0].result, kernels::rdma::Result::timed_out);
}

TEST_F(DeviceLaneTest, AStreamIsNoFurtherAheadThanItsCredits) {
  make(2);
  DeviceWork alone = work(Kind::put_signal, *requester_);
  alone.limit.nanoseconds = 20'000'000;
  const auto outcomes = run({{alone, &*requester_}});
  EXPECT_EQ(outcomes[0].result, kernels::rdma::Result::timed_out);
  EXPECT_STREQ(outcomes[0].what, "a credit of the peer");
  EXPECT_EQ(outcomes[0].iteration, 4U);
}

// The peer's key is one that it does not have: the card says so, and the lane has the syndrome.
TEST_F(DeviceLaneTest, AnOperationThatFailsHasItsSyndrome) {
  make(4);
  DeviceWork there = work(Kind::read, *requester_);
  there.memory.there.rkey ^= 0x5555;
  const auto outcomes = run({{there, &*requester_}});
  EXPECT_EQ(outcomes[0].result, kernels::rdma::Result::failed);
  EXPECT_EQ(outcomes[0].syndrome, kernels::rdma::Syndrome::remote_access);
}

}  // namespace
}  // namespace offload::rdma_tool
