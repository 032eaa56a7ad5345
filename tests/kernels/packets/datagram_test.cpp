#include "kernels/packets/datagram.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/services.hpp"
#include "tests/kernels/packets/request_frame.hpp"

namespace offload::kernels::packets::test {
namespace {

constexpr std::uint32_t kMtu = 1500;

struct Answered {
  DatagramAnswer answer;
  Bytes frame;
};

template <class Service = Reverse>
Answered answer_of(const Bytes& request, std::uint32_t room = 2000, std::uint32_t mtu = kMtu) {
  Bytes in = request;
  in.resize(in.size() + kSlack, 0xaa);
  Bytes out(room + kSlack, 0xbb);
  const auto answer = answer_datagram(SingleLane{}, Service{}, in.data(),
                                      static_cast<std::uint32_t>(request.size()), out.data(), room,
                                      mtu, host_of_frames());
  EXPECT_LE(answer.length, room);
  out.resize(answer.length);
  return {answer, out};
}

TEST(Datagram, IsAnsweredWhateverItsHeaders) {
  const FrameKind kinds[] = {
      {},
      {.tags = 1},
      {.tags = 2, .options = 3},
      {.is_v6 = true},
      {.tags = 1, .is_v6 = true, .extensions = 2},
      {.padding = 9},
      {.surplus = 1},
      {.is_v6 = true, .padding = 9, .surplus = 8},
  };
  for (const FrameKind& kind : kinds) {
    for (const std::uint32_t length : {0U, 1U, 3U, 15U, 16U, 17U, 500U, 1399U}) {
      const Bytes request = request_frame(length, 7 + length, kind);
      const auto [answer, frame] = answer_of(request);
      ASSERT_EQ(answer.outcome, Datagram::answered);
      expect_reversed(frame, request, length, 7 + length);
    }
  }
}

TEST(Datagram, WithoutAChecksumIsAnsweredOverIpv4Alone) {
  for (const bool is_v6 : {false, true}) {
    Bytes request = request_frame(20, 1, {.is_v6 = is_v6});
    const auto size = static_cast<std::uint32_t>(request.size());
    store_16(request.data() + parse_headers(request.data(), size).transport + 6, 0);
    EXPECT_EQ(answer_of(request).answer.outcome, is_v6 ? Datagram::malformed : Datagram::answered);
  }
}

// 0 would say that there is no checksum: its other form in ones' complement is sent (RFC 768).
TEST(Datagram, AChecksumOfZeroIsSentAsItsOtherForm) {
  for (const bool is_v6 : {false, true}) {
    Bytes request = request_frame(2, 1, {.is_v6 = is_v6});
    const Headers headers =
        parse_headers(request.data(), static_cast<std::uint32_t>(request.size()));
    const auto checksum_with = [&](std::uint32_t word) {
      store_16(request.data() + headers.payload + kDatagramHeader, word);
      write_udp_checksum(request.data(), headers);
      const auto [answer, frame] = answer_of<Echo>(request);
      EXPECT_EQ(answer.outcome, Datagram::answered);
      return load_16(frame.data() + headers.transport + 6);
    };
    EXPECT_EQ(checksum_with(checksum_with(0)), 0xffffU) << is_v6;
  }
}

/// Answers with more than was asked.
struct Longer {
  static std::uint32_t response_length(std::uint32_t length) { return length + 100; }
  template <class Group, class Response>
  void operator()(const Group& group, const Request&, const Response& response) const {
    response.fill(group, [](std::uint32_t) { return Block{}; });
  }
};

TEST(Datagram, WhoseAnswerDoesNotFitIsRefused) {
  const auto header = static_cast<std::uint32_t>(request_frame(0, 1).size());
  const Bytes request = request_frame(40, 3);
  EXPECT_EQ(answer_of<Longer>(request, header + 140).answer.outcome, Datagram::answered);
  EXPECT_EQ(answer_of<Longer>(request, 2000, header + 140 - kEthernetBytes).answer.outcome,
            Datagram::answered);
  for (const auto& [answer, frame] :
       {answer_of<Longer>(request, header + 139),
        answer_of<Longer>(request, 2000, header + 139 - kEthernetBytes)}) {
    ASSERT_EQ(answer.outcome, Datagram::refused);
    const Headers headers = parse_frame(frame.data(), static_cast<std::uint32_t>(frame.size()));
    ASSERT_EQ(headers.error, FrameError::none);
    const std::uint8_t* const at = frame.data() + headers.payload;
    EXPECT_EQ(load_32(at + 4), 3U);
    EXPECT_EQ(load_32(at + 12), 6U);
    EXPECT_EQ(load_32(at + 16), 4U);
    EXPECT_EQ(load_32(at + 20), kWorkerFailed);
  }
}

TEST(Datagram, OfAMartianIsNotAnswered) {
  const Bytes request = request_frame(20, 1, {.tags = 1, .vlan = 7});
  const auto [answer, frame] = answer_of(request);
  EXPECT_EQ(answer.outcome, Datagram::martian);
  EXPECT_EQ(answer.martian, Martian::vlan);
  EXPECT_EQ(answer.length, 0U);
}

TEST(Datagram, ToAnEthernetBroadcastIsAnsweredFromTheHostsOwnAddress) {
  Bytes request = request_frame(20, 1);
  std::fill_n(request.begin(), 6, std::uint8_t{0xff});
  const auto [answer, frame] = answer_of(request);
  ASSERT_EQ(answer.outcome, Datagram::answered);
  EXPECT_TRUE(std::equal(frame.begin(), frame.begin() + 6, request.begin() + 6));
  const HostAddresses host = host_of_frames();
  EXPECT_TRUE(std::equal(std::begin(host.ethernet), std::end(host.ethernet), frame.begin() + 6));
}

TEST(Datagram, MalformedOnesAreTold) {
  const Bytes right = request_frame(30, 1);
  const Headers headers = parse_headers(right.data(), static_cast<std::uint32_t>(right.size()));
  const auto changed = [&](std::uint32_t offset, std::uint32_t value) {
    Bytes frame = right;
    store_word(frame.data() + headers.payload + offset, value);
    write_udp_checksum(frame.data(), headers);
    return answer_of(frame).answer;
  };
  for (const std::uint32_t wire_size : {0U, 11U, 41U, 43U, 0xffff'ffffU}) {
    EXPECT_EQ(changed(8, wire_size).outcome, Datagram::malformed) << wire_size;
    EXPECT_EQ(changed(8, wire_size).error, FrameError::none);
  }
  for (const std::uint32_t kind : {0U, 5U, 6U, 0x0400'0000U}) {
    EXPECT_EQ(changed(12, kind).outcome, Datagram::malformed) << kind;
  }
  for (const std::uint32_t length : {0U, 29U, 31U, 0xffff'fff4U}) {
    EXPECT_EQ(changed(16, length).outcome, Datagram::malformed) << length;
  }
  EXPECT_EQ(changed(16, 30).outcome, Datagram::answered);
  for (std::size_t at = headers.ip; at < right.size(); ++at) {  // a bit anywhere
    Bytes frame = right;
    frame[at] ^= 0x10;
    EXPECT_NE(answer_of(frame).answer.error, FrameError::none) << at;
  }
  for (std::uint32_t length = 0; length < right.size(); ++length) {
    EXPECT_EQ(answer_of({right.begin(), right.begin() + length}).answer.outcome,
              Datagram::malformed);
  }
  EXPECT_EQ(answer_of(FrameMaker::make({.protocol = kTcp, .payload = 60})).answer.outcome,
            Datagram::malformed);
  EXPECT_EQ(answer_of(FrameMaker::make({.payload = 19})).answer.outcome, Datagram::malformed);
}

}  // namespace
}  // namespace offload::kernels::packets::test
