#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/graph/batch.hpp"
#include "kernels/serve.hpp"
#include "kernels/services.hpp"
#include "tests/kernels/bodies/runner_suite.hpp"
#include "tests/kernels/reference.hpp"

/// One group answers the messages of a batch, one after the other.
namespace offload::kernels::test {

template <class Service>
struct ServeBatch {
  LaunchBatch batch;
  std::uint32_t asked;  ///< messages, from the first on

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, Staging&) const {
    for (std::uint32_t i = 0; i < asked; ++i) serve_in_batch(group, batch, i, Service{});
  }
};

/// A batch in a runner's memory, exactly as long as it has to be.
template <class Runner>
class TestBatch {
 public:
  TestBatch(std::uint32_t capacity, std::uint32_t max_length)
      : capacity_(capacity),
        max_length_(max_length),
        requests_(sizeof(RequestBatch) + capacity + kSlack),
        responses_(sizeof(ResponseBatch) + capacity + kSlack) {
    std::memset(responses_.data(), 0xa5, sizeof(ResponseBatch) + capacity + kSlack);
  }

  [[nodiscard]] RequestBatch& requests() const {
    return *reinterpret_cast<RequestBatch*>(requests_.data());
  }
  [[nodiscard]] ResponseBatch& responses() const {
    return *reinterpret_cast<ResponseBatch*>(responses_.data());
  }
  [[nodiscard]] LaunchBatch batch() const {
    return {&requests(), &responses(), capacity_, max_length_};
  }

  void add(const Octets& message) {
    const auto length = static_cast<std::uint32_t>(message.size());
    std::copy(message.begin(), message.end(), requests().payloads() + used_);
    requests().entries[requests().count++] = {used_, length};
    used_ += room_in_batch(length);
  }
  [[nodiscard]] Octets response(std::uint32_t i) const {
    const std::uint8_t* const from = responses().payloads() + requests().entries[i].place;
    return {from, from + responses().entries[i].length};
  }
  /// Returns whether message `i` has no answer yet.
  [[nodiscard]] bool is_untouched(std::uint32_t i) const {
    return responses().entries[i].length == 0xa5a5'a5a5U;
  }

 private:
  std::uint32_t capacity_;
  std::uint32_t max_length_;
  std::uint32_t used_ = 0;
  typename Runner::Memory requests_;
  typename Runner::Memory responses_;
};

template <class Runner>
class Batches : public RunnerSuite<Runner> {};
TYPED_TEST_SUITE_P(Batches);

TYPED_TEST_P(Batches, EachMessageHasItsAnswer) {
  const std::vector<std::uint32_t> lengths{0,   1,   15,  16,   17,     47,     48,     49,
                                           371, 372, 373, 4096, 65'535, 65'536, 100'000};
  std::uint32_t capacity = 0;
  for (const auto length : lengths) capacity += room_in_batch(length);
  std::apply(
      [&](auto... service) {
        const auto expect_answers = [&](auto chosen) {
          TestBatch<TypeParam> test(capacity, 100'000);
          for (const auto length : lengths) test.add(random_octets(length));
          const auto count = static_cast<std::uint32_t>(lengths.size());
          TypeParam::run(ServeBatch<decltype(chosen)>{test.batch(), count + 3});
          for (std::uint32_t i = 0; i < count; ++i) {
            EXPECT_EQ(test.responses().entries[i].status, ResponseStatus::ok);
            EXPECT_EQ(test.response(i), expected_response(chosen.kName, random_octets(lengths[i])))
                << chosen.kName << " of " << lengths[i];
          }
          EXPECT_TRUE(test.is_untouched(count));
        };
        (expect_answers(service), ...);
      },
      Services{});
}

TYPED_TEST_P(Batches, WhatIsNotWithinIsRefused) {
  constexpr std::uint32_t kCapacity = 1024;
  constexpr std::uint32_t kLongest = 500;
  // The last three are within it themselves, but not the longest answers to them.
  const RequestBatch::Entry bad[] = {
      {0, kLongest + 1},    {0, 0xffff'ffff},       {8, 16},           {kCapacity, 16},
      {kCapacity - 32, 48}, {kCapacity - 496, 500}, {0xffff'fff0, 16}, {kCapacity, 0},
      {kCapacity - 16, 1},  {kCapacity - 32, 32}};
  TestBatch<TypeParam> test(kCapacity, kLongest);
  for (const auto& entry : bad) test.requests().entries[test.requests().count++] = entry;
  const RequestBatch::Entry good[] = {{kCapacity - 512, kLongest}, {kCapacity - kLeastRoom, 1}};
  for (const auto& entry : good) test.requests().entries[test.requests().count++] = entry;
  TypeParam::run(ServeBatch<Echo>{test.batch(), test.requests().count});
  for (std::uint32_t i = 0; i < std::size(bad); ++i) {
    EXPECT_EQ(test.responses().entries[i].status, ResponseStatus::bad_length) << i;
    EXPECT_EQ(test.responses().entries[i].length, 0U) << i;
  }
  for (std::uint32_t i = std::size(bad); i < test.requests().count; ++i) {
    EXPECT_EQ(test.responses().entries[i].status, ResponseStatus::ok) << i;
  }
}

TYPED_TEST_P(Batches, ACountBeyondTheEntriesIsNotBelieved) {
  TestBatch<TypeParam> test(1024, 500);
  test.requests().count = 0xffff'ffff;
  TypeParam::run(ServeBatch<Echo>{test.batch(), kMostInBatch + 2});
  EXPECT_EQ(test.responses().entries[kMostInBatch - 1].status, ResponseStatus::ok);
  EXPECT_EQ(*test.responses().payloads(), 0xa5);  // would be part of an entry after the last
}

REGISTER_TYPED_TEST_SUITE_P(Batches, EachMessageHasItsAnswer, WhatIsNotWithinIsRefused,
                            ACountBeyondTheEntriesIsNotBelieved);

}  // namespace offload::kernels::test
