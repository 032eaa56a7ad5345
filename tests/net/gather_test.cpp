#include "net/gather.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/bytes.hpp"

namespace offload::net {
namespace {

using support::Bytes;
using support::bytes_of;
using support::copy_of;

constexpr std::size_t kFrameRoom = 400;

void put(Gather& gather, GatherChain& chain, std::string_view text) {
  std::memcpy(gather.room(), text.data(), text.size());
  gather.commit(chain, text.size());
}

/// What sendmsg would send.
Bytes output_of(Gather& gather, const GatherChain& chain) {
  Bytes output;
  for (const iovec& piece : gather.vectors(chain)) {
    const auto* const data = static_cast<const std::byte*>(piece.iov_base);
    output.insert(output.end(), data, data + piece.iov_len);
  }
  return output;
}

TEST(Gather, AnEmptyChainIsNoOutput) {
  Gather gather(4, kFrameRoom);
  const GatherChain chain;
  EXPECT_TRUE(chain.empty());
  EXPECT_TRUE(gather.vectors(chain).empty());
}

TEST(Gather, NeighboursOfOneConnectionAreOnePiece) {
  Gather gather(4, kFrameRoom);
  GatherChain chain;
  put(gather, chain, "one ");
  put(gather, chain, "two ");
  put(gather, chain, "three");
  EXPECT_FALSE(chain.empty());
  EXPECT_EQ(gather.vectors(chain).size(), 1U);
  EXPECT_EQ(output_of(gather, chain), copy_of(bytes_of("one two three")));
}

TEST(Gather, ConnectionsInTurnsKeepTheirOwnOrder) {
  Gather gather(16, kFrameRoom);
  GatherChain first;
  GatherChain second;
  for (const char* text : {"1", "2", "3"}) {
    put(gather, first, text);
    put(gather, second, std::string(text) + "'");
  }
  EXPECT_EQ(output_of(gather, first), copy_of(bytes_of("123")));
  EXPECT_EQ(output_of(gather, second), copy_of(bytes_of("1'2'3'")));
  EXPECT_EQ(gather.vectors(first).size(), 3U);
}

TEST(Gather, WhatLiesElsewhereIsReferredTo) {
  Gather gather(16, kFrameRoom);
  GatherChain chain;
  auto payload = copy_of(bytes_of("elsewhere"));
  put(gather, chain, "<");
  gather.refer(chain, payload);
  put(gather, chain, ">");
  const auto vectors = gather.vectors(chain);
  ASSERT_EQ(vectors.size(), 3U);
  EXPECT_EQ(vectors[1].iov_base, payload.data());
  EXPECT_EQ(output_of(gather, chain), copy_of(bytes_of("<elsewhere>")));
}

// As many frames as were asked for always fit, however long they are.
TEST(Gather, IsFullAfterItsNumberOfFrames) {
  constexpr std::size_t kFrames = 5;
  Gather gather(kFrames, kFrameRoom);
  GatherChain chain;
  for (std::size_t i = 0; i < kFrames; ++i) {
    ASSERT_FALSE(gather.full()) << i;
    std::memset(gather.room(), static_cast<int>(i), kFrameRoom);
    gather.commit(chain, kFrameRoom);
  }
  EXPECT_TRUE(gather.full());
  const auto output = output_of(gather, chain);
  ASSERT_EQ(output.size(), kFrames * kFrameRoom);
  EXPECT_EQ(output.back(), std::byte{kFrames - 1});
}

TEST(Gather, StartsAnewAfterAReset) {
  Gather gather(2, kFrameRoom);
  GatherChain chain;
  const auto* const start = gather.room();
  gather.commit(chain, kFrameRoom);
  gather.commit(chain, kFrameRoom);
  ASSERT_TRUE(gather.full());
  gather.reset();
  EXPECT_FALSE(gather.full());
  EXPECT_EQ(gather.room(), start);
  GatherChain next;
  put(gather, next, "next");
  EXPECT_EQ(output_of(gather, next), copy_of(bytes_of("next")));
}

}  // namespace
}  // namespace offload::net
