#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comch/keys/pre_shared_keys.hpp"
#include "core/fd.hpp"
#include "tests/fuzz/input.hpp"

/// Arbitrary first bytes of a stranger: tests the checks before any cryptography.
namespace offload::fuzz {
namespace {

const comch::Keyring& keys() {
  static const comch::Keyring ring([] {
    std::vector<comch::Key> made;
    made.emplace_back(std::vector<std::byte>(32, std::byte{7}));
    return made;
  }());
  return ring;
}

void run(Input input) {
  static const std::string name =
      "dpu-gpu-offload worker " + comch::fingerprint(keys().keys().front());
  std::array<int, 2> sockets{};
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets.data()) == 0, "sockets");
  const core::Fd peer(sockets[0]);
  const core::Fd server(sockets[1]);
  const auto bytes = input.rest();
  const auto sent = ::send(peer.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  const std::optional<bool> may = comch::names_a_key(server.get(), keys());
  if (sent > 0 && may == true) {
    const auto* const text = reinterpret_cast<const char*>(bytes.data());
    require(std::string_view(text, bytes.size()).find(name) != std::string_view::npos,
            "who is let on names a key");
  }
  std::vector<std::byte> left(bytes.size() + 1);
  const auto there = ::recv(server.get(), left.data(), left.size(), MSG_DONTWAIT);
  require(there == sent || (sent <= 0 && there < 0), "nothing was taken off the socket");
}

}  // namespace
}  // namespace offload::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  offload::fuzz::run({data, size});
  return 0;
}
