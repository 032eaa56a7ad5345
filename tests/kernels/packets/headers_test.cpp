#include "kernels/packets/headers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "kernels/packets/answers.hpp"
#include "kernels/packets/martian.hpp"
#include "tests/kernels/packets/frame_maker.hpp"

namespace offload::kernels::packets::test {
namespace {

using Frame = std::vector<std::uint8_t>;

Headers parse(const Frame& frame) {
  // A buffer of exactly this size, so that a checker sees each read beyond it.
  const Frame exact(frame.begin(), frame.end());
  return parse_frame(exact.data(), static_cast<std::uint32_t>(exact.size()));
}

/// Returns all kinds of valid frames.
std::vector<FrameKind> all_kinds() {
  std::vector<FrameKind> kinds;
  for (const std::uint32_t tags : {0U, 1U, 2U}) {
    for (const bool is_v6 : {false, true}) {
      for (const std::uint32_t protocol : {kUdp, kTcp, is_v6 ? kIcmpv6 : kIcmp}) {
        for (const std::uint32_t payload : {0U, 1U, 18U, 1400U}) {
          kinds.push_back({tags, is_v6, protocol, payload});
          kinds.push_back({tags, is_v6, protocol, payload, is_v6 ? 3U : 0U, is_v6 ? 0U : 2U, 5});
          if (protocol != kUdp) continue;
          kinds.push_back({tags, is_v6, protocol, payload});
          kinds.back().surplus = 7;
        }
      }
    }
  }
  return kinds;
}

TEST(PacketHeaders, AreFound) {
  for (const FrameKind& kind : all_kinds()) {
    const Frame frame = FrameMaker::make(kind);
    const Headers headers = parse(frame);
    ASSERT_EQ(headers.error, FrameError::none);
    EXPECT_EQ(headers.ethertype, kind.is_v6 ? kIpv6 : kIpv4);
    EXPECT_EQ(headers.ip, 14 + 4 * kind.tags);
    EXPECT_EQ(headers.protocol, kind.protocol);
    EXPECT_EQ(headers.payload_length(), kind.payload);
    EXPECT_EQ(headers.end, frame.size() - kind.surplus - kind.padding);
    EXPECT_FALSE(headers.is_fragment);
    EXPECT_EQ(headers.tcp_flags, kind.protocol == kTcp ? 0x18U : 0U);
    const bool has_ports = kind.protocol == kTcp || kind.protocol == kUdp;
    EXPECT_EQ(headers.source_port, has_ports ? 1000U : 0U);
    EXPECT_EQ(headers.destination_port, has_ports ? 7U : 0U);
  }
}

TEST(PacketHeaders, OfFramesThatAreCutOffAreRefused) {
  for (const FrameKind& kind : all_kinds()) {
    if (kind.payload > 18) continue;
    const Frame frame = FrameMaker::make(kind);
    const std::size_t whole = frame.size() - kind.padding;
    for (std::size_t length = 0; length < whole; ++length) {
      const Frame cut(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(length));
      ASSERT_NE(parse(cut).error, FrameError::none) << length << " of " << whole;
    }
  }
}

TEST(PacketHeaders, AreCheckedBitByBit) {
  for (const bool is_v6 : {false, true}) {
    for (const std::uint32_t protocol : {kUdp, kTcp, is_v6 ? kIcmpv6 : kIcmp}) {
      const Frame right = FrameMaker::make({0, is_v6, protocol, 20});
      const std::size_t transport = 14U + (is_v6 ? 40U : 20U);
      for (std::size_t bit = transport * 8; bit < right.size() * 8; ++bit) {
        Frame wrong = right;
        wrong[bit / 8] = static_cast<std::uint8_t>(wrong[bit / 8] ^ (1U << bit % 8));
        ASSERT_NE(parse(wrong).error, FrameError::none) << bit;
      }
    }
  }
}

TEST(PacketHeaders, ChecksumsAreWrittenAsTheyWere) {
  for (const bool is_v6 : {false, true}) {
    for (const std::uint32_t protocol : {kUdp, kTcp}) {
      const Frame right = FrameMaker::make({0, is_v6, protocol, 21});
      Frame written = right;
      const std::size_t checksum = 14U + (is_v6 ? 40U : 20U) + (protocol == kTcp ? 16U : 6U);
      store_16(written.data() + checksum, 0x1234);
      const Headers headers =
          parse_headers(written.data(), static_cast<std::uint32_t>(written.size()));
      if (protocol == kTcp) {
        write_tcp_checksum(written.data(), headers);
      } else {
        write_udp_checksum(written.data(), headers);
      }
      EXPECT_EQ(written, right) << protocol;
    }
  }
}

/// Returns the error that is found if byte `at` of a frame becomes `value`.
FrameError error_with(const FrameKind& kind, std::size_t at, std::uint32_t value) {
  Frame frame = FrameMaker::make(kind);
  frame.at(at) = static_cast<std::uint8_t>(value);
  if (!kind.is_v6 && at >= 14 && at < 34) {
    store_16(frame.data() + 24, 0);
    const std::uint32_t header = (frame[14] & 15U) * 4;
    store_16(frame.data() + 24, checksum_of(add_bytes(0, frame.data() + 14, header)));
  }
  return parse(frame).error;
}

TEST(PacketHeaders, SayWhatIsWrong) {
  const FrameKind v4{.payload = 8};
  const FrameKind v6{.is_v6 = true, .payload = 8};
  const FrameKind tcp{.protocol = kTcp, .payload = 8};
  EXPECT_EQ(parse(Frame(13)).error, FrameError::short_ethernet);
  EXPECT_EQ(parse(FrameMaker::make({.tags = 3})).error, FrameError::too_many_tags);
  EXPECT_EQ(parse(FrameMaker::make({.is_v6 = true, .extensions = 9})).error,
            FrameError::ipv6_extensions);
  EXPECT_EQ(error_with(v4, 14, 0x65), FrameError::ip_version);
  EXPECT_EQ(error_with(v6, 14, 0x40), FrameError::ip_version);
  EXPECT_EQ(error_with(v4, 14, 0x44), FrameError::ip_header);
  EXPECT_EQ(error_with(v4, 17, 200), FrameError::ip_length);
  EXPECT_EQ(error_with(v4, 17, 19), FrameError::ip_length);
  EXPECT_EQ(error_with(v4, 17, 20), FrameError::short_transport);
  EXPECT_EQ(error_with(v4, 17, 27), FrameError::short_transport);
  EXPECT_EQ(error_with(v6, 19, 200), FrameError::ip_length);
  EXPECT_EQ(error_with(v4, 39, 7), FrameError::udp_length);
  EXPECT_EQ(error_with(v4, 39, 17), FrameError::udp_length);
  EXPECT_EQ(error_with(tcp, 46, 0x40), FrameError::tcp_header);
  EXPECT_EQ(error_with(tcp, 46, 0xf0), FrameError::tcp_header);
  Frame frame = FrameMaker::make(v4);
  frame[24] ^= 1;
  EXPECT_EQ(parse(frame).error, FrameError::ip_checksum);
}

// An options header of 16 bytes, then UDP of 16 bytes: byte 19 is the length of both.
TEST(PacketHeaders, HaveExtensionsWithinThePacket) {
  const FrameKind kind{.is_v6 = true, .payload = 8, .extensions = 1};
  EXPECT_EQ(error_with(kind, 55, 1), FrameError::none);
  EXPECT_EQ(error_with(kind, 55, 3), FrameError::short_transport);  // all of the packet
  EXPECT_EQ(error_with(kind, 55, 4), FrameError::ipv6_extensions);
  EXPECT_EQ(error_with(kind, 55, 255), FrameError::ipv6_extensions);
  EXPECT_EQ(error_with(kind, 19, 7), FrameError::ipv6_extensions);
  EXPECT_EQ(error_with(kind, 19, 15), FrameError::ipv6_extensions);
  EXPECT_EQ(error_with(kind, 19, 16), FrameError::short_transport);
  EXPECT_EQ(parse(FrameMaker::make({.is_v6 = true, .extensions = 8})).error, FrameError::none);
}

TEST(PacketHeaders, OfTheOtherIpsMessagesAreNotLookedInto) {
  for (const bool is_v6 : {false, true}) {
    Frame frame = FrameMaker::make({.is_v6 = is_v6, .payload = 8});
    frame[is_v6 ? 20 : 23] = static_cast<std::uint8_t>(is_v6 ? kIcmp : kIcmpv6);
    if (!is_v6) {
      store_16(frame.data() + 24, 0);
      store_16(frame.data() + 24, checksum_of(add_bytes(0, frame.data() + 14, 20)));
    }
    const Headers headers = parse(frame);
    EXPECT_EQ(headers.error, FrameError::none) << "it has another checksum";
    EXPECT_EQ(headers.payload, headers.transport);
    EXPECT_EQ(headers.source_port, 0U);
  }
}

TEST(PacketHeaders, OfOtherEthertypesHaveNoIp) {
  for (const std::uint32_t tags : {0U, 2U}) {
    Frame frame = FrameMaker::make({.tags = tags});
    store_16(frame.data() + 12 + 4 * tags, 0x0806);
    const Headers headers = parse(frame);
    EXPECT_EQ(headers.error, FrameError::none);
    EXPECT_EQ(headers.ethertype, 0x0806U);
    EXPECT_EQ(headers.ip, 0U);
    EXPECT_FALSE(headers.is_whole(0) && headers.end != 0);
  }
}

TEST(PacketHeaders, KnowFragments) {
  for (const std::uint32_t value : {0x20U, 0x01U}) {  // more fragments; an offset
    Frame frame = FrameMaker::make({.payload = 8});
    frame[20] = static_cast<std::uint8_t>(value);
    store_16(frame.data() + 24, 0);
    store_16(frame.data() + 24, checksum_of(add_bytes(0, frame.data() + 14, 20)));
    const Headers headers = parse(frame);
    EXPECT_EQ(headers.error, FrameError::none);
    EXPECT_TRUE(headers.is_fragment);
    EXPECT_FALSE(headers.is_whole(kUdp));
  }
  Frame frame = FrameMaker::make({.is_v6 = true, .payload = 8});
  frame[20] = 44;  // the bytes that otherwise are the UDP header
  const Headers headers = parse(frame);
  EXPECT_TRUE(headers.is_fragment);
  EXPECT_EQ(headers.error, FrameError::none);
  EXPECT_EQ(headers.transport, 54U + 8);
  EXPECT_EQ(headers.protocol, frame[54]);
  EXPECT_EQ(headers.source_port, 0U);
}

TEST(PacketHeaders, KnowWholePacketsThatMayNotBeFragmented) {
  for (const auto& [at, value, is_fragment] :
       {std::tuple{20U, 0x40U, false}, std::tuple{20U, 0x80U, false}, std::tuple{20U, 0x10U, true},
        std::tuple{21U, 0x01U, true}, std::tuple{21U, 0x80U, true}}) {
    Frame frame = FrameMaker::make({.payload = 8});
    frame[at] = static_cast<std::uint8_t>(value);
    store_16(frame.data() + 24, 0);
    store_16(frame.data() + 24, checksum_of(add_bytes(0, frame.data() + 14, 20)));
    EXPECT_EQ(parse(frame).is_fragment, is_fragment) << value;
  }
}

TEST(PacketHeaders, MayBeWithoutAChecksumOverIpv4Alone) {
  Frame frame = FrameMaker::make({.payload = 8});
  store_16(frame.data() + 40, 0);
  EXPECT_EQ(parse(frame).error, FrameError::none);
  frame = FrameMaker::make({.is_v6 = true, .payload = 8});
  store_16(frame.data() + 60, 0);
  EXPECT_EQ(parse(frame).error, FrameError::transport_checksum);
}

TEST(PacketHeaders, SayWhichVlan) {
  EXPECT_EQ(parse(FrameMaker::make({})).vlan, 0U);
  for (const std::uint32_t tags : {1U, 2U}) {
    EXPECT_EQ(parse(FrameMaker::make({.tags = tags})).vlan, 0U);
    EXPECT_EQ(parse(FrameMaker::make({.tags = tags, .vlan = 4094})).vlan, 4094U);
  }
  Frame frame = FrameMaker::make({.tags = 2, .vlan = 7});
  store_16(frame.data() + 14, 0);  // the outer tag
  EXPECT_EQ(parse(frame).vlan, 7U);
  store_16(frame.data() + 14, 9);  // of two the outer one says it
  EXPECT_EQ(parse(frame).vlan, 9U);
  store_16(frame.data() + 18, 0);
  EXPECT_EQ(parse(frame).vlan, 9U);
}

/// Two echoes answer each other, whatever their ports: each takes a hop, so they end.
TEST(PacketAnswers, OfTwoEchoesEnd) {
  for (const bool is_v6 : {false, true}) {
    Frame frame = FrameMaker::make({.is_v6 = is_v6, .payload = 8});
    const std::size_t udp = 14 + (is_v6 ? 40 : 20);
    store_16(frame.data() + udp, 4001);
    store_16(frame.data() + udp + 2, 4002);
    const auto size = static_cast<std::uint32_t>(frame.size());
    write_udp_checksum(frame.data(), parse_headers(frame.data(), size));
    int echoes = 0;
    for (; echoes < 1000 && !may_loop(frame.data(), parse(frame)); ++echoes) {
      ASSERT_TRUE(make_udp_echo(frame.data(), parse(frame), 0));
    }
    EXPECT_EQ(echoes, 63);
  }
}

TEST(PacketAnswers, AChecksumOfZeroIsSentAsItsOtherForm) {
  for (const bool is_v6 : {false, true}) {
    Frame frame = FrameMaker::make({.is_v6 = is_v6, .payload = 8});
    const Headers headers = parse(frame);
    const auto checksum_with = [&](std::uint32_t word) {
      store_16(frame.data() + headers.payload, word);
      write_udp_checksum(frame.data(), headers);
      return load_16(frame.data() + headers.transport + 6);
    };
    EXPECT_EQ(checksum_with(checksum_with(0)), 0xffffU) << is_v6;
  }
}

TEST(PacketAnswers, AreWhatWasAsked) {
  for (const FrameKind& kind : all_kinds()) {
    const Frame asked = FrameMaker::make(kind);
    Frame frame = asked;
    const Headers headers = parse(asked);
    const bool is_echo = make_udp_echo(frame.data(), headers, 7);
    const bool is_ping = !is_echo && make_ping_reply(frame.data(), headers);
    EXPECT_EQ(is_echo, kind.protocol == kUdp);
    EXPECT_EQ(is_ping, kind.protocol == kIcmp || kind.protocol == kIcmpv6);
    if (!is_echo && !is_ping) {
      EXPECT_EQ(frame, asked);
      continue;
    }
    const Headers answer = parse(frame);
    ASSERT_EQ(answer.error, FrameError::none);
    EXPECT_EQ(Frame(frame.begin(), frame.begin() + 6),
              Frame(asked.begin() + 6, asked.begin() + 12));
    EXPECT_EQ(answer.source_port, headers.destination_port);
    EXPECT_EQ(answer.destination_port, headers.source_port);
    Frame payload(asked.begin() + headers.payload, asked.begin() + headers.end);
    if (is_echo) std::reverse(payload.begin(), payload.end());
    EXPECT_EQ(Frame(frame.begin() + answer.payload, frame.begin() + answer.end), payload);
    // The answer goes back to the sender, but for two hops.
    Frame again = frame;
    if (is_echo) {
      ASSERT_TRUE(make_udp_echo(again.data(), answer, 0));
      Frame expected = asked;
      take_hop(expected.data(), headers);
      take_hop(expected.data(), headers);
      EXPECT_EQ(again, expected);
    } else {
      EXPECT_FALSE(make_ping_reply(again.data(), answer));
    }
  }
  Frame other = FrameMaker::make({.payload = 8});
  EXPECT_FALSE(make_udp_echo(other.data(), parse(other), 8));
}

}  // namespace
}  // namespace offload::kernels::packets::test
