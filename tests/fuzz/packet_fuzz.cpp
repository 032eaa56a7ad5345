#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

#include "kernels/packets/answers.hpp"
#include "kernels/packets/datagram.hpp"
#include "kernels/packets/martian.hpp"
#include "kernels/services/reverse.hpp"
#include "tests/fuzz/input.hpp"

/// Untrusted frames: the parser reads only inside the frame, and its results are consistent. The
/// same holds for requests in datagrams, and their answers.
namespace offload::fuzz {
namespace {

using namespace kernels::packets;

/// Corrects the checksums at the places where an untagged frame has them: otherwise hardly any
/// input would get past them.
void repair(std::vector<std::uint8_t>& frame) {
  if (frame.size() < 34 || load_16(frame.data() + 12) != kIpv4) return;
  const std::uint32_t header = (frame[14] & 15U) * 4;
  if (header < 20 || frame.size() < 14 + header) return;
  store_16(frame.data() + 24, 0);
  store_16(frame.data() + 24, checksum_of(add_bytes(0, frame.data() + 14, header)));
  const auto length = static_cast<std::uint32_t>(frame.size());
  const Headers headers = parse_headers(frame.data(), length);
  if (headers.is_whole(kUdp)) write_udp_checksum(frame.data(), headers);
  if (headers.is_whole(kIcmp)) {
    std::uint8_t* const icmp = frame.data() + headers.transport;
    store_16(icmp + 2, 0);
    store_16(icmp + 2, checksum_of(add_bytes(0, icmp, headers.end - headers.transport)));
  }
}

/// Turns a datagram's payload, if there is room for one, into a whole request.
void make_request(std::vector<std::uint8_t>& frame) {
  const Headers headers = parse_headers(frame.data(), static_cast<std::uint32_t>(frame.size()));
  if (!headers.is_whole(kUdp) || headers.payload_length() < kDatagramHeader) return;
  std::uint8_t* const request = frame.data() + headers.payload + kDatagramSequence;
  const std::uint32_t size = headers.payload_length() - kDatagramSequence;
  const std::uint32_t numbers[] = {size, kRequestId, size - kernels::kFrameHeader};
  for (std::uint32_t i = 0; i < sizeof numbers; ++i) {
    request[i] = static_cast<std::uint8_t>(numbers[i / 4] >> (24 - 8 * (i % 4)));
  }
}

/// Returns a host that has the frame's Ethernet address.
HostAddresses host_of(const std::vector<std::uint8_t>& frame) {
  HostAddresses host{};
  if (frame.size() >= 6) std::copy_n(frame.begin(), 6, host.ethernet);
  host.v4_count = host.v6_count = host.broadcast_count = 1;
  return host;
}

/// Answers `frame` as a request to a worker that has `room` bytes for its answer.
void answer(const std::vector<std::uint8_t>& frame, std::uint32_t room, std::uint32_t mtu) {
  const auto length = static_cast<std::uint32_t>(frame.size());
  // Both buffers have exactly the sizes that are passed.
  std::vector<std::uint8_t> in(frame);
  in.resize(frame.size() + kernels::kSlack);
  std::vector<std::uint8_t> out(room + kernels::kSlack);
  const DatagramAnswer made = answer_datagram(kernels::SingleLane{}, kernels::Reverse{}, in.data(),
                                              length, out.data(), room, mtu, host_of(frame));
  require((made.length != 0) ==
              (made.outcome == Datagram::answered || made.outcome == Datagram::refused),
          "what is answered has an answer");
  if (made.length == 0) return;
  require(made.length <= room, "an answer has room");
  const Headers asked = parse_frame(frame.data(), length);
  const Headers answered = parse_frame(out.data(), made.length);
  require(asked.error == FrameError::none && answered.is_whole(kUdp) &&
              answered.end == made.length && answered.payload == asked.payload &&
              answered.end - answered.ip <= mtu,
          "an answer is a right frame");
  require(answered.source_port == asked.destination_port &&
              answered.destination_port == asked.source_port,
          "an answer goes to who asked");
  const auto* const request = frame.data() + asked.payload;
  const auto* const response = out.data() + answered.payload;
  require(std::equal(request, request + kDatagramSequence, response), "it has the same sequence");
  require(load_32(response + kDatagramSequence) == answered.payload_length() - kDatagramSequence,
          "it has one whole frame");
  if (made.outcome == Datagram::refused) return;
  require(std::equal(request + kDatagramHeader, frame.data() + asked.end,
                     std::make_reverse_iterator(out.data() + answered.end)),
          "it is the service's");
}

void run(Input input) {
  const auto mode = input.integer<std::uint8_t>();
  const bool is_repaired = mode % 2 == 1;
  const auto bytes = input.rest();
  // A buffer of exactly this size, so that a checker sees each read beyond it.
  std::vector<std::uint8_t> frame(bytes.size());
  if (!bytes.empty()) std::memcpy(frame.data(), bytes.data(), bytes.size());
  if ((mode & 4) != 0) make_request(frame);
  if (is_repaired) repair(frame);
  if ((mode & 2) != 0) {
    // The rooms range from less than a header to more than the request.
    const std::uint32_t of_rooms = mode >> 3;
    answer(frame, 64 * of_rooms, mode % 3 == 0 ? 100 : 1500);
    return;
  }
  const auto length = static_cast<std::uint32_t>(frame.size());
  const Headers headers = parse_frame(frame.data(), length);
  require(static_cast<std::uint32_t>(headers.error) < kFrameErrors, "an error has a name");
  if (headers.error != FrameError::none) return;
  require(headers.end <= length && headers.payload <= headers.end &&
              headers.transport <= headers.payload && headers.ip <= headers.transport,
          "what was found lies in the frame, in its order");

  if (headers.ip != 0) {
    require(
        static_cast<std::uint32_t>(martian_of(frame.data(), headers, host_of(frame))) < kMartians,
        "a martian has a name");
  }
  const std::vector<std::uint8_t> before = frame;
  const bool is_echo = make_udp_echo(frame.data(), headers, 0);
  const bool is_reply = !is_echo && make_ping_reply(frame.data(), headers);
  if (!is_echo && !is_reply) {
    require(frame == before, "what is not answered is not changed");
    return;
  }
  const Headers answer = parse_frame(frame.data(), length);
  require(answer.error == FrameError::none && answer.end == headers.end &&
              answer.payload == headers.payload,
          "an answer is right, and as long");
  if (is_reply) return;
  require(make_udp_echo(frame.data(), answer, 0), "an echo has an echo");
  // The frame may have no checksum, or 0 may have been sent in its other form, 0xffff.
  store_16(frame.data() + headers.transport + 6, 0);
  std::vector<std::uint8_t> expected = before;
  take_hop(expected.data(), headers);
  take_hop(expected.data(), headers);
  store_16(expected.data() + headers.transport + 6, 0);
  require(frame == expected, "the echo of an echo is what came first");
}

}  // namespace
}  // namespace offload::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  offload::fuzz::run({data, size});
  return 0;
}
