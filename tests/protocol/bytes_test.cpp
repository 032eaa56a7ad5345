#include "protocol/bytes.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/bytes.hpp"

namespace offload::protocol {
namespace {

using support::Bytes;
using support::bytes;

TEST(BigEndian, StoresTheHighestByteFirst) {
  Bytes memory(16, std::byte{0xee});
  store_big_endian(memory.data() + 1, std::uint8_t{0x12});
  store_big_endian(memory.data() + 2, std::uint16_t{0x3456});
  store_big_endian(memory.data() + 4, std::uint32_t{0x789abcde});
  store_big_endian(memory.data() + 8, std::uint64_t{0xf1e2'd3c4'b5a6'9788});
  EXPECT_EQ(memory, bytes({0xee, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf1, 0xe2, 0xd3, 0xc4,
                           0xb5, 0xa6, 0x97, 0x88}));
}

TEST(BigEndian, LoadsAtAnyAlignment) {
  const Bytes memory = bytes({0, 0xf1, 0xe2, 0xd3, 0xc4, 0xb5, 0xa6, 0x97, 0x88});
  EXPECT_EQ(load_big_endian<std::uint8_t>(memory.data() + 1), 0xf1);
  EXPECT_EQ(load_big_endian<std::uint16_t>(memory.data() + 1), 0xf1e2);
  EXPECT_EQ(load_big_endian<std::uint32_t>(memory.data() + 1), 0xf1e2'd3c4U);
  EXPECT_EQ(load_big_endian<std::uint64_t>(memory.data() + 1), 0xf1e2'd3c4'b5a6'9788U);
}

TEST(Reader, ReadsFieldsInOrder) {
  const Bytes memory = bytes({1, 2, 3, 2, 'h', 'i', 9, 8});
  Reader reader(memory);
  EXPECT_EQ(reader.integer<std::uint8_t>(), 1);
  EXPECT_EQ(reader.integer<std::uint16_t>(), 0x0203);
  EXPECT_EQ(reader.string(), "hi");
  EXPECT_TRUE(reader.ok());
  EXPECT_FALSE(reader.finished());
  EXPECT_EQ(reader.rest().size(), 2U);
  EXPECT_TRUE(reader.finished());
}

TEST(Reader, PastTheEndIsZeroAndNeverOkAgain) {
  const Bytes memory = bytes({1, 2, 3});
  Reader reader(memory);
  EXPECT_EQ(reader.integer<std::uint32_t>(), 0U);
  EXPECT_FALSE(reader.ok());
  // Three bytes were left, but what they mean is no longer known.
  EXPECT_EQ(reader.integer<std::uint8_t>(), 0);
  EXPECT_EQ(reader.string(), "");
  EXPECT_TRUE(reader.rest().empty());
  EXPECT_FALSE(reader.ok());
  EXPECT_FALSE(reader.finished());
}

TEST(Reader, AStringLongerThanItsMessage) {
  const Bytes memory = bytes({3, 'h', 'i'});
  Reader reader(memory);
  EXPECT_EQ(reader.string(), "");
  EXPECT_FALSE(reader.ok());
}

TEST(Reader, AnEmptyStringAndAnEmptyMessage) {
  const Bytes memory = bytes({0});
  Reader reader(memory);
  EXPECT_EQ(reader.string(), "");
  EXPECT_TRUE(reader.finished());
  EXPECT_TRUE(Reader({}).finished());
}

TEST(Writer, WritesWhatTheReaderReads) {
  const auto message = Writer{}
                           .integer(std::uint16_t{0x0102})
                           .string("hi")
                           .raw("!")
                           .integer(std::uint8_t{255})
                           .take();
  EXPECT_EQ(message, bytes({1, 2, 2, 'h', 'i', '!', 255}));
}

TEST(Writer, StringsAreCutAt255Bytes) {
  for (const std::size_t size : {0U, 1U, 254U, 255U}) {
    const auto message = Writer{}.string(std::string(size, 'x')).take();
    ASSERT_EQ(message.size(), size + 1);
    EXPECT_EQ(std::to_integer<std::size_t>(message.front()), size);
  }
  const auto message = Writer{}.string(std::string(255, 'x') + "yyy").take();
  ASSERT_EQ(message.size(), 256U);
  EXPECT_EQ(message.front(), std::byte{255});
  EXPECT_EQ(message.back(), std::byte{'x'});
}

}  // namespace
}  // namespace offload::protocol
