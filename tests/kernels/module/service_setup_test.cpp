#include "kernels/module/service_setup.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <vector>

namespace offload::kernels::test {
namespace {

/// Returns whether `size` bytes are there, zero and aligned to 256.
bool is_fresh(const void* piece, std::size_t size) {
  const auto* const bytes = static_cast<const std::uint8_t*>(piece);
  return piece != nullptr && reinterpret_cast<std::uintptr_t>(piece) % 256 == 0 &&
         std::all_of(bytes, bytes + size, [](std::uint8_t byte) { return byte == 0; });
}

TEST(ServiceMemory, HasPiecesOfWhole256Bytes) {
  ServiceMemory memory(kOnCpu);
  EXPECT_EQ(memory.device(), kOnCpu);
  EXPECT_EQ(memory.bytes(), 0U);
  EXPECT_TRUE(is_fresh(memory.allocate(0), 256)) << "not null";
  EXPECT_EQ(memory.bytes(), 256U);
  EXPECT_TRUE(is_fresh(memory.allocate(255), 256));
  EXPECT_EQ(memory.bytes(), 512U);
  EXPECT_TRUE(is_fresh(memory.allocate(1000), 1024));
  EXPECT_EQ(memory.bytes(), 1536U);
}

class ServiceSetups : public testing::Test {
 protected:
  ServiceSetups() {
    making_.device = kOnCpu;
    making_.options = options_.data();
    making_.option_count = options_.size();
  }

  std::vector<ServiceOption> options_{
      {"key", "first", false}, {"other", "value", false}, {"key", "last", false}};
  ServiceMaking making_{};
  ServiceMemory memory_{kOnCpu};
  ServiceSetup setup_{making_, memory_};
};

TEST_F(ServiceSetups, TheLastValueOfAnOptionCountsAndAllAreRead) {
  EXPECT_STREQ(setup_.find("key"), "last");
  EXPECT_TRUE(options_[0].read);
  EXPECT_FALSE(options_[1].read);
  EXPECT_TRUE(options_[2].read);
  EXPECT_EQ(setup_.option("key"), "last");
  EXPECT_EQ(setup_.option("other", "default"), "value");
}

TEST_F(ServiceSetups, AnOptionMayBeMissing) {
  EXPECT_EQ(setup_.find("ke"), nullptr);
  EXPECT_EQ(setup_.option("ke", "default"), "default");
  try {
    static_cast<void>(setup_.option("ke"));
    ADD_FAILURE();
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "it needs --service-option ke=...");
  }
}

TEST_F(ServiceSetups, RoomForElementsIsZero) {
  const std::uint32_t* const words = setup_.allocate<std::uint32_t>(100);
  EXPECT_TRUE(is_fresh(words, 400));
  EXPECT_EQ(memory_.bytes(), 512U);
  EXPECT_THROW(static_cast<void>(setup_.allocate<std::uint64_t>(UINT64_MAX / 16 + 1)),
               std::bad_alloc)
      << "its size in bytes is more than half of all addresses";
}

TEST_F(ServiceSetups, ACopyIsInItsMemory) {
  const std::vector<std::uint16_t> numbers{1, 2, 3};
  const std::uint16_t* const copy = setup_.copy(numbers);
  ASSERT_NE(copy, numbers.data());
  EXPECT_EQ(std::vector<std::uint16_t>(copy, copy + 4), (std::vector<std::uint16_t>{1, 2, 3, 0}));
  EXPECT_EQ(memory_.bytes(), 256U);
}

TEST_F(ServiceSetups, KnowWhetherTheyAreForAGpu) {
  EXPECT_FALSE(setup_.on_gpu());
  ServiceMemory of_gpu(0);
  EXPECT_TRUE(ServiceSetup(making_, of_gpu).on_gpu());
}

}  // namespace
}  // namespace offload::kernels::test
