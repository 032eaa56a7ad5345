#include <vector>

#include "kernels/packet/answers.hpp"
#include "tests/fuzz/input.hpp"

/// Frames of strangers: what is read stays in the frame, and what is found fits together.
namespace offload::fuzz {
namespace {

using namespace kernels::packet;

/// Makes checksums right that stand where an untagged frame has them: else hardly one of what is
/// made up gets behind them.
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

void run(Input input) {
  const bool is_repaired = input.integer<std::uint8_t>() % 2 == 1;
  const auto bytes = input.rest();
  // Of its own size, so that a checker sees each read beyond it.
  std::vector<std::uint8_t> frame(bytes.size());
  if (!bytes.empty()) std::memcpy(frame.data(), bytes.data(), bytes.size());
  if (is_repaired) repair(frame);
  const auto length = static_cast<std::uint32_t>(frame.size());
  const Headers headers = parse_frame(frame.data(), length);
  require(static_cast<std::uint32_t>(headers.error) < kFrameErrors, "an error has a name");
  if (headers.error != FrameError::none) return;
  require(headers.end <= length && headers.payload <= headers.end &&
              headers.transport <= headers.payload && headers.ip <= headers.transport,
          "what was found lies in the frame, in its order");

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
  // The checksum may have been left out, or 0 have been sent as 0xffff's other form.
  store_16(frame.data() + headers.transport + 6, 0);
  std::vector<std::uint8_t> expected = before;
  store_16(expected.data() + headers.transport + 6, 0);
  require(frame == expected, "the echo of an echo is what came first");
}

}  // namespace
}  // namespace offload::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  offload::fuzz::run({data, size});
  return 0;
}
