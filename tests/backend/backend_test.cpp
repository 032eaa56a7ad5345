#include "backend/backend.hpp"

#include <gtest/gtest.h>

#include <deque>

#include "core/error.hpp"
#include "kernels/serve.hpp"
#include "kernels/services.hpp"
#include "tests/backend/backend_kinds.hpp"
#include "tests/backend/served_channel.hpp"
#include "tests/kernels/reference.hpp"
#include "tests/support/thrown.hpp"

/// Tests of all back ends, with each of them that can run here.
namespace offload::backend {
namespace {

using namespace std::chrono_literals;
using core::Clock;
using kernels::ResponseStatus;
using support::Bytes;
using test::Kind;
using test::ServedChannel;

Bytes expected(const std::string& service, const Bytes& request) {
  kernels::test::Octets octets;
  for (const std::byte byte : request) octets.push_back(std::to_integer<std::uint8_t>(byte));
  return support::copy_of(std::as_bytes(
      std::span<const std::uint8_t>(kernels::test::expected_response(service, octets))));
}

class Backends : public test::BackendTest {
 protected:
  void TearDown() override {
    if (backend_) {
      EXPECT_NO_THROW(backend_->check());
      EXPECT_TRUE(backend_->stop(5s));
      backend_.reset();
    }
  }

  ServedChannel& make_channel(std::uint32_t index, std::uint32_t depth, std::uint32_t max_length,
                              std::uint64_t first = 0) {
    ServedChannel& channel = channels_.emplace_back(index, depth, max_length, first);
    channel.server.requester.set_wakeup(backend_->wakeup());
    return channel;
  }

  void start(const std::vector<ServedChannel*>& channels, const std::string& service) {
    std::vector<channel::SharedChannel> served;
    for (const auto* channel : channels) served.push_back(channel->to_backend());
    backend_->start(std::move(served), service);
  }

  /// Keeps the channel full with `count` messages of `length(i)` bytes, and checks every answer.
  template <class Length>
  void expect_right_answers(ServedChannel& channel, const std::string& service, std::uint32_t count,
                            Length length) {
    std::deque<Bytes> due;
    std::uint32_t posted = 0;
    for (std::uint32_t answered = 0; answered < count; ++answered) {
      for (; posted < count; ++posted) {
        auto message = support::random_bytes(length(posted), posted);
        if (!channel.post(message)) break;
        due.push_back(expected(service, message));
      }
      const auto response = channel.await();
      ASSERT_TRUE(response.has_value()) << service << ", message " << answered;
      ASSERT_EQ(*response, due.front()) << service << ", message " << answered;
      due.pop_front();
    }
  }

