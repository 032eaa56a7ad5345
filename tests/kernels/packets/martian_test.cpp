#include "kernels/packets/martian.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include "tests/kernels/packets/frame_maker.hpp"

/// Tests one function with the frames that test_martians.py compares with Linux's stack.
namespace offload::kernels::packets::test {
namespace {

using Frame = std::vector<std::uint8_t>;

Martian martian_in(const Frame& frame) {
  const Headers headers = parse_headers(frame.data(), static_cast<std::uint32_t>(frame.size()));
  EXPECT_EQ(headers.error, FrameError::none);
  return martian_of(frame.data(), headers, host_of_frames());
}

/// Corrects the checksum of an untagged IPv4 header.
void repair(Frame& frame) {
  store_16(frame.data() + 24, 0);
  const std::uint32_t header = (frame[14] & 15U) * 4;
  store_16(frame.data() + 24, checksum_of(add_bytes(0, frame.data() + 14, header)));
}

/// Judges a datagram with these addresses; an empty one is that of a valid datagram.
Martian martian_between(const std::string& source, const std::string& destination) {
  const bool is_v6 = (source + destination).find(':') != std::string::npos;
  Frame frame = FrameMaker::make({.is_v6 = is_v6, .payload = 8});
  const auto write = [&](const std::string& text, std::size_t at) {
    if (text.empty()) return;
    ASSERT_EQ(::inet_pton(is_v6 ? AF_INET6 : AF_INET, text.c_str(), frame.data() + at), 1) << text;
  };
  write(source, is_v6 ? 22 : 26);
  write(destination, is_v6 ? 38 : 30);
  if (!is_v6) repair(frame);
  return martian_in(frame);
}

TEST(Martians, AreNoneOfWhatAHostAnswers) {
  for (const char* const source :
       {"10.0.0.2", "10.0.0.0", "10.9.1.2", "192.0.2.1", "169.254.3.4", "240.0.0.1", "0.0.0.1",
        "126.255.255.255", "128.0.0.1", "223.255.255.255", "255.255.255.254", "fd00::2", "fe80::2",
        "2001:db8::1", "fec0::1", "::2", "::10.0.0.2", "fd00::ffff:a00:2"}) {
    EXPECT_EQ(martian_between(source, ""), Martian::none) << source;
  }
}

TEST(Martians, HaveTheSourceOfNoOtherHost) {
  for (const char* const source :
       {"0.0.0.0", "127.0.0.1", "127.255.255.255", "224.0.0.1", "239.255.255.250",
        "255.255.255.255", "10.0.0.255", "10.9.1.255", "10.0.0.1", "10.9.1.1", "::", "::1",
        "ff02::1", "ff05::1:3", "::ffff:10.0.0.2", "::ffff:127.0.0.1", "fd00::1", "fd0a::1"}) {
    EXPECT_EQ(martian_between(source, ""), Martian::source) << source;
  }
}

// Addresses that differ from one of the host's in a single word, or in more.
TEST(Martians, AreNotAlikeInPartsOfAnAddress) {
  for (const char* const source :
       {"fd00:0:1::1", "fd00::1:0:0:1", "fd00::1:0:1", "fd01::1", "fd00::3", "::1:0", "::2:0:1",
        "::fffe:a00:2", "::1:ffff:a00:2", "1::", "0:0:1::"}) {
    EXPECT_EQ(martian_between(source, ""), Martian::none) << source;
  }
}

TEST(Martians, AreToNoSingleHost) {
  for (const char* const destination :
       {"0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255", "10.0.0.255", "10.9.1.255",
        "::", "::1", "ff02::1", "::ffff:10.0.0.1"}) {
    EXPECT_EQ(martian_between("", destination), Martian::destination) << destination;
  }
  // Rules decide which of these datagrams arrive here.
  for (const char* const destination : {"10.0.0.1", "10.9.1.1", "10.0.0.77", "fd00::77"}) {
    EXPECT_EQ(martian_between("", destination), Martian::none) << destination;
  }
}

/// Judges a datagram with six bytes of its Ethernet addresses replaced.
Martian martian_with(std::size_t at, const Frame& ethernet) {
  Frame frame = FrameMaker::make({.payload = 8});
  std::copy(ethernet.begin(), ethernet.end(), frame.begin() + static_cast<std::ptrdiff_t>(at));
  return martian_in(frame);
}

TEST(Martians, AreOfOtherStations) {
  const Frame other{2, 0, 0, 0, 0, 0x99};
  const Frame own{0, 1, 2, 3, 4, 5};
  const Frame broadcast(6, 0xff);
  const Frame multicast{1, 0, 0x5e, 0, 0, 1};
  EXPECT_EQ(martian_with(0, own), Martian::none);
  EXPECT_EQ(martian_with(0, broadcast), Martian::none);
  EXPECT_EQ(martian_with(0, multicast), Martian::none);
  EXPECT_EQ(martian_with(0, other), Martian::ethernet);
  EXPECT_EQ(martian_with(6, other), Martian::none);
  for (const Frame& source : {own, broadcast, multicast}) {
    EXPECT_EQ(martian_with(6, source), Martian::ethernet);
  }
}

TEST(Martians, AreOfVlans) {
  for (const bool is_v6 : {false, true}) {
    for (const std::uint32_t tags : {1U, 2U}) {
      EXPECT_EQ(martian_in(FrameMaker::make({.tags = tags, .is_v6 = is_v6})), Martian::none);
      EXPECT_EQ(martian_in(FrameMaker::make({.tags = tags, .is_v6 = is_v6, .vlan = 7})),
                Martian::vlan);
    }
  }
}

TEST(Martians, ComeFromPort0) {
  for (const bool is_v6 : {false, true}) {
    Frame frame = FrameMaker::make({.is_v6 = is_v6, .payload = 8});
    store_16(frame.data() + 14 + (is_v6 ? 40 : 20), 0);
    EXPECT_EQ(martian_in(frame), Martian::source_port);
  }
  EXPECT_EQ(martian_in(FrameMaker::make({.protocol = kIcmp})), Martian::none);
}

/// Judges a datagram whose options, 12 bytes, begin with these; the others are no operation.
Martian martian_with_options(const Frame& options) {
  Frame frame = FrameMaker::make({.payload = 8, .options = 3});
  std::copy(options.begin(), options.end(), frame.begin() + 34);
  repair(frame);
  return martian_in(frame);
}

TEST(Martians, HaveSourceRoutes) {
  EXPECT_EQ(martian_with_options({}), Martian::none);
  EXPECT_EQ(martian_with_options({7, 11, 4}), Martian::none);   // record route
  EXPECT_EQ(martian_with_options({1, 0, 131}), Martian::none);  // behind the end
  EXPECT_EQ(martian_with_options({7, 3, 4, 131, 7, 4, 10, 0, 0, 9}), Martian::destination);
  EXPECT_EQ(martian_with_options({137, 7, 4, 10, 0, 0, 9}), Martian::destination);
  EXPECT_EQ(martian_with_options({1, 131, 11, 12}), Martian::destination);  // used up
  for (const unsigned length : {0U, 1U, 13U, 255U}) {
    EXPECT_EQ(martian_with_options({7, static_cast<std::uint8_t>(length)}), Martian::destination)
        << length;
  }
  EXPECT_EQ(martian_with_options({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 7}), Martian::destination);
  EXPECT_EQ(martian_with_options({7, 2}), Martian::none);
  EXPECT_EQ(martian_with_options({7, 12}), Martian::none);  // all of them
  EXPECT_EQ(martian_with_options({7, 10, 0, 0, 0, 0, 0, 0, 0, 0, 7, 2}), Martian::none);
  EXPECT_EQ(martian_with_options({7, 10, 0, 0, 0, 0, 0, 0, 0, 0, 7, 3}), Martian::destination);
}

TEST(Martians, HaveARouteOfIpv6) {
  Frame frame = FrameMaker::make({.is_v6 = true, .payload = 8, .extensions = 1});
  ASSERT_EQ(frame[20], 60);  // destination options, which a routing header replaces
  frame[20] = 43;
  frame[54 + 3] = 0;
  EXPECT_EQ(martian_in(frame), Martian::none);
  frame[54 + 3] = 1;  // segments left
  EXPECT_EQ(martian_in(frame), Martian::destination);
}

TEST(Martians, HaveARouteOfIpv6BesideOneThatIsUsedUp) {
  for (const std::size_t routes : {54U, 70U}) {
    Frame frame = FrameMaker::make({.is_v6 = true, .payload = 8, .extensions = 2});
    frame[20] = frame[54] = 43;
    EXPECT_EQ(martian_in(frame), Martian::none);
    frame[routes + 3] = 1;
    EXPECT_EQ(martian_in(frame), Martian::destination) << routes;
  }
}

TEST(Echoes, MayLoop) {
  const auto may = [](std::uint32_t source_port, std::uint32_t hops, bool is_v6) {
    Frame frame = FrameMaker::make({.is_v6 = is_v6, .payload = 8});
    Headers headers = parse_headers(frame.data(), static_cast<std::uint32_t>(frame.size()));
    frame[headers.hops()] = static_cast<std::uint8_t>(hops);
    headers.source_port = source_port;
    headers.destination_port = 4000;
    return may_loop(frame.data(), headers);
  };
  for (const bool is_v6 : {false, true}) {
    EXPECT_FALSE(may(5000, 64, is_v6));
    EXPECT_FALSE(may(1024, 2, is_v6));
    EXPECT_TRUE(may(4000, 64, is_v6));
    for (const std::uint32_t port : {7U, 19U, 53U, 1023U}) EXPECT_TRUE(may(port, 64, is_v6));
    EXPECT_TRUE(may(5000, 1, is_v6));
    EXPECT_TRUE(may(5000, 0, is_v6));
  }
}

}  // namespace
}  // namespace offload::kernels::packets::test
