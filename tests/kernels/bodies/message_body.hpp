#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "kernels/message.hpp"
#include "kernels/serve.hpp"
#include "tests/kernels/bodies/runner_suite.hpp"
#include "tests/kernels/reference.hpp"

/// Reading a request in blocks, at every alignment.
namespace offload::kernels::test {

/// The blocks at all offsets from -15 to `length` - 1, and their mirror images.
struct ReadBlocks {
  const std::uint8_t* data;
  std::uint32_t length;
  Block* blocks;
  Block* mirrored;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, Staging&) const {
    const Request request(data, length);
    const std::uint32_t count = length + 15;
    const std::uint32_t rounds = (count + group.size() - 1) / group.size();
    for (std::uint32_t round = 0; round < rounds; ++round) {
      const std::uint32_t i = round * group.size() + group.lane();
      if (i >= count) continue;
      blocks[i] = request.block(static_cast<std::int64_t>(i) - 15);
      mirrored[i] = reversed(blocks[i]);
    }
  }
};

inline Octets octets_of(const Block& block) {
  Octets octets(sizeof block);
  std::memcpy(octets.data(), &block, sizeof block);
  return octets;
}

template <class Runner>
class Message : public RunnerSuite<Runner> {};
TYPED_TEST_SUITE_P(Message);

TYPED_TEST_P(Message, BlocksAtEveryOffset) {
  for (const std::uint32_t length : {1U, 15U, 16U, 17U, 100U, 372U, 400U}) {
    const auto message = random_octets(length);
    // Exactly the slack before and behind that a request may count on.
    const std::size_t room = (kSlack + length + kSlack + 15) / 16 * 16;
    typename TypeParam::Memory memory(room);
    std::copy(message.begin(), message.end(), memory.data() + kSlack);
    typename TypeParam::Memory blocks((length + 15) * sizeof(Block));
    typename TypeParam::Memory mirrored((length + 15) * sizeof(Block));
    const ReadBlocks body{memory.data() + kSlack, length, reinterpret_cast<Block*>(blocks.data()),
                          reinterpret_cast<Block*>(mirrored.data())};
    TypeParam::run(body);
    for (std::uint32_t i = 0; i < length + 15; ++i) {
      const auto* const from = memory.data() + kSlack + i - 15;
      const Octets expected(from, from + sizeof(Block));
      ASSERT_EQ(octets_of(body.blocks[i]), expected) << i << " of " << length;
      ASSERT_EQ(octets_of(body.mirrored[i]), Octets(expected.rbegin(), expected.rend())) << i;
    }
  }
}

REGISTER_TYPED_TEST_SUITE_P(Message, BlocksAtEveryOffset);

}  // namespace offload::kernels::test
