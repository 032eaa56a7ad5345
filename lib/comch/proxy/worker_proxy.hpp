#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "channel/packets.hpp"
#include "channel/requester.hpp"
#include "comch/transport/data_connection.hpp"
#include "kernels/group.hpp"
#include "kernels/message.hpp"

namespace offload::comch {

/// Represents a worker on another machine for the server's channel: it sends the content of each
/// request slot, and writes each response that arrives into its slot, where the requester finds and
/// checks it. Requests stay in their slots until then, so that the requester can move unanswered
/// ones to the next worker. While the requester uses another worker, the proxy only waits.
///
/// Uses the requester's engine and thread.
class WorkerProxy final : DataHandler {
 public:
  /// `channel`: the one that the requester uses or will move to. `endpoint`: to the worker's
  /// ServerProxy. Throws Error.
  WorkerProxy(const channel::Requester& requester, const channel::ChannelEndpoint& channel,
              std::unique_ptr<DataEndpoint> endpoint)
      : slots_(&requester.slots()),
        view_(channel.view),
        first_(channel.first),
        collected_(first_),
        answered_(first_),
        requests_(std::make_unique<std::byte[]>(view_.layout.depth * channel::kPacketRoom)),
        connection_(endpoint->start(*slots_->engine(), view_, *this, 0)) {}

  /// Returns why the connection has ended; null while it has not.
  [[nodiscard]] const std::string* failure() const noexcept { return connection_->failure(); }

 private:
  bool post_sends() override {
    if (slots_->view().requests != view_.requests) return false;
    bool worked = false;
    for (; collected_ != slots_->posted(); ++collected_, worked = true) {
      const kernels::Slot slot = view_.request(collected_);
      const kernels::Packet header = kernels::load_packet(slot.packets);
      const std::uint32_t length = header.data[0];
      const std::byte* content = reinterpret_cast<const std::byte*>(slot.plain());
      if (length <= kernels::kMaxPacketPayload && !connection_->carries_slots()) {
        std::byte* const to =
            requests_.get() + view_.layout.slot_index(collected_) * channel::kPacketRoom;
        (void)channel::read_packets(slot.packets, view_.layout.flag_of(collected_), to, length);
        content = to;
      }
      const auto count = static_cast<std::uint16_t>(header.data[2]);
      connection_->post_send({collected_ - first_, length, count, 0}, content);
    }
    return worked;
  }
  std::byte* receive_buffer(std::uint64_t sequence) override {
    return reinterpret_cast<std::byte*>(view_.response(first_ + sequence).plain());
  }
  bool on_received(const protocol::DataHeader& header,
                   std::span<const std::byte> content) override {
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
  [[nodiscard]] bool awaits_content() const noexcept override {
    return slots_->view().requests == view_.requests && slots_->awaited() != 0;
  }

  const channel::SlotQueue* slots_;  ///< the requester's
  kernels::ChannelView view_;
  std::uint64_t first_;      ///< the first of the channel's slots that this worker gets
  std::uint64_t collected_;  ///< requests before this one have been sent
  std::uint64_t answered_;   ///< responses before this one have arrived
  std::unique_ptr<std::byte[]> requests_;  ///< out of packets, by slot
  std::unique_ptr<DataConnection> connection_;
};

}  // namespace offload::comch
