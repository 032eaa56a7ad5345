#include "backend/graph_processor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "core/error.hpp"
#include "gpu/cuda_device.hpp"
#include "tests/kernels/reference.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/thrown.hpp"

/// Batches on a GPU, without a channel.
namespace offload::backend {
namespace {

using kernels::test::Octets;
using State = BatchProcessor::State;

class GraphProcessorTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kLongest = 100'000;

  void SetUp() override {
    try {
      device_ = static_cast<int>(gpu::open_gpu("").index);
      services_.emplace(Services{}, device_);
    } catch (const core::Error& error) {
      GTEST_SKIP() << error.what();
    }
  }

  /// Puts requests of `lengths` into batch `i` and returns the bytes of their payloads.
  static std::uint32_t fill(GraphProcessor& processor, std::uint32_t i,
                            const std::vector<std::uint32_t>& lengths) {
    kernels::RequestBatch& batch = *processor.requests(i);
    std::uint32_t bytes = 0;
    batch.count = 0;
    for (const std::uint32_t length : lengths) {
      const Octets request = kernels::test::random_octets(length);
      std::copy(request.begin(), request.end(), batch.payloads() + bytes);
      batch.entries[batch.count++] = {bytes, length};
      bytes += kernels::room_in_batch(length);
    }
    return bytes;
  }
  static void expect_reversed(GraphProcessor& processor, std::uint32_t i,
                              const std::vector<std::uint32_t>& lengths) {
    for (std::uint32_t message = 0; message < lengths.size(); ++message) {
      const auto& entry = processor.responses(i)->entries[message];
      ASSERT_EQ(entry.status, kernels::ResponseStatus::ok);
      ASSERT_EQ(entry.length, lengths[message]);
      const std::uint8_t* const from =
          processor.responses(i)->payloads() + processor.requests(i)->entries[message].place;
      EXPECT_EQ(Octets(from, from + entry.length),
                kernels::test::expected_response("reverse",
                                                 kernels::test::random_octets(lengths[message])));
    }
  }
  static bool ends(GraphProcessor& processor, std::uint32_t i) {
    State state = State::running;
    support::eventually([&] { return (state = processor.look(i)) != State::running; }, [] {});
    return state == State::done;
  }

  int device_ = 0;
  std::optional<ServiceObjects> services_;
};

TEST_F(GraphProcessorTest, AnswersBatchesOfEachSize) {
  GraphProcessor processor(device_, services_->find("reverse", kernels::make_layout(1, kLongest)),
                           kLongest, 2);
  EXPECT_EQ(processor.batches(), 2U);
  EXPECT_GE(processor.capacity(), kernels::room_in_batch(kLongest));
  processor.start_thread();
  for (const std::vector<std::uint32_t>& lengths :
       {std::vector<std::uint32_t>{1}, {64}, {65}, {0, 16, 372, 373}, {kLongest}}) {
    const std::uint32_t bytes = fill(processor, 1, lengths);
    ASSERT_TRUE(processor.launch(1, bytes));
    ASSERT_TRUE(ends(processor, 1)) << processor.failure();
    expect_reversed(processor, 1, lengths);
  }
}

TEST_F(GraphProcessorTest, HasTwoBatchesUnderWay) {
  GraphProcessor processor(device_, services_->find("reverse", kernels::make_layout(1, kLongest)),
                           500, 2);
  const std::vector<std::uint32_t> first(kernels::kMostInBatch, 256);
  const std::vector<std::uint32_t> second(3, 500);
  const std::uint32_t bytes[] = {fill(processor, 0, first), fill(processor, 1, second)};
  ASSERT_TRUE(processor.launch(0, bytes[0]) && processor.launch(1, bytes[1]));
  ASSERT_TRUE(ends(processor, 1) && ends(processor, 0)) << processor.failure();
  expect_reversed(processor, 0, first);
  expect_reversed(processor, 1, second);
}

}  // namespace
}  // namespace offload::backend
