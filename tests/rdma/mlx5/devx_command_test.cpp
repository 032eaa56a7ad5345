#include "rdma/mlx5/devx_command.hpp"

#include <gtest/gtest.h>

namespace offload::rdma::mlx5 {
namespace {

// Bits are counted from the highest of the first byte, as in the card's documentation.
TEST(DevxMessage, FieldsAreBigEndian) {
  ShortDevxCommand message;
  message.set(kOpcode, 0x1234);
  message.set(kNumber, 0xabcdef);
  message.set({0x40, 3}, 5);
  message.set({0x60, 32}, 0x89abcdef);
  const std::uint8_t expected[] = {0x12, 0x34, 0,    0,    0,    0,    0,    0,
                                   0xa0, 0xab, 0xcd, 0xef, 0x89, 0xab, 0xcd, 0xef};
  for (std::uint32_t i = 0; i < sizeof expected; ++i) {
    EXPECT_EQ(*message.bytes_at(8 * i), expected[i]) << i;
  }
  EXPECT_EQ(message.get(kNumber), 0xabcdefU);
  EXPECT_EQ(message.get({0x40, 3}), 5U);
  EXPECT_EQ(message.get({0x43, 5}), 0U);
  EXPECT_EQ(message.get({0x60, 32}), 0x89abcdefU);
}

TEST(DevxMessage, AFieldOfTwoWordsAndOneInAStructure) {
  ShortDevxCommand message;
  message.set(0x20U + DevxField{0x20, 64}, 0x0102'0304'0506'0708);
  message.set(0x10U + DevxField{0xf, 1}, 1);
  for (std::uint32_t i = 0; i < 8; ++i) EXPECT_EQ(*message.bytes_at(0x40 + 8 * i), i + 1);
  EXPECT_EQ(*message.bytes_at(24), 1U);
}

}  // namespace
}  // namespace offload::rdma::mlx5
