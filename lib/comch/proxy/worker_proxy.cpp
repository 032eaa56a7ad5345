#include "comch/proxy/worker_proxy.hpp"

#include <utility>

#include "channel/packets.hpp"

namespace offload::comch {
namespace {

/// The first message whose response is not in its slot: what was written there came whole.
std::uint64_t first_unanswered(const kernels::ChannelView& channel,
                               const channel::Cursors& cursors) {
  std::uint64_t sequence = cursors.received;
  while (sequence != cursors.posted) {
    const kernels::Packet header = kernels::load_packet(channel.response(sequence).packets);
    if (header.flag != channel.layout.flag_of(sequence)) break;
    ++sequence;
  }
  return sequence;
}

}  // namespace

WorkerProxy::WorkerProxy(progress::Engine& engine, const channel::ServerEnd& end,
                         std::unique_ptr<DataEndpoint> endpoint)
    : channel_(end.channel),
      cursors_(end.cursors),
      first_(first_unanswered(channel_, *cursors_)),
      collected_(first_),
      answered_(first_),
      packed_(std::make_unique<std::byte[]>(channel_.layout.depth * channel::kPacketRoom)),
      connection_(endpoint->start(engine, channel_, *this, 0)) {}

bool WorkerProxy::post_sends() {
  bool worked = false;
  for (; collected_ != cursors_->posted; ++collected_, worked = true) {
    const kernels::Slot slot = channel_.request(collected_);
    const std::uint32_t length = kernels::load_packet(slot.packets).data[0];
    const std::byte* payload = reinterpret_cast<const std::byte*>(slot.plain);
    if (length <= kernels::kMaxPacketPayload) {
      std::byte* const to =
          packed_.get() + channel_.layout.slot_index(collected_) * channel::kPacketRoom;
      (void)channel::read_packets(slot.packets, channel_.layout.flag_of(collected_), to, length);
      payload = to;
    }
    connection_->post_send({collected_ - first_, length, 0}, payload);
  }
  return worked;
}

std::byte* WorkerProxy::receive_buffer(std::uint64_t sequence) {
  return reinterpret_cast<std::byte*>(channel_.response(first_ + sequence).plain);
}

bool WorkerProxy::on_received(const protocol::DataHeader& header,
                              std::span<const std::byte> payload) {
  const kernels::Slot slot = channel_.response(answered_);
  const std::uint32_t flag = channel_.layout.flag_of(answered_);
  if (header.length <= kernels::kMaxPacketPayload) {
    channel::write_packets(slot.packets, flag, payload.data(), header.length, header.status);
  } else {
    kernels::release_plain_payload();
    kernels::store_packet(slot.packets, {{header.length, header.status, 0}, flag});
  }
  ++answered_;
  return true;
}

}  // namespace offload::comch
