#include <vector>

#include "apps/client/load/checker.hpp"
#include "tests/fuzz/input.hpp"

/// A stream of anything as responses: what offload-client makes of a server that lies.
namespace offload::fuzz {
namespace {

void run(Input input) {
  const std::size_t length = input.integer<std::uint8_t>() % 64U;
  const auto how = input.integer<std::uint8_t>() % 3U;
  auto stream = input.rest();
  const std::vector<std::byte> zeros(length);
  client::Expected expected(zeros);
  if (how == 1) expected = client::Expected::of_length(static_cast<std::uint32_t>(length));
  if (how == 2) expected = client::Expected::of_length(client::Expected::kAnyLength);
  while (!stream.empty()) {
    const client::FrameCheck verdict = client::judge(stream, expected);
    if (verdict.state == client::FrameCheck::State::incomplete) return;
    require(verdict.size <= stream.size(), "no frame is longer than the stream");
    if (verdict.state == client::FrameCheck::State::right) {
      require(how == 2 || verdict.size == protocol::kFrameHeaderSize + length,
              "a right one is whole");
    } else {
      require(!client::describe_fault(stream, expected).empty(), "a fault has words");
      require(!client::name_of(verdict.error).empty(), "a fault has a name");
    }
    if (verdict.size == 0) return;
    stream = stream.subspan(verdict.size);
  }
}

}  // namespace
}  // namespace offload::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  offload::fuzz::run({data, size});
  return 0;
}
