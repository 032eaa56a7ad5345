#include <cstdint>
#include <string_view>

#include "net/source/proxy_header.hpp"
#include "tests/fuzz/input.hpp"

/// Arbitrary first bytes of a proxy's connection.
namespace offload::fuzz {
namespace {

void run(Input input) {
  using State = net::ProxyHeader::State;
  const auto bytes = input.rest();
  const auto header = net::parse_proxy_header(bytes);
  if (header.state != State::complete) {
    require(header.size == 0 && !header.client, "there is no part of a header");
    return;
  }
  require(header.size >= 16 && header.size <= bytes.size() && header.size <= net::kMaxProxyHeader,
          "it is a part of the bytes");
  if (header.client) {
    require(!std::string_view(header.client->text()).empty(), "its client has a name");
  }
  const auto again = net::parse_proxy_header(bytes.first(header.size));
  require(again.state == State::complete && again.size == header.size, "its own bytes suffice");
  const auto less = net::parse_proxy_header(bytes.first(header.size - 1));
  require(less.state == State::incomplete, "less than its bytes are incomplete");
}

}  // namespace
}  // namespace offload::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  offload::fuzz::run({data, size});
  return 0;
}
