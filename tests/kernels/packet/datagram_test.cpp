#include "kernels/packet/datagram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "kernels/packet/datagram_worker.hpp"
#include "kernels/services.hpp"
#include "tests/kernels/bodies/host_warp.hpp"
#include "tests/kernels/packet/frame_maker.hpp"
#include "tests/kernels/packet/wire.hpp"

namespace offload::kernels::packet::test {
namespace {

constexpr std::uint32_t kMtu = 1500;

void store_word(std::uint8_t* to, std::uint32_t value) {
  store_16(to, value >> 16);
  store_16(to + 2, value & 0xffff);
}

/// A frame with a request of `length` bytes, byte i of which is i + `sequence`.
Bytes request_frame(std::uint32_t length, std::uint32_t sequence, FrameKind kind = {}) {
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

struct Answered {
  DatagramAnswer answer;
  Bytes frame;
};

template <class Service = Reverse>
Answered answer_of(const Bytes& request, std::uint32_t room = 2000, std::uint32_t mtu = kMtu) {
  Bytes in = request;
  in.resize(in.size() + kSlack, 0xaa);
  Bytes out(room + kSlack, 0xbb);
  const auto answer =
      answer_datagram(SingleLane{}, Service{}, in.data(),
                      static_cast<std::uint32_t>(request.size()), out.data(), room, mtu);
  EXPECT_LE(answer.length, room);
  out.resize(answer.length);
  return {answer, out};
}

/// Looks at each field of what answers request_frame(length, sequence, kind) in reverse order.
void expect_reversed(const Bytes& answer, const Bytes& request, std::uint32_t length,
                     std::uint32_t sequence) {
  const auto size = static_cast<std::uint32_t>(answer.size());
  const Headers headers = parse_frame(answer.data(), size);  // all checksums and lengths
  ASSERT_EQ(headers.error, FrameError::none);
  ASSERT_TRUE(headers.is_whole(kUdp));
  const Headers asked = parse_frame(request.data(), static_cast<std::uint32_t>(request.size()));
  EXPECT_EQ(headers.source_port, asked.destination_port);
  EXPECT_EQ(headers.destination_port, asked.source_port);
  EXPECT_EQ(headers.payload, asked.payload);  // tags, options, extensions are as they were
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

TEST(Datagram, IsAnsweredWhateverItsHeaders) {
  const FrameKind kinds[] = {
      {},
      {.tags = 1},
      {.tags = 2, .options = 3},
      {.is_v6 = true},
      {.tags = 1, .is_v6 = true, .extensions = 2},
      {.padding = 9},
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

/// Serves a wire until so many datagrams were looked at.
struct ServeUntil {
  DatagramWork work;
  std::uint64_t count;
  DatagramStaging* staging;
  std::atomic<std::uint32_t>* failed;

  template <class Group>
  void operator()(const Group& group) const {
    DatagramState state;
    const Reverse service;
    DatagramWorker<Group, Reverse> worker(group, service, work, state, *staging);
    while (state.counted.datagrams < count) {
      bool had_work = false;
      if (!worker.turn(had_work)) ++*failed;
      if (!had_work || *failed != 0) return;
    }
  }
};

template <class Run>
void serve(std::uint32_t count, const Run& run) {
  Wire wire(64);
  std::vector<Bytes> requests;
  for (std::uint32_t i = 0; i < count; ++i) {
    requests.push_back(request_frame(i * 37 % 1400, i, {.is_v6 = i % 3 == 0}));
    wire.add(requests.back());
    if (i % 5 == 0) wire.add(Bytes(1 + i % 60, 1));  // noise
  }
  const std::uint32_t noise = (count + 4) / 5;
  const std::uint32_t stop = 0;
  DatagramCounts counts{};
  DatagramStaging staging{};
  std::atomic<std::uint32_t> failed{0};
  const DatagramWork work{&wire.queue(), &stop, &counts, 20'000'000'000, 16, kMtu};
  wire.start();
  run(ServeUntil{work, count + noise, &staging, &failed});
  wire.stop();
  EXPECT_EQ(failed, 0U);
  EXPECT_EQ(counts.datagrams, count + noise);
  EXPECT_EQ(counts.answered, count);
  EXPECT_EQ(counts.malformed, noise);
  for (std::uint32_t home = 1; home != 0;) {
    home = recycle(SingleLane{}, wire.queue().frames, wire.queue().completions, {1'000'000});
  }
  EXPECT_EQ(wire.frames_at_home(), 128U);
  ASSERT_EQ(wire.sent().size(), count);
  for (std::uint32_t i = 0; i < count; ++i) {
    expect_reversed(wire.sent()[i], requests[i], i * 37 % 1400, i);
  }
}

TEST(DatagramWorker, IsAThread) {
  serve(2000, [](const ServeUntil& body) { body(SingleLane{}); });
}

TEST(DatagramWorker, IsSeveralLanes) {
  serve(200, [](const ServeUntil& body) {
    kernels::test::HostLanes shared(8);
    std::vector<std::jthread> threads;
    for (std::uint32_t lane = 0; lane < 8; ++lane) {
      threads.emplace_back([&, lane] { body(kernels::test::HostWarp(shared, lane)); });
    }
  });
}

}  // namespace
}  // namespace offload::kernels::packet::test
