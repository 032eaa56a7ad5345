#include "apps/client/load/request_log.hpp"

#include <gtest/gtest.h>

namespace offload::client {
namespace {

RequestRecord record_of(std::uint32_t connection) {
  RequestRecord record;
  record.connection = connection;
  return record;
}

TEST(RequestLogWriter, HandsAFullChunkOver) {
  RequestLog log;
  RequestLogWriter writer(&log);
  EXPECT_TRUE(writer.on());
  constexpr auto kFull = static_cast<std::uint32_t>(RequestLog::kChunkRecords);
  for (std::uint32_t i = 0; i + 1 < kFull; ++i) writer.add(record_of(i));
  EXPECT_TRUE(log.take().empty());
  writer.add(record_of(kFull - 1));
  auto chunks = log.take();
  ASSERT_EQ(chunks.size(), 1U);
  ASSERT_EQ(chunks[0].size(), kFull);
  for (std::uint32_t i = 0; i < kFull; ++i) ASSERT_EQ(chunks[0][i].connection, i);
  writer.flush();
  EXPECT_TRUE(log.take().empty()) << "nothing was added since";
  writer.add(record_of(77));
  writer.flush();
  chunks = log.take();
  ASSERT_EQ(chunks.size(), 1U);
  ASSERT_EQ(chunks[0].size(), 1U);
  EXPECT_EQ(chunks[0][0].connection, 77U);
  EXPECT_EQ(log.lost(), 0U);
}

TEST(RequestLogWriter, WithoutALogIsOff) {
  RequestLogWriter writer(nullptr);
  EXPECT_FALSE(writer.on());
  writer.flush();
}

TEST(RequestLog, ANewChunkHasRoomForItsRecords) {
  RequestLog log;
  EXPECT_GE(log.put(RequestLog::Chunk(1)).capacity(), RequestLog::kChunkRecords);
}

TEST(RequestLog, WhatFindsNoRoomIsCounted) {
  RequestLog log;
  for (std::size_t i = 0; i < RequestLog::kMostWaiting; ++i) {
    EXPECT_TRUE(log.put(RequestLog::Chunk(2)).empty());
  }
  EXPECT_EQ(log.lost(), 0U);
  EXPECT_TRUE(log.put(RequestLog::Chunk(3)).empty());
  EXPECT_TRUE(log.put(RequestLog::Chunk(4)).empty());
  EXPECT_EQ(log.lost(), 7U);
  auto chunks = log.take();
  EXPECT_EQ(chunks.size(), RequestLog::kMostWaiting);
  chunks[0].reserve(2 * RequestLog::kChunkRecords);
  const RequestRecord* const given_back = chunks[0].data();
  log.give_back(std::move(chunks[0]));
  auto again = log.put(RequestLog::Chunk(1));
  EXPECT_TRUE(again.empty());
  EXPECT_EQ(again.data(), given_back) << "its memory is used again";
  EXPECT_GE(again.capacity(), 2 * RequestLog::kChunkRecords);
  EXPECT_EQ(log.lost(), 7U);
}

}  // namespace
}  // namespace offload::client