  std::deque<ServedChannel> channels_;  // outlive the back end's use of them
};

TEST_P(Backends, HasAName) {
  EXPECT_EQ(backend_->name().rfind(GetParam().name, 0), 0U) << backend_->name();
}

TEST_P(Backends, AnswersMessagesOfAllSizes) {
  constexpr std::uint32_t kLongest = 100'000;
  constexpr std::uint32_t kSizes[] = {0,   1,   11,  12,  13,  15,   16,   17,    255,     256,
                                      371, 372, 373, 500, 511, 4095, 4096, 65536, kLongest};
  for (const std::string service : {"reverse", "echo", "crc32c"}) {
    backend_ = GetParam().make();
    ServedChannel& channel = make_channel(0, 8, kLongest);
    start({&channel}, service);
    expect_right_answers(channel, service, 3 * std::size(kSizes),
                         [&](std::uint32_t i) { return kSizes[i % std::size(kSizes)]; });
    ASSERT_TRUE(backend_->stop(5s));
  }
}

TEST_P(Backends, CountsWhereItsTimeGoes) {
  const std::vector<SharedChannelTimes> times{std::make_shared<ChannelTimes>(),
                                              std::make_shared<ChannelTimes>()};
  std::uint64_t busy = 0;
  for (int run = 0; run < 2; ++run) {
    backend_->count_in(times);
    ServedChannel& channel = make_channel(0, 64, 256);
    ServedChannel& idle = make_channel(1, 64, 256);
    start({&channel, &idle}, "reverse");
    const auto before = Clock::now();
    expect_right_answers(channel, "reverse", 5'000, [](std::uint32_t) { return 100U; });
    const progress::EngineTimes& turns = times[0]->turns;
    // A thread counts a turn when the next begins, a kernel from time to time.
    EXPECT_TRUE(support::eventually([&] {
      EXPECT_TRUE(backend_->check().empty());
      return turns.busy.value() > busy && turns.polling.value() + turns.asleep.value() > 0;
    }));
    const auto spent = static_cast<std::uint64_t>((Clock::now() - before).count());
    EXPECT_LE(turns.busy.value() - busy, 64 * spent);  // 32 warps are busy at once, at most
    busy = turns.busy.value();
    EXPECT_LT(times[1]->turns.busy.value(), busy);  // the ends of its sleeps, which are work
    ASSERT_TRUE(backend_->stop(5s));
    EXPECT_GE(turns.busy.value(), busy);
    busy = turns.busy.value();
  }
}

TEST_P(Backends, AnswersManySmallMessages) {
  ServedChannel& channel = make_channel(0, 64, 256);
  start({&channel}, "reverse");
  expect_right_answers(channel, "reverse", 20'000, [](std::uint32_t i) { return i % 257; });
}

// Begins two laps before slots are rewritten, before flags repeat, and before a lap's 32 bits do.
TEST_P(Backends, GoesOnThroughLapsThatRewriteSlotsAndWrapAround) {
  constexpr std::uint32_t kDepth = 8;
  for (const std::uint64_t lap :
       {std::uint64_t{kernels::kRewriteLaps}, std::uint64_t{1} << 31, std::uint64_t{1} << 32}) {
    backend_ = GetParam().make();
    ServedChannel& channel = make_channel(0, kDepth, 1000, (lap - 3) * kDepth);
    start({&channel}, "reverse");
    EXPECT_EQ(channel.take(), std::nullopt);  // fresh memory answers nothing
    expect_right_answers(channel, "reverse", 8 * kDepth, [](std::uint32_t i) {
      constexpr std::uint32_t kSizes[] = {372, 0, 1000, 20, 372, 373, 5};
      return kSizes[i % std::size(kSizes)];
    });
    ASSERT_TRUE(backend_->stop(5s));
  }
}

// Batches have up to as many messages as fit in a slot, with long ones in between, which travel
// alone.
TEST_P(Backends, AnswersBatches) {
  constexpr std::uint32_t kSizes[] = {0, 64, 7, 64, 48, 2000, 49, 1, 63, 1024, 255, 64};
  for (const std::string service : {"reverse", "echo", "crc32c"}) {
    backend_ = GetParam().make();
    // The channel begins before a lap that rewrites slots.
    ServedChannel& channel =
        make_channel(0, 8, 5000, (std::uint64_t{kernels::kRewriteLaps} - 2) * 8);
    start({&channel}, service);
    const std::uint64_t first_slot = channel.server.requester.slots().posted();
    std::uint32_t posted = 0;
    for (std::uint32_t round = 0; round < 40; ++round) {
      std::vector<Bytes> due;
      const std::uint32_t together = round % 4 == 0 ? 2 : 5 * round;
      while (due.size() < together) {
        const auto size = round % 2 == 0 ? 64 : kSizes[posted % std::size(kSizes)];
        const auto message = support::random_bytes(size, posted);
        if (!channel.gather(message)) break;
        due.push_back(expected(service, message));
        ++posted;
      }
      ASSERT_GT(due.size(), 1U);
      channel.flush();
      for (const Bytes& response : due) {
        ASSERT_EQ(channel.await(), response) << service << ", round " << round;
        ASSERT_EQ(channel.server.last_status, ResponseStatus::ok);
      }
    }
    EXPECT_LT(channel.server.requester.slots().posted() - first_slot, posted * 2 / 3);
    ASSERT_TRUE(backend_->stop(5s));
  }
}

TEST_P(Backends, AnswersOneAtATime) {
  ServedChannel& channel = make_channel(0, 4, 256);
  start({&channel}, "echo");
  for (std::uint32_t i = 0; i < 300; ++i) {
    const auto message = support::random_bytes(i % 257, i);
    ASSERT_TRUE(channel.post(message));
    ASSERT_EQ(channel.await(), message) << i;
  }
}

TEST_P(Backends, ServesEveryChannel) {
  std::vector<ServedChannel*> all;
  for (std::uint32_t i = 0; i < 4; ++i) all.push_back(&make_channel(i, 16, 400 * i));
  start(all, "reverse");
  EXPECT_EQ(backend_->heartbeats().size(), 4U);
  for (ServedChannel* channel : all) {
    const auto longest = channel->memory().layout.max_length;
    expect_right_answers(*channel, "reverse", 200,
                         [&](std::uint32_t i) { return i * 31 % (longest + 1); });
  }
}

struct Forged {
  Bytes content;
  std::uint32_t length;
  std::uint32_t count;
};

TEST_P(Backends, ReportsWhatIsMalformedAndGoesOn) {
  ServedChannel& channel = make_channel(3, 8, 500);
  start({&channel}, "reverse");
  const std::vector<Forged> all{{{}, 501, 0},  // longer than messages may be
                                {{}, 0x8000'0000U, 0},
                                {{}, 0xffff'ffffU, 0},
                                {{}, kernels::kMaxBatchContent + 1, 2},  // no batches
                                {{}, 200, 65},
                                {{}, 2, 2},
                                {Bytes(20), 20, 3},  // whose table does not say what it holds
                                {Bytes(400), 400, 64},
                                {Bytes(400, std::byte{0xff}), 400, 3}};
  for (const auto& [content, length, count] : all) {
    SCOPED_TRACE(testing::Message() << count << " in " << length);
    expect_right_answers(channel, "reverse", 5, [](std::uint32_t i) { return 100 * i; });
    EXPECT_TRUE(backend_->check().empty());
    const auto slot = channel.memory().layout.slot_index(channel.server.requester.slots().posted());
    channel.forge(content, length, count);
    std::vector<Fault> faults;
    ASSERT_TRUE(support::eventually([&] { return !(faults = backend_->check()).empty(); }));
    ASSERT_EQ(faults.size(), 1U);
    EXPECT_EQ(faults[0].channel, 3U);
    EXPECT_EQ(faults[0].slot, slot);
    EXPECT_EQ(faults[0].length, length);
    EXPECT_TRUE(backend_->check().empty());
    // The refusal is in the place of the answer to that message.
    ASSERT_TRUE(channel.post({}));
    const auto response = channel.await();
    ASSERT_TRUE(response.has_value());
    EXPECT_TRUE(response->empty());
    EXPECT_EQ(channel.server.last_status, ResponseStatus::bad_length);
  }
}

TEST_P(Backends, ServesWhatWasThereBeforeIt) {
  ServedChannel& channel = make_channel(0, 8, 500);
  std::vector<Bytes> messages;
  for (std::uint32_t i = 0; i < 6; ++i) {
    messages.push_back(support::random_bytes(i % 2 == 0 ? 40 * i : 400 + i, i));
    ASSERT_TRUE(channel.post(messages.back()));
  }
  start({&channel}, "reverse");
  for (const Bytes& message : messages) EXPECT_EQ(channel.await(), support::reversed(message));
  expect_right_answers(channel, "reverse", 100, [](std::uint32_t i) { return i; });
}

// As a worker's memory is new with each attachment, it begins with any message at most once.
TEST_P(Backends, BeginsInTheMiddleOfALap) {
  ServedChannel& channel = make_channel(0, 4, 100, 4 * 7 + 3);
  start({&channel}, "reverse");
  expect_right_answers(channel, "reverse", 30, [](std::uint32_t i) { return i; });
}

TEST_P(Backends, AHeartbeatPerChannelMoves) {
  ServedChannel& first = make_channel(0, 4, 100);
  ServedChannel& second = make_channel(1, 4, 100);
  start({&first, &second}, "reverse");
  const auto before = backend_->heartbeats();
  ASSERT_EQ(before.size(), 2U);
  EXPECT_TRUE(support::eventually([&] {
    const auto now = backend_->heartbeats();
    return now[0] != before[0] && now[1] != before[1];
  }));
}

TEST_P(Backends, StopsWithinABound) {
  ServedChannel& idle = make_channel(0, 4, 100);
  ServedChannel& busy = make_channel(1, 64, 100);
  start({&idle, &busy}, "reverse");
  while (busy.post(support::random_bytes(100, 1))) continue;
  EXPECT_TRUE(backend_->stop(support::kBound));
  EXPECT_TRUE(backend_->stop(support::kBound));  // once more is nothing
}

TEST_P(Backends, StopsWhenItIsDestroyed) {
  ServedChannel& channel = make_channel(0, 4, 100);
  start({&channel}, "reverse");
  backend_.reset();
  ASSERT_TRUE(channel.post(support::random_bytes(10, 1)));
  EXPECT_FALSE(channel.take());
}

TEST_P(Backends, AnUnknownServiceIsAnError) {
  ServedChannel& channel = make_channel(0, 4, 100);
  const auto error = support::thrown_by([&] { start({&channel}, "rot13"); });
  EXPECT_EQ(error.code(), core::ErrorCode::not_found);
  EXPECT_STREQ(error.what(), "no service 'rot13'");
}

INSTANTIATE_TEST_SUITE_P(, Backends,
                         testing::Values(Kind{"cpu", [] { return make_cpu_backend(20us); }},
                                         Kind{"cuda",
                                              [] {
                                                return make_cuda_backend({"", 16, 20us});
                                              }},
                                         Kind{"graph",
                                              [] {
                                                return make_graph_backend({"", 20us});
                                              }}),
                         testing::PrintToStringParamName());

TEST(CpuBackend, MeasuresSomeMessages) {
  const auto times = std::make_shared<ChannelTimes>();
  const auto backend = make_cpu_backend(20us);
  backend->count_in({times});
  ServedChannel channel(0, 4, 256);
  backend->start({channel.to_backend()}, "reverse");
  const auto before = static_cast<std::uint64_t>(Clock::now().time_since_epoch().count());
  for (std::uint32_t i = 0; i < 2 * ChannelTimes::kSampled + 10; ++i) {
    ASSERT_TRUE(channel.post(support::random_bytes(i, i)));
    ASSERT_TRUE(channel.await());
  }
  const auto samples = times->samples.latest();
  ASSERT_EQ(samples.size(), 2U);
  for (std::uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(samples[i].length, (i + 1) * ChannelTimes::kSampled - 1);
    EXPECT_LT(before, samples[i].began);
    EXPECT_LT(samples[i].began, samples[i].ended);
  }
  EXPECT_TRUE(backend->stop(5s));
}

TEST(CudaBackend, AnAddressWithoutAGpuIsRefused) {
  const auto error = support::thrown_by([] { make_cuda_backend({"ffff:ff:1f.7", 16, 0us}); });
  EXPECT_TRUE(error.code() == core::ErrorCode::not_found ||
              error.code() == core::ErrorCode::not_supported)
      << error.what();
}

TEST(GraphBackend, AnAddressWithoutAGpuIsRefused) {
  const auto error = support::thrown_by([] { make_graph_backend({"ffff:ff:1f.7", 0us}); });
  EXPECT_TRUE(error.code() == core::ErrorCode::not_found ||
              error.code() == core::ErrorCode::not_supported)
      << error.what();
}

/// CUDA keeps the error of a failed lookup for the next call of cudaGetLastError; a launch must not
/// take it for its own.
TEST(CudaBackend, StartsAfterAnAddressWithoutAGpu) {
  support::thrown_by([] { make_cuda_backend({"ffff:ff:1f.7", 16, 0us}); });
  std::unique_ptr<Backend> backend;
  try {
    backend = make_cuda_backend({"", 16, 0us});
  } catch (const core::Error& error) {
    GTEST_SKIP() << error.what();
  }
  ServedChannel channel(0, 8, 100);
  backend->start({channel.to_backend()}, "reverse");
  EXPECT_TRUE(backend->stop(5s));
}

}  // namespace
}  // namespace offload::backend
