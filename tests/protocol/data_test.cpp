#include "protocol/data.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/bytes.hpp"

namespace offload::protocol {
namespace {

using support::Bytes;
using support::bytes;

TEST(DataHeader, ByteForByte) {
  Bytes stored(kDataHeaderSize);
  DataHeader{0x0102'0304'0506'0708, 0x090a'0b0c, 0x0d0e, 0x0f10}.store(stored.data());
  EXPECT_EQ(stored, bytes({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}));
}

TEST(DataHeader, ComesBackAsItWasAtAnyAlignment) {
  constexpr DataHeader kHeaders[] = {
      {0, 0, 0, 0},
      {1, 2, 3, 4},
      {std::numeric_limits<std::uint64_t>::max(), std::numeric_limits<std::uint32_t>::max(),
       std::numeric_limits<std::uint16_t>::max(), std::numeric_limits<std::uint16_t>::max()},
  };
  for (const DataHeader& header : kHeaders) {
    for (std::size_t offset = 0; offset < 8; ++offset) {
      Bytes room(kDataHeaderSize + 8, std::byte{0xee});
      header.store(room.data() + offset);
      const auto loaded = DataHeader::load(room.data() + offset);
      EXPECT_EQ(loaded.sequence, header.sequence);
      EXPECT_EQ(loaded.length, header.length);
      EXPECT_EQ(loaded.count, header.count);
      EXPECT_EQ(loaded.status, header.status);
      EXPECT_EQ(room[offset + kDataHeaderSize], std::byte{0xee});
    }
  }
}

}  // namespace
}  // namespace offload::protocol
