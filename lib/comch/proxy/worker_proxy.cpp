#include "comch/proxy/worker_proxy.hpp"

#include "channel/packets.hpp"
#include "kernels/group.hpp"
#include "kernels/message.hpp"

namespace offload::comch {

using channel::kPacketRoom;

WorkerProxy::WorkerProxy(const channel::Requester& requester,
                         const channel::ChannelEndpoint& channel,
                         std::unique_ptr<DataEndpoint> endpoint)
    : slots_(&requester.slots()),
      view_(channel.view),
      first_(channel.first),
      collected_(first_),
      answered_(first_),
      requests_(std::make_unique<std::byte[]>(view_.layout.depth * kPacketRoom)),
      connection_(endpoint->start(*slots_->engine(), view_, *this, 0)) {}

bool WorkerProxy::post_sends() {
  if (slots_->view().requests != view_.requests) return false;
  bool worked = false;
  for (; collected_ != slots_->posted(); ++collected_, worked = true) {
    const kernels::Slot slot = view_.request(collected_);
    const kernels::Packet header = kernels::load_packet(slot.packets);
    const std::uint32_t length = header.data[0];
    const std::byte* content = reinterpret_cast<const std::byte*>(slot.plain());
    if (length <= kernels::kMaxPacketPayload && !connection_->carries_slots()) {
      std::byte* const to = requests_.get() + view_.layout.slot_index(collected_) * kPacketRoom;
      (void)channel::read_packets(slot.packets, view_.layout.flag_of(collected_), to, length);
      content = to;
    }
    const auto count = static_cast<std::uint16_t>(header.data[2]);
    connection_->post_send({collected_ - first_, length, count, 0}, content);
  }
  return worked;
}

bool WorkerProxy::on_received(const protocol::DataHeader& header,
                              std::span<const std::byte> content) {
  const kernels::Slot slot = view_.response(answered_);
  const std::uint32_t flag = view_.layout.flag_of(answered_);
  kernels::rewrite_rest(kernels::SingleLane{}, slot, flag, header.length);
  if (header.length <= kernels::kMaxPacketPayload) {
    channel::write_packets(slot.packets, flag, content.data(), header.length, header.status,
                           header.count);
  } else {
    kernels::release_plain_payload();
    kernels::store_packet(slot.packets, {{header.length, header.status, header.count}, flag});
  }
  ++answered_;
  return true;
}

}  // namespace offload::comch
