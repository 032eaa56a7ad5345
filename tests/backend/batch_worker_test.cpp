#include "backend/batch_worker.hpp"

#include <gtest/gtest.h>

#include <deque>

#include "kernels/services.hpp"
#include "tests/backend/host_processor.hpp"
#include "tests/backend/served_channel.hpp"
#include "tests/support/readable.hpp"

/// The thread that serves a channel in batches, with a processor that does what the test says.
namespace offload::backend {
namespace {

using namespace std::chrono_literals;
using support::Bytes;
using support::eventually;
using test::ServedChannel;

class Worker : public testing::Test {
 protected:
  static constexpr std::uint32_t kLongest = 1000;

  void start(std::uint32_t batches = 2) {
    auto processor =
        std::make_unique<test::HostProcessor>(orders_, "reverse", kLongest, batches, 16'384);
    worker_ = std::make_unique<BatchWorker>(channel_.to_backend(), 20us, std::move(processor));
    worker_->start();
  }
  void TearDown() override {
    if (!worker_) return;
    orders_.hold = false;
    worker_->stop();
    EXPECT_TRUE(worker_->drain(core::Clock::now() + support::kBound));
  }
  /// Returns whether it makes no turn for a while. Turns that were begun before may still count,
  /// and the doorbell's event.
  [[nodiscard]] bool is_still() const {
    const auto seen = worker_->heartbeat();
    std::this_thread::sleep_for(20ms);
    return worker_->heartbeat() == seen;
  }
  [[nodiscard]] bool becomes_still() const {
    return eventually([&] { return is_still(); }, [] {});
  }
  /// Returns whether it has armed the doorbell: it sleeps, or is about to.
  [[nodiscard]] bool sleeps() {
    return __atomic_load_n(&channel_.memory().response_header().requests.armed, __ATOMIC_RELAXED) !=
           0;
  }
  Bytes post(std::uint32_t length) {
    auto message = support::random_bytes(length, length);
    EXPECT_TRUE(channel_.post(message));
    return message;
  }

  ServedChannel channel_{5, 64, kLongest};
  test::Orders orders_;
  std::unique_ptr<BatchWorker> worker_;
};

class AnyNumberOfBatches : public Worker, public testing::WithParamInterface<std::uint32_t> {};

TEST_P(AnyNumberOfBatches, AnswersInOrder) {
  start(GetParam());
  std::deque<Bytes> due;
  std::uint32_t posted = 0;
  for (std::uint32_t answered = 0; answered < 3000; ++answered) {
    for (; posted < 3000; ++posted) {
      const auto message = support::random_bytes(posted * 7 % (kLongest + 1), posted);
      if (!channel_.post(message)) break;
      due.push_back(support::reversed(message));
    }
    ASSERT_EQ(channel_.await(), due.front()) << answered;
    due.pop_front();
  }
  EXPECT_GT(orders_.most_messages, 1U);
}

INSTANTIATE_TEST_SUITE_P(, AnyNumberOfBatches, testing::Values(1U, 2U, 3U));

TEST_F(Worker, FillsOneBatchWhileAnotherIsUnderWay) {
  orders_.hold = true;
  start(2);
  const auto first = post(10);
  ASSERT_TRUE(eventually([&] { return orders_.launched == 1; }));
  const auto second = post(20);
  ASSERT_TRUE(eventually([&] { return orders_.launched == 2; }));
  const auto third = post(30);  // waits for a batch
  const auto fourth = post(40);
  EXPECT_FALSE(channel_.take());
  orders_.hold = false;
  for (const auto& message : {first, second, third, fourth}) {
    EXPECT_EQ(channel_.await(), support::reversed(message));
  }
  EXPECT_EQ(orders_.launched, 3U);
  EXPECT_EQ(orders_.most_messages, 2U);
}

TEST_P(AnyNumberOfBatches, BatchesThatDoNotEndAreNoSignOfLife) {
  orders_.hold = true;
  start(GetParam());
  for (std::uint32_t launched = 1; launched <= GetParam(); ++launched) {
    post(10);
    ASSERT_TRUE(eventually([&] { return orders_.launched == launched; }));
    EXPECT_TRUE(becomes_still());
  }
  orders_.hold = false;
  const auto before = worker_->heartbeat();
  EXPECT_TRUE(channel_.await());
  EXPECT_TRUE(eventually([&] { return worker_->heartbeat() != before; }));
  EXPECT_LT(worker_->heartbeat(), 1U << 30);
}

TEST_F(Worker, SleepsWithoutWork) {
  start();
  EXPECT_TRUE(eventually([&] { return sleeps(); }));
  for (std::uint32_t i = 0; i < 3; ++i) {
    post(10 + i);
    EXPECT_TRUE(channel_.await());
    EXPECT_TRUE(eventually([&] { return sleeps(); }));
  }
}

TEST_F(Worker, AnAnswerWakesTheServer) {
  start();
  channel::Waiter waiter = channel_.channel_memory.endpoint().waiter;
  waiter.arm();
  const auto message = post(10);
  constexpr int kMilliseconds = 20'000;
  EXPECT_TRUE(support::is_readable(waiter.fd(), kMilliseconds));
  EXPECT_EQ(channel_.await(), support::reversed(message));
}

TEST_F(Worker, StopsWhenItIsDestroyed) {
  start();
  worker_.reset();
  post(10);
  EXPECT_FALSE(channel_.take());
}

// The first batch, the sixteenth after it, and so on; a batch of one here.
TEST_F(Worker, MeasuresSomeBatches) {
  const auto times = std::make_shared<ChannelTimes>();
  worker_ = std::make_unique<BatchWorker>(
      channel_.to_backend(), 20us,
      std::make_unique<test::HostProcessor>(orders_, "reverse", kLongest, 2, 16'384), times);
  worker_->start();
  const auto before = static_cast<std::uint64_t>(core::Clock::now().time_since_epoch().count());
  for (std::uint32_t i = 0; i < 40; ++i) {
    post(100 + 16 * i);
    ASSERT_TRUE(channel_.await());
  }
  ASSERT_TRUE(eventually([&] { return times->samples.latest().size() == 3; }));
  for (std::uint32_t i = 0; i < 3; ++i) {
    const ServiceSample sample = times->samples.latest()[i];
    EXPECT_EQ(sample.length, kernels::room_in_batch(100 + 16 * 16 * i));
    EXPECT_LT(before, sample.began);
    EXPECT_LT(sample.began, sample.ended);
  }
}

// Nothing wakes the thread when a batch has ended.
TEST_F(Worker, LooksWhileABatchIsUnderWay) {
  orders_.hold = true;
  start();
  post(10);
  constexpr std::uint32_t kMoreThanWakeUps = 10'000;  // it sleeps for a second at most
  EXPECT_TRUE(eventually([&] { return orders_.looks > kMoreThanWakeUps; }));
  EXPECT_FALSE(sleeps());
}

// Nothing is launched for it, but the server waits for its refusal.
TEST_F(Worker, ARefusalAloneWakesTheServer) {
  start();
  channel::Waiter waiter = channel_.channel_memory.endpoint().waiter;
  waiter.arm();
  channel_.forge({}, kLongest + 1, 0);
  constexpr int kMilliseconds = 20'000;
  EXPECT_TRUE(support::is_readable(waiter.fd(), kMilliseconds));
  EXPECT_EQ(orders_.launched, 0U);
}

TEST_F(Worker, StopsWhileABatchDoesNotEndAndSaysSo) {
  orders_.hold = true;
  start();
  const auto message = post(10);
  ASSERT_TRUE(eventually([&] { return orders_.launched == 1; }));
  worker_->stop();
  EXPECT_FALSE(worker_->drain(core::Clock::now()));
  EXPECT_FALSE(channel_.take());
  orders_.hold = false;
  EXPECT_TRUE(worker_->drain(core::Clock::now() + support::kBound));
  EXPECT_EQ(channel_.take(), support::reversed(message));
}

TEST_F(Worker, AFailedLaunchEndsItsService) {
  orders_.fail_launch = true;
  start();
  EXPECT_EQ(worker_->failure(), "");
  post(10);
  EXPECT_TRUE(eventually([&] { return worker_->failure() == "as the test said"; }));
  EXPECT_TRUE(eventually([&] { return sleeps(); }));
  orders_.fail_launch = false;
  post(10);
  worker_->stop();
  EXPECT_TRUE(worker_->drain(core::Clock::now()));
  EXPECT_FALSE(channel_.take());
  EXPECT_EQ(orders_.launched, 0U);
}

TEST_F(Worker, AFailedBatchEndsItsService) {
  orders_.fail_batch = true;
  start();
  post(10);
  EXPECT_TRUE(eventually([&] { return !worker_->failure().empty(); }));
  EXPECT_FALSE(channel_.take());
}

TEST_F(Worker, AnAnswerThatIsNoneIsAFault) {
  orders_.spoil = 0;
  start();
  const auto message = post(10);
  EXPECT_EQ(channel_.await(), Bytes{});
  EXPECT_EQ(channel_.server.last_status, kernels::ResponseStatus::bad_length);
  Fault fault{};
  ASSERT_TRUE(eventually([&] { return worker_->take_fault(fault); }));
  EXPECT_EQ(fault.channel, 5U);
  EXPECT_EQ(fault.slot, 0U);
  EXPECT_EQ(fault.length, message.size());
}

// The messages wait for the thread, so that one launch has them all.
TEST_F(Worker, AFaultNamesItsOwnSlotOfALaunch) {
  constexpr std::uint32_t kMessages = 4;
  for (std::uint32_t spoilt = 0; spoilt < kMessages; ++spoilt) {
    SCOPED_TRACE(spoilt);
    ServedChannel channel(5, 64, kLongest);
    for (std::uint32_t i = 0; i < kMessages; ++i) {
      ASSERT_TRUE(channel.post(support::random_bytes(10 + i, i)));
    }
    orders_.spoil = spoilt;
    BatchWorker worker(
        channel.to_backend(), 20us,
        std::make_unique<test::HostProcessor>(orders_, "reverse", kLongest, 2, 16'384));
    worker.start();
    Fault fault{};
    ASSERT_TRUE(eventually([&] { return worker.take_fault(fault); }));
    EXPECT_EQ(fault.slot, spoilt);
    EXPECT_EQ(fault.length, 10 + spoilt);
    for (std::uint32_t i = 0; i < kMessages; ++i) {
      EXPECT_EQ(channel.await()->empty(), i == spoilt) << i;
    }
    worker.stop();
    EXPECT_TRUE(worker.drain(core::Clock::now() + support::kBound));
  }
}

TEST_F(Worker, TheFirstOfTwoFaultsIsReported) {
  start();
  for (std::uint32_t i = 0; i < 2; ++i) {
    const kernels::ChannelView memory = channel_.memory();
    channel_.forge({}, kLongest + 1 + i, 0);
    ASSERT_TRUE(eventually([&] {
      return kernels::load_packet(memory.response(i).packets).flag == memory.layout.flag_of(i);
    }));
    ASSERT_TRUE(channel_.post({}));  // of which that is the answer
    EXPECT_EQ(channel_.await(), Bytes{});
  }
  post(10);
  EXPECT_TRUE(channel_.await());
  Fault fault{};
  ASSERT_TRUE(worker_->take_fault(fault));
  EXPECT_EQ(fault.length, kLongest + 1);
  EXPECT_FALSE(worker_->take_fault(fault));
}

TEST_F(Worker, ARefusalNamesItsOwnSlotAmongOthers) {
  for (std::uint32_t i = 0; i < 2; ++i) post(10 + i);
  channel_.forge({}, kLongest + 1, 0);
  start();
  Fault fault{};
  ASSERT_TRUE(eventually([&] { return worker_->take_fault(fault); }));
  EXPECT_EQ(fault.slot, 2U);
  EXPECT_EQ(fault.length, kLongest + 1);
}

// Slots with one message and with many, of which the processor has several under way at once.
TEST_F(Worker, AnswersSlotsWithBatchesInOrder) {
  start(2);
  std::deque<Bytes> due;
  std::uint32_t posted = 0;
  for (std::uint32_t round = 1; round <= 150; ++round) {
    for (std::uint32_t i = 0; i < round; ++i) {
      const auto message = support::random_bytes(posted * 7 % 131, posted);
      if (!channel_.gather(message)) break;
      due.push_back(support::reversed(message));
      ++posted;
    }
    channel_.flush();
    while (due.size() > 100) {
      ASSERT_EQ(channel_.await(), due.front()) << round;
      due.pop_front();
    }
  }
  for (; !due.empty(); due.pop_front()) ASSERT_EQ(channel_.await(), due.front());
  EXPECT_GT(orders_.most_messages, kernels::kMaxBatchCount);
}

TEST_F(Worker, OfABatchAMessageWithoutAnAnswerIsRefusedAlone) {
  orders_.spoil = 0;
  orders_.hold = true;
  start();
  std::vector<Bytes> messages;
  for (std::uint32_t i = 0; i < 3; ++i) {
    messages.push_back(support::random_bytes(50 + i, i));
    ASSERT_TRUE(channel_.gather(messages.back()));
  }
  channel_.flush();
  orders_.hold = false;
  EXPECT_EQ(channel_.await(), Bytes{});
  EXPECT_EQ(channel_.server.last_status, kernels::ResponseStatus::bad_length);
  for (std::uint32_t i = 1; i < 3; ++i) {
    EXPECT_EQ(channel_.await(), support::reversed(messages[i]));
    EXPECT_EQ(channel_.server.last_status, kernels::ResponseStatus::ok);
  }
  Fault fault{};
  EXPECT_TRUE(eventually([&] { return worker_->take_fault(fault); }));
}

}  // namespace
}  // namespace offload::backend
