#include <sys/socket.h>

#include <array>
#include <string>
#include <vector>

#include "comch/remote_worker.hpp"
#include "comch/tcp_carrier.hpp"
#include "kernels/serve.hpp"
#include "tests/fuzz/input.hpp"

/// Anything, from a worker at the other end of a connection: it reaches response parts alone, and
/// as many as there are requests.
namespace offload::fuzz {
namespace {

void run(Input input) {
  const auto shape = input.integer<std::uint8_t>();
  const auto max_length = input.integer<std::uint16_t>() % 1500U;
  const auto layout = kernels::make_layout(1U << (shape & 3U), max_length);
  // Of exactly its size, so that a checker sees every access beyond it.
  std::vector<kernels::Vector> memory(layout.bytes / sizeof(kernels::Vector));
  const kernels::Channel channel{reinterpret_cast<std::uint8_t*>(memory.data()), layout};

  comch::Cursors cursors{(shape >> 2U) % (layout.depth + 1), 0, 0};
  for (std::uint64_t i = 0; i < cursors.posted; ++i) {
    kernels::store_vector(channel.request(i).vectors, {{0, 0, 0}, layout.turn_of(i)});
  }
  const std::vector<kernels::Vector> before = memory;

  std::array<int, 2> fds{};
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds.data()) == 0, "a connection");
  const core::Fd peer(fds[1]);
  progress::Engine engine;
  comch::RemoteWorker worker(
      engine,
      {0, channel, &cursors, {channel.header().requests, -1}, {channel.header().responses, -1}},
      std::make_unique<comch::TcpLine>(core::Fd(fds[0])));
  engine.progress();  // the requests go first
  const auto bytes = input.rest();
  require(::send(peer.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
          "all of it is sent");
  for (int turn = 0; turn < 20; ++turn) engine.progress();

  const std::size_t responses = layout.responses / sizeof(kernels::Vector);
  require(std::memcmp(memory.data(), before.data(), responses * sizeof(kernels::Vector)) == 0,
          "it writes responses only");
  bool answered = true;
  for (std::uint64_t i = 0; i < layout.depth; ++i) {
    const bool is = kernels::load_vector(channel.response(i).vectors).turn == layout.turn_of(i);
    require(!is || (answered && i < cursors.posted), "what was asked is answered, in order");
    answered = is;
  }
}

}  // namespace
}  // namespace offload::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  offload::fuzz::run({data, size});
  return 0;
}
