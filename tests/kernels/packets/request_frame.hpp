#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/packets/datagram.hpp"
#include "tests/kernels/packets/frame_maker.hpp"

/// Requests in datagrams, and checks of their answers.
namespace offload::kernels::packets::test {

using Bytes = std::vector<std::uint8_t>;

inline void store_word(std::uint8_t* to, std::uint32_t value) {
  store_16(to, value >> 16);
  store_16(to + 2, value & 0xffff);
}

/// Returns a frame with a request of `length` bytes, byte i of which is i + `sequence`.
inline Bytes request_frame(std::uint32_t length, std::uint32_t sequence, FrameKind kind = {}) {
  kind.payload = kDatagramHeader + length;
  Bytes frame = FrameMaker::make(kind);
  const Headers headers = parse_headers(frame.data(), static_cast<std::uint32_t>(frame.size()));
  std::uint8_t* const at = frame.data() + headers.payload;
  std::fill_n(at, kDatagramSequence, std::uint8_t{0});
  store_word(at + 4, sequence);
  store_word(at + 8, kFrameHeader + length);
  store_word(at + 12, kRequestId);
  store_word(at + 16, length);
  for (std::uint32_t i = 0; i < length; ++i) {
    at[kDatagramHeader + i] = static_cast<std::uint8_t>(i + sequence);
  }
  write_udp_checksum(frame.data(), headers);
  return frame;
}

/// Checks each field of the reverse service's answer to request_frame(length, sequence, kind).
inline void expect_reversed(const Bytes& answer, const Bytes& request, std::uint32_t length,
                            std::uint32_t sequence) {
  const auto size = static_cast<std::uint32_t>(answer.size());
  const Headers headers = parse_frame(answer.data(), size);  // all checksums and lengths
  ASSERT_EQ(headers.error, FrameError::none);
  ASSERT_TRUE(headers.is_whole(kUdp));
  const Headers asked = parse_frame(request.data(), static_cast<std::uint32_t>(request.size()));
  EXPECT_EQ(headers.source_port, asked.destination_port);
  EXPECT_EQ(headers.destination_port, asked.source_port);
  EXPECT_EQ(headers.payload, asked.payload);  // tags, options, extensions are unchanged
  EXPECT_EQ(headers.end, size);
  EXPECT_TRUE(std::equal(answer.begin(), answer.begin() + 6, request.begin() + 6));
  EXPECT_TRUE(std::equal(answer.begin() + 6, answer.begin() + 12, request.begin()));
  ASSERT_EQ(headers.payload_length(), kDatagramHeader + length);
  const std::uint8_t* const at = answer.data() + headers.payload;
  EXPECT_EQ(load_32(at), 0U);
  EXPECT_EQ(load_32(at + 4), sequence);
  EXPECT_EQ(load_32(at + 8), kFrameHeader + length);
  EXPECT_EQ(load_32(at + 12), 5U);
  EXPECT_EQ(load_32(at + 16), length);
  for (std::uint32_t i = 0; i < length; ++i) {
    ASSERT_EQ(at[kDatagramHeader + i], static_cast<std::uint8_t>(length - 1 - i + sequence)) << i;
  }
}

}  // namespace offload::kernels::packets::test
