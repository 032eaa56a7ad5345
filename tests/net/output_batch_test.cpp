#include "net/output_batch.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <span>

#include "tests/support/bytes.hpp"

namespace offload::net {
namespace {

using support::Bytes;
using support::bytes_of;
using support::copy_of;

constexpr std::size_t kFrameRoom = 400;

void put(OutputBatch& batch, IovecChain& chain, std::string_view text) {
  std::memcpy(batch.room(), text.data(), text.size());
  batch.commit(chain, text.size());
}

/// Returns the bytes that sendmsg would send.
Bytes output_of(OutputBatch& batch, const IovecChain& chain) {
  Bytes output;
  for (const iovec& piece : batch.vectors(chain)) {
    const auto* const data = static_cast<const std::byte*>(piece.iov_base);
    output.insert(output.end(), data, data + piece.iov_len);
  }
  return output;
}

TEST(OutputBatch, AnEmptyChainIsNoOutput) {
  OutputBatch batch(4, kFrameRoom);
  const IovecChain chain;
  EXPECT_TRUE(chain.empty());
  EXPECT_TRUE(batch.vectors(chain).empty());
}

TEST(OutputBatch, NeighboursOfOneConnectionAreOnePiece) {
  OutputBatch batch(4, kFrameRoom);
  IovecChain chain;
  put(batch, chain, "one ");
  put(batch, chain, "two ");
  put(batch, chain, "three");
  EXPECT_FALSE(chain.empty());
  EXPECT_EQ(batch.vectors(chain).size(), 1U);
  EXPECT_EQ(output_of(batch, chain), copy_of(bytes_of("one two three")));
}

TEST(OutputBatch, ConnectionsThatAlternateKeepTheirOwnOrder) {
  OutputBatch batch(16, kFrameRoom);
  IovecChain first;
  IovecChain second;
  for (const char* text : {"1", "2", "3"}) {
    put(batch, first, text);
    put(batch, second, std::string(text) + "'");
  }
  EXPECT_EQ(output_of(batch, first), copy_of(bytes_of("123")));
  EXPECT_EQ(output_of(batch, second), copy_of(bytes_of("1'2'3'")));
  EXPECT_EQ(batch.vectors(first).size(), 3U);
}

TEST(OutputBatch, WhatLiesElsewhereIsReferredTo) {
  OutputBatch batch(16, kFrameRoom);
  IovecChain chain;
  auto payload = copy_of(bytes_of("elsewhere"));
  put(batch, chain, "<");
  batch.refer(chain, payload);
  put(batch, chain, ">");
  const auto vectors = batch.vectors(chain);
  ASSERT_EQ(vectors.size(), 3U);
  EXPECT_EQ(vectors[1].iov_base, payload.data());
  EXPECT_EQ(output_of(batch, chain), copy_of(bytes_of("<elsewhere>")));
}

// The requested number of frames always fits, however long they are.
TEST(OutputBatch, IsFullAfterItsNumberOfFrames) {
  constexpr std::size_t kFrames = 5;
  OutputBatch batch(kFrames, kFrameRoom);
  IovecChain chain;
  for (std::size_t i = 0; i < kFrames; ++i) {
    ASSERT_FALSE(batch.full()) << i;
    std::memset(batch.room(), static_cast<int>(i), kFrameRoom);
    batch.commit(chain, kFrameRoom);
  }
  EXPECT_TRUE(batch.full());
  const auto output = output_of(batch, chain);
  ASSERT_EQ(output.size(), kFrames * kFrameRoom);
  EXPECT_EQ(output.back(), std::byte{kFrames - 1});
}

TEST(OutputBatch, StartsAnewAfterAReset) {
  OutputBatch batch(2, kFrameRoom);
  IovecChain chain;
  const auto* const start = batch.room();
  batch.commit(chain, kFrameRoom);
  batch.commit(chain, kFrameRoom);
  ASSERT_TRUE(batch.full());
  batch.reset();
  EXPECT_FALSE(batch.full());
  EXPECT_EQ(batch.room(), start);
  IovecChain next;
  put(batch, next, "next");
  EXPECT_EQ(output_of(batch, next), copy_of(bytes_of("next")));
}

TEST(OutputBatch, HasAllItsPiecesAfterAReset) {
  OutputBatch batch(2, kFrameRoom);  // of four pieces
  std::array<std::byte, 8> elsewhere{};
  for (int round = 0; round < 3; ++round) {
    IovecChain chain;
    for (std::size_t i = 0; i < 3; ++i) {
      ASSERT_FALSE(batch.full()) << round << ' ' << i;
      batch.refer(chain, std::span(elsewhere).subspan(2 * i, 1));
    }
    EXPECT_TRUE(batch.full());
    batch.reset();
  }
}

TEST(OutputBatch, SumsItsPieces) {
  EXPECT_EQ(OutputBatch::size_of({}), 0U);
  const std::array<iovec, 3> pieces{iovec{nullptr, 5}, iovec{nullptr, 0}, iovec{nullptr, 300}};
  EXPECT_EQ(OutputBatch::size_of(pieces), 305U);
}

TEST(OutputBatch, IsFullWithRoomForOnePieceOfTwo) {
  OutputBatch batch(2, kFrameRoom);  // of four pieces
  std::array<std::byte, 6> elsewhere{};
  IovecChain chain;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_FALSE(batch.full()) << i;
    batch.refer(chain, std::span(elsewhere).subspan(2 * i, 1));
  }
  EXPECT_EQ(batch.vectors(chain).size(), 3U);
  EXPECT_TRUE(batch.full());
}

}  // namespace
}  // namespace offload::net
