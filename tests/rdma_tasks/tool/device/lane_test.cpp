#include "apps/rdma_tasks/device/lane.hpp"

#include <gtest/gtest.h>

#include <map>
#include <thread>
#include <tuple>

#include "apps/rdma_tasks/device/launcher.hpp"
#include "apps/rdma_tasks/pattern.hpp"
#include "core/error.hpp"
#include "kernels/group.hpp"
#include "rdma/queues/queue_memory.hpp"
#include "softcard/card/card.hpp"

/// Lanes of both ends on the model of a card, by each launcher that can run here.
/// tests/rdma_tasks/tool/matrix runs them over a device.
namespace offload::rdma_tool {
namespace {

using Kind = DeviceWork::Kind;
using MakeLauncher = std::unique_ptr<LaneLauncher> (*)();

constexpr std::uint32_t kSize = 64;
constexpr std::uint64_t kIterations = 60;
constexpr rdma::QueueSizes kSizes{32, 16};

/// One end: memory and queues, as in a DevicePath.
struct End {
  End(LaneLauncher& launcher, rdma::model::Card& card, std::size_t in_flight)
      : bytes(launcher.allocate(layout(in_flight).receives + kRoom)),
        rings(launcher.allocate(rdma::queue_memory_bytes(kSizes))),
        state(launcher.allocate_own(sizeof(kernels::rdma::SharedSendState))),
        marks(launcher.allocate_own(kSizes.send_blocks * sizeof(std::uint64_t))),
        queues(launcher, 1) {
    auto handles = rdma::lay_out_queues({rings.address, rings.length}, kSizes, 0);
    number = card.add(handles);
    handles.send.number = number;
    queues.get()->sends.queue = handles.send;
    queues.get()->shared = {handles.send, static_cast<kernels::rdma::SharedSendState*>(state.get()),
                            static_cast<std::uint64_t*>(marks.get())};
    queues.get()->receives.queue = handles.receive;
    const auto key = card.register_memory({bytes.address, bytes.length}, {true, true, true});
    memory = layout(in_flight);
    memory.here = bytes.address;
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
  memory::Range bytes;
  memory::Range rings;
  std::shared_ptr<void> state;
  std::shared_ptr<void> marks;
  LaneArray<DeviceQueues> queues;
  DeviceMemory memory;
  std::uint32_t number;
};

class LaneFixture : public testing::Test {
 protected:
  void launch_by(MakeLauncher make_one) {
    try {
      launcher_ = make_one();
    } catch (const core::Error& error) {
      if (error.code() != core::ErrorCode::not_found &&
          error.code() != core::ErrorCode::not_supported) {
        throw;
      }
      GTEST_SKIP() << error.what();
    }
  }
  void make(std::size_t in_flight) {
    card_.emplace();
    requester_.emplace(*launcher_, *card_, in_flight);
    responder_.emplace(*launcher_, *card_, in_flight);
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
  static void post_receives(End& end, bool has_data) {
    static_cast<void>(kernels::rdma::post_receives(
        kernels::SingleLane{}, end.queues.get()->receives,
        static_cast<std::uint32_t>(2 * end.memory.in_flight),
        [&](std::uint32_t i) { return end.memory.receive_buffer(i, has_data); }));
  }
  /// Runs a lane of each of the works at once, in parallel with the card.
  std::vector<DeviceOutcome> run(const std::vector<std::pair<DeviceWork, End*>>& works) {
    const LaneArray<LaneRun> runs(*launcher_, works.size());
    const LaneArray<std::uint64_t> times(*launcher_, works.size() * kIterations);
    const auto tickets = launcher_->allocate_own(works.size() * 8 * sizeof(std::uint64_t));
    std::map<const End*, std::uint32_t> lanes;
    for (std::size_t i = 0; i < works.size(); ++i) {
      LaneRun& one = runs.get()[i];
      one.work = works[i].first;
      one.lane = lanes[works[i].second]++;
      one.queues = works[i].second->queues.get();
      one.tickets = static_cast<std::uint64_t*>(tickets.get()) + i * 8;
      if (one.work.memory.in_flight == 1) one.times = times.get() + i * kIterations;
    }
    launcher_->start(runs.all());
    while (!launcher_->finished()) {
      if (!card_->progress()) std::this_thread::yield();
    }
    launcher_->join();
    std::vector<DeviceOutcome> outcomes;
    for (const LaneRun& one : runs.all()) outcomes.push_back(one.outcome);
    return outcomes;
  }
  static void expect_good(const std::vector<DeviceOutcome>& outcomes) {
    for (const DeviceOutcome& outcome : outcomes) {
      EXPECT_TRUE(outcome.is_good()) << words_of(outcome.step) << ", " << words_of(outcome.wrong)
                                     << ", iteration " << outcome.iteration;
    }
  }

  std::unique_ptr<LaneLauncher> launcher_;
  std::optional<End> requester_;
  std::optional<End> responder_;
  std::optional<rdma::model::Card> card_;
};

class DeviceLaneTest : public LaneFixture, public testing::WithParamInterface<MakeLauncher> {
 protected:
  void SetUp() override { launch_by(GetParam()); }
};

struct Messages {
  Kind kind;
  bool has_immediate;
  std::size_t in_flight;
  std::uint32_t lanes = 1;
};

class DeviceMessagesTest : public LaneFixture,
                           public testing::WithParamInterface<std::tuple<MakeLauncher, Messages>> {
 protected:
  void SetUp() override { launch_by(std::get<0>(GetParam())); }
};

TEST_P(DeviceMessagesTest, AllOfThemComeAndAreRight) {
  const Messages& messages = std::get<1>(GetParam());
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
  expect_good(outcomes);
  EXPECT_EQ(outcomes[0].checked, kIterations);
  // In a ping-pong both ends check.
  EXPECT_EQ(outcomes[1].checked, messages.in_flight == 1 ? kIterations : 0);
  EXPECT_EQ(card_->fault(), "");
}

TEST_P(DeviceLaneTest, ReadsAndAtomicsOfSeveralLanesFindWhatTheyShould) {
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
    expect_good(outcomes);
    EXPECT_EQ(outcomes[0].checked + outcomes[1].checked, kIterations);
  }
}

TEST_P(DeviceLaneTest, AByteThatIsWrongIsFound) {
  make(1);
  DeviceWork there = work(Kind::put_signal, *requester_);
  there.seed = 4;
  there.limit.nanoseconds = 100'000'000;  // for an answer that does not come
  there.end = 1;
  const auto outcomes =
      run({{work(Kind::put_signal, *responder_), &*responder_}, {there, &*requester_}});
  EXPECT_EQ(outcomes[0].wrong, Wrong::data);
  EXPECT_NE(outcomes[0].mismatch.expected, outcomes[0].mismatch.got);
  EXPECT_EQ(outcomes[0].iteration, 0U);
  EXPECT_FALSE(outcomes[0].is_good());
}

TEST_P(DeviceLaneTest, ALaneLeavesWhenThePeerDoesNotComeAndWhenItIsStopped) {
  make(1);
  DeviceWork alone = work(Kind::put_signal, *requester_);
  alone.limit.nanoseconds = 20'000'000;
  const auto outcomes = run({{alone, &*requester_}});
  EXPECT_EQ(outcomes[0].result, kernels::rdma::WorkResult::timed_out);
  EXPECT_EQ(outcomes[0].step, Step::message);

  const LaneArray<std::uint32_t> stop(*launcher_, 1);
  *stop.get() = 1;
  DeviceWork stopped = work(Kind::put_signal, *responder_);
  stopped.limit.stop = stop.get();  // the limit itself is far away
  EXPECT_EQ(run({{stopped, &*responder_}})[0].result, kernels::rdma::WorkResult::timed_out);
}

TEST_P(DeviceLaneTest, AStreamIsNoFurtherAheadThanItsCredits) {
  make(2);
  DeviceWork alone = work(Kind::put_signal, *requester_);
  alone.limit.nanoseconds = 1'000'000'000;  // the card's thread needs a part of it to complete four
  const auto outcomes = run({{alone, &*requester_}});
  EXPECT_EQ(outcomes[0].result, kernels::rdma::WorkResult::timed_out);
  EXPECT_EQ(outcomes[0].step, Step::credit);
  EXPECT_EQ(outcomes[0].iteration, 4U);
}

// The peer does not have the key: the card reports it, and the lane has the syndrome.
TEST_P(DeviceLaneTest, AnOperationThatFailsHasItsSyndrome) {
  make(4);
  DeviceWork there = work(Kind::read, *requester_);
  there.memory.there.rkey ^= 0x5555;
  const auto outcomes = run({{there, &*requester_}});
  EXPECT_EQ(outcomes[0].result, kernels::rdma::WorkResult::failed);
  EXPECT_EQ(outcomes[0].syndrome, kernels::rdma::Syndrome::remote_access);
}

// The queue is connected to itself, and so is the memory. The last writes of all slots are there.
TEST_P(DeviceLaneTest, CopiesComeToThisEndsOwnMemory) {
  for (const std::uint32_t lanes : {1U, 2U}) {
    make(4);
    card_->connect(requester_->number, requester_->number);
    requester_->memory.there = {reinterpret_cast<std::uint64_t>(requester_->memory.here),
                                requester_->memory.lkey};
    DeviceWork copies = work(Kind::copy, *requester_);
    copies.lanes = lanes;
    const auto outcomes =
        run(std::vector<std::pair<DeviceWork, End*>>(lanes, {copies, &*requester_}));
    expect_good(outcomes);
    std::uint64_t checked = 0;
    for (const DeviceOutcome& outcome : outcomes) checked += outcome.checked;
    EXPECT_EQ(checked, kIterations);
    const std::byte* const last =
        requester_->memory.here + requester_->memory.incoming((kIterations - 1) % 4);
    EXPECT_FALSE(find_mismatch({last, kSize}, {3, 0, true, kIterations - 1}));
  }
}

// Each queue pair has a separate lane, in one launch.
TEST_P(DeviceLaneTest, ManyQueuesAreServedByALaneEach) {
  make(1);
  std::vector<std::unique_ptr<End>> ends;
  std::vector<std::pair<DeviceWork, End*>> works;
  for (std::uint32_t i = 0; i < 8; ++i) {
    End& end = *ends.emplace_back(std::make_unique<End>(*launcher_, *card_, 4));
    card_->connect(end.number, end.number);
    end.memory.there = {reinterpret_cast<std::uint64_t>(end.memory.here), end.memory.lkey};
    DeviceWork copies = work(Kind::copy, *requester_);
    copies.connection = i;
    copies.memory = end.memory;
    works.emplace_back(copies, &end);
  }
  const auto outcomes = run(works);
  expect_good(outcomes);
  for (const DeviceOutcome& outcome : outcomes) EXPECT_EQ(outcome.checked, kIterations);
  EXPECT_EQ(card_->fault(), "");
}

std::unique_ptr<LaneLauncher> make_first_gpu_launcher() {
  return make_gpu_launcher("");
}

const auto kMessages =
    testing::Values(Messages{Kind::send, false, 1}, Messages{Kind::send, true, 4},
                    Messages{Kind::write, false, 1}, Messages{Kind::write, true, 1},
                    Messages{Kind::write, true, 4}, Messages{Kind::put_signal, false, 1},
                    Messages{Kind::put_signal, false, 4}, Messages{Kind::put_signal, false, 6, 3});
INSTANTIATE_TEST_SUITE_P(cpu, DeviceMessagesTest,
                         testing::Combine(testing::Values(make_cpu_launcher), kMessages));
INSTANTIATE_TEST_SUITE_P(gpu, DeviceMessagesTest,
                         testing::Combine(testing::Values(make_first_gpu_launcher), kMessages));
INSTANTIATE_TEST_SUITE_P(cpu, DeviceLaneTest, testing::Values(make_cpu_launcher));
INSTANTIATE_TEST_SUITE_P(gpu, DeviceLaneTest, testing::Values(make_first_gpu_launcher));

}  // namespace
}  // namespace offload::rdma_tool
