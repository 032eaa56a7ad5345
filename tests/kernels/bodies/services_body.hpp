#pragma once

#include <gtest/gtest.h>

#include <initializer_list>

#include "tests/kernels/bodies/serve_body.hpp"

/// Every service against its reference.
namespace offload::kernels::test {

/// Asks for one message after the other, each in a slot that holds the former ones' leavings.
template <class Runner, class Service>
void expect_right_answers(Service, const std::vector<std::uint32_t>& lengths,
                          std::uint32_t max_length) {
  TestChannel<Runner> channel(2, max_length);
  std::uint64_t sequence = 0;
  for (const std::uint32_t length : lengths) {
    const auto message = random_octets(length);
    channel.post(sequence, message);
    ASSERT_EQ(serve_once<Service>(channel, sequence), Outcome::answered);
    const auto response = channel.response(sequence);
    ASSERT_TRUE(response.has_value()) << Service::kName << " of " << length << " bytes";
    ASSERT_EQ(*response, expected_response(Service::kName, message))
        << Service::kName << " of " << length << " bytes";
    ++sequence;
  }
}

template <class Action>
void for_each_service(Action action) {
  std::apply([&](auto... service) { (action(service), ...); }, Services{});
}

template <class Runner>
class ServicesRight : public RunnerSuite<Runner> {};
TYPED_TEST_SUITE_P(ServicesRight);

TYPED_TEST_P(ServicesRight, ForEveryLengthUpTo500) {
  std::vector<std::uint32_t> lengths;
  for (std::uint32_t length = 0; length <= 500; length += TypeParam::kStride) {
    lengths.push_back(length);
  }
  for_each_service([&](auto service) { expect_right_answers<TypeParam>(service, lengths, 500); });
}

TYPED_TEST_P(ServicesRight, ForLargeMessages) {
  const std::vector<std::uint32_t> lengths{511,  512,  513,  1025, 1537,   2100,   3000,
                                           3600, 4095, 4096, 4097, 65'521, 65'536, (1U << 20) + 3};
  for_each_service(
      [&](auto service) { expect_right_answers<TypeParam>(service, lengths, (1U << 20) + 3); });
}

// With so short a limit, a digest is longer than any request.
TYPED_TEST_P(ServicesRight, ForAChannelOfEmptyMessages) {
  for_each_service([&](auto service) { expect_right_answers<TypeParam>(service, {0, 0, 0}, 0); });
}

TYPED_TEST_P(ServicesRight, ForTheCheckValueOfCrc32c) {
  TestChannel<TypeParam> channel(2, 500);
  const Octets digits{'1', '2', '3', '4', '5', '6', '7', '8', '9'};
  channel.post(0, digits);
  ASSERT_EQ(serve_once<Crc32c>(channel, 0), Outcome::answered);
  EXPECT_EQ(channel.response(0), (Octets{0x83, 0x92, 0x06, 0xe3}));
}

REGISTER_TYPED_TEST_SUITE_P(ServicesRight, ForEveryLengthUpTo500, ForLargeMessages,
                            ForAChannelOfEmptyMessages, ForTheCheckValueOfCrc32c);

}  // namespace offload::kernels::test
