#include <sys/socket.h>

#include <array>
#include <string>
#include <vector>

#include "comch/proxy/worker_proxy.hpp"
#include "comch/transport/tcp/data.hpp"
#include "kernels/serve.hpp"
#include "tests/fuzz/input.hpp"

/// Arbitrary bytes from a worker at the other end of a connection: they reach response slots alone,
/// and as many as there are requests. Each message gets one response, within its slot.
namespace offload::fuzz {
namespace {

/// Reads every byte of the responses.
struct Reader {
  void on_response(channel::PostRecvTask& task) {
    ++responses;
    require(task.response_status() == kernels::ResponseStatus::ok || task.frame().empty(),
            "a frame is a response");
    for (const std::byte byte : task.payload()) sum += static_cast<unsigned>(byte);
    for (const std::byte byte : task.frame()) sum += static_cast<unsigned>(byte);
  }
  std::uint64_t responses = 0;
  unsigned sum = 0;
};

/// Posts a slot's messages: their number is that of two bits, and more than one form a batch.
std::uint64_t post_slot(channel::Requester& requester, std::uint32_t bits) {
  constexpr std::array<std::uint64_t, 4> kCounts{1, 2, 3, 40};
  const std::uint64_t count = kCounts.at(bits % kCounts.size());
  for (std::uint64_t i = 0; i != count; ++i) {
    if (!requester.post({}, nullptr).ok()) return i;
  }
  return count;
}

void run(Input input) {
  const auto shape = input.integer<std::uint8_t>();
  const auto max_length = input.integer<std::uint16_t>() % 1500U;
  const auto layout = kernels::make_layout(1U << (shape & 3U), max_length);
  // Memory of exactly this size, so that a checker sees every access beyond it.
  std::vector<kernels::Packet> requests(layout.request_bytes / sizeof(kernels::Packet));
  std::vector<kernels::Packet> responses(layout.response_bytes / sizeof(kernels::Packet));
  const kernels::ChannelView channel{reinterpret_cast<std::uint8_t*>(requests.data()),
                                     reinterpret_cast<std::uint8_t*>(responses.data()), layout};

  const auto bell = channel::DoorbellPipe::make();
  progress::Engine engine;
  Reader reader;
  const channel::ChannelEndpoint endpoint{
      0,
      channel,
      {channel.response_header().requests, bell.ringing.get()},
      {channel.response_header().responses, bell.waiting.get()}};
  channel::Requester requester(endpoint, reader);
  requester.open(engine);
  requester.set_wakeup(channel::Wakeup::engine);
  const auto counts = input.integer<std::uint16_t>();
  const std::uint64_t posted = (shape >> 2U) % (layout.depth + 1);
  std::uint64_t messages = 0;
  while (requester.slots().posted() != posted) {
    const std::uint64_t before = messages;
    messages += post_slot(requester, counts >> (2 * requester.slots().posted()));
    if (messages == before) break;  // the largest number in flight is reached
    requester.flush();
  }
  const std::vector<kernels::Packet> before = requests;

  std::array<int, 2> fds{};
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds.data()) == 0, "a connection");
  const core::Fd peer(fds[1]);
  const comch::WorkerProxy worker(
      requester, endpoint,
      std::make_unique<comch::TcpDataEndpoint>(comch::TcpStream(core::Fd(fds[0]))));
  engine.progress();  // the requests go first
  const auto bytes = input.rest();
  require(::send(peer.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
          "all of it is sent");
  for (int turn = 0; turn < 20; ++turn) engine.progress();

  require(std::memcmp(requests.data(), before.data(), layout.request_bytes) == 0,
          "it writes responses only");
  bool answered = true;
  for (std::uint64_t i = 0; i < layout.depth; ++i) {
    const bool is = kernels::load_packet(channel.response(i).packets).flag == layout.flag_of(i);
    require(!is || (answered && i < posted), "what was asked is answered, in order");
    answered = is;
  }
  require(reader.responses <= messages, "once each");
}

}  // namespace
}  // namespace offload::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  offload::fuzz::run({data, size});
  return 0;
}
