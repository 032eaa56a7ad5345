#include <new>
#include <vector>

#include "channel/requester.hpp"
#include "kernels/serve.hpp"
#include "kernels/services.hpp"
#include "tests/fuzz/input.hpp"

/// A channel whose memory has arbitrary content: it must lead neither the worker's loop nor the
/// server's requester outside it, and the worker writes responses only.
namespace offload::fuzz {
namespace {

using kernels::Outcome;
using kernels::Packet;
using kernels::Slot;

/// Memory on the heap, of exactly its size: a checker sees every access beyond it.
class Memory {
 public:
  explicit Memory(std::size_t bytes)
      : data_(static_cast<std::uint8_t*>(::operator new(bytes, kAlignment))) {}
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { ::operator delete(data_, kAlignment); }
  [[nodiscard]] std::uint8_t* data() const { return data_; }

 private:
  static constexpr std::align_val_t kAlignment{kernels::kSlotAlignment};
  std::uint8_t* data_;
};

/// Writes one packet somewhere, from four bytes and its data: with the expected flag, or another.
void poke(Input& input, const kernels::ChannelView& channel, std::uint64_t start) {
  const auto where = input.integer<std::uint8_t>();
  const auto which = input.integer<std::uint8_t>();
  const std::uint64_t sequence = start + (where & 7U);
  const Slot slot = (where & 8U) != 0 ? channel.response(sequence) : channel.request(sequence);
  Packet packet{};
  const auto data = input.integer<std::uint32_t>();
  // A length near the limits is as likely as any other length.
  packet.data[0] = (where & 16U) != 0 ? data : channel.layout.max_length - 8 + data % 16;
  packet.data[1] = input.integer<std::uint8_t>();
  packet.data[2] = input.integer<std::uint8_t>();
  packet.flag = channel.layout.flag_of(sequence) + ((where & 0xe0U) == 0 ? 1 : 0);
  kernels::store_packet(slot.packets + which % kernels::kMaxPackets, packet);
}

template <class Service>
void serve_all(const kernels::ChannelView& channel, std::uint64_t start, Service service) {
  kernels::Staging staging{};
  for (std::uint64_t i = 0; i < channel.layout.depth; ++i) {
    const Outcome outcome =
        kernels::serve(kernels::SingleLane{}, channel, start + i, service, staging);
    if (outcome == Outcome::nothing) continue;
    const Packet header = kernels::load_packet(channel.request(start + i).packets);
    const bool valid =
        kernels::is_valid_content(channel.layout.max_request, header.data[0], header.data[2]);
    require(valid || outcome == Outcome::refused, "what is malformed is refused");
    require(header.data[2] != 0 || valid == (outcome == Outcome::answered),
            "a message is refused for its length alone");
    require(kernels::is_complete(channel.response(start + i), channel.layout.flag_of(start + i)),
            "what was answered is there whole");
  }
}

/// The server's requester, which reads responses of an untrusted worker.
class Receiver {
 public:
  Receiver(const kernels::ChannelView& view, std::uint64_t start)
      : max_length_(view.layout.max_length),
        requester_({0,
                    view,
                    {view.response_header().requests, bell_.ringing.get()},
                    {view.response_header().responses, bell_.waiting.get()},
                    start},
                   *this) {
    requester_.set_wakeup(channel::Wakeup::doorbell);
    requester_.open(engine_);
    // Slots of one message and of several.
    for (std::size_t i = 0; !requester_.full(); ++i) {
      require(requester_.post({}, nullptr).ok(), "a lap can be posted");
      if (i % 3 != 1) requester_.flush();
    }
    requester_.flush();
  }

  void receive_all() { engine_.progress(); }

  void on_response(channel::PostRecvTask& task) const {
    require(task.payload().size() <= max_length_, "no payload is over the limit");
    const std::vector<std::byte> copy(task.payload().begin(), task.payload().end());
  }

 private:
  std::size_t max_length_;
  channel::DoorbellPipe bell_ = channel::DoorbellPipe::make();
  progress::Engine engine_;
  channel::Requester requester_;
};

void run(Input input) {
  const auto shape = input.integer<std::uint8_t>();
  const auto max_length = input.integer<std::uint16_t>() % 1500U;
  const auto start = input.integer<std::uint64_t>();
  const auto layout = kernels::make_layout(1U << (shape & 3U), max_length);
  const Memory requests(layout.request_bytes);
  const Memory responses(layout.response_bytes);
  const auto filling = input.integer<std::uint8_t>();
  std::memset(requests.data(), filling, layout.request_bytes);
  std::memset(responses.data(), filling, layout.response_bytes);
  const kernels::ChannelView channel{requests.data(), responses.data(), layout};
  while (!input.rest().empty()) poke(input, channel, start);

  const std::vector<std::uint8_t> before(requests.data(), requests.data() + layout.request_bytes);
  const auto services = kernels::service_names();
  kernels::with_service(services[(shape >> 2U) % services.size()],
                        [&](auto service) { serve_all(channel, start, service); });
  require(std::memcmp(requests.data(), before.data(), before.size()) == 0,
          "a worker writes responses only");
  // Its requests replace those above; the content of the responses stays.
  Receiver(channel, start).receive_all();
}

}  // namespace
}  // namespace offload::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  offload::fuzz::run({data, size});
  return 0;
}
