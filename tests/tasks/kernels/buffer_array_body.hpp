#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "kernels/serve.hpp"
#include "kernels/tasks/buffer_array.hpp"
#include "tests/kernels/bodies/runner_suite.hpp"

/// Every lane picks buffers from an array.
namespace offload::kernels::test {

/// Each lane takes every size()-th of the `asked` indices, notes the element found, and fills it.
struct PickElements {
  BufferArrayView array;
  const std::uint64_t* indices;
  BufferElement* found;
  std::uint32_t asked;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, Staging&) const {
    for (std::uint32_t i = group.lane(); i < asked; i += group.size()) {
      const BufferElement element = array.at(indices[i]);
      found[i] = element;
      for (std::uint64_t at = 0; at < element.length; ++at) {
        element.address[at] = static_cast<std::uint8_t>(i + 1);
      }
    }
  }
};

template <class Runner>
class BufferArrays : public RunnerSuite<Runner> {};
TYPED_TEST_SUITE_P(BufferArrays);

TYPED_TEST_P(BufferArrays, ElementsAreWhereTheyShouldBeAndNoneIsBeyond) {
  constexpr std::uint64_t kCount = 40;
  constexpr std::uint64_t kSize = 5;
  constexpr std::uint64_t kStride = 8;
  constexpr std::uint64_t kBytes = kCount * kStride;
  // Indices within the array; then the first beyond it, and those that an overflow would map into
  // it.
  const std::vector<std::uint64_t> beyond{kCount, kCount + 1, 1ULL << 32, 1ULL << 61, ~0ULL};
  const std::uint64_t asked = kCount + beyond.size();
  typename TypeParam::Memory memory(kBytes +
                                    asked * (sizeof(std::uint64_t) + sizeof(BufferElement)));
  auto* const indices = reinterpret_cast<std::uint64_t*>(memory.data() + kBytes);
  auto* const found = reinterpret_cast<BufferElement*>(indices + asked);
  for (std::uint64_t i = 0; i < asked; ++i) indices[i] = i < kCount ? i : beyond[i - kCount];
  TypeParam::run(PickElements{
      {memory.data(), kSize, kStride, kCount}, indices, found, static_cast<std::uint32_t>(asked)});

  for (std::uint64_t i = 0; i < kCount; ++i) {
    EXPECT_EQ(found[i].address, memory.data() + i * kStride);
    EXPECT_EQ(found[i].length, kSize);
  }
  for (std::uint64_t i = kCount; i < asked; ++i) {
    EXPECT_EQ(found[i].address, nullptr) << indices[i];
    EXPECT_EQ(found[i].length, 0U) << indices[i];
  }
  for (std::uint64_t at = 0; at < kBytes; ++at) {
    const bool in_element = at % kStride < kSize;
    EXPECT_EQ(memory.data()[at], in_element ? at / kStride + 1 : 0) << at;
  }
}

TYPED_TEST_P(BufferArrays, OfNoneHasNone) {
  typename TypeParam::Memory memory(sizeof(std::uint64_t) + sizeof(BufferElement));
  auto* const indices = reinterpret_cast<std::uint64_t*>(memory.data());
  auto* const found = reinterpret_cast<BufferElement*>(indices + 1);
  found->length = 1;
  TypeParam::run(PickElements{{memory.data(), 1, 1, 0}, indices, found, 1});
  EXPECT_EQ(found->address, nullptr);
  EXPECT_EQ(found->length, 0U);
}

REGISTER_TYPED_TEST_SUITE_P(BufferArrays, ElementsAreWhereTheyShouldBeAndNoneIsBeyond,
                            OfNoneHasNone);

}  // namespace offload::kernels::test
