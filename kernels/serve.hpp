#pragma once

#include "kernels/group.hpp"
#include "kernels/message.hpp"

/// The worker loop's two steps, the same on GPU and CPU: receive request `sequence` if it has come,
/// respond to it. In DOCA's words: the request slot is a posted receive; filling the response slot
/// is the send; when the server takes the response, that completes the send and posts the receive
/// anew.
namespace offload::kernels {

/// The buffer in which a request that came in packets is laid out contiguously: shared memory on a
/// GPU, one a warp; the stack or a member on a CPU.
struct alignas(16) Staging {
  std::uint8_t before[kSlack];
  std::uint8_t bytes[kMaxPacketPayload];
  std::uint8_t after[kSlack];
};
static_assert(sizeof(Staging) % 16 == 0);

/// What receive() found in a request slot.
enum class Arrival : std::uint32_t {
  none,      ///< not all of it is there yet
  packets,   ///< a request, laid out in the staging
  plain,     ///< a request, as a plain payload in its slot
  too_long,  ///< a request over the channel's limit, unread
};

struct Received {
  Arrival arrival;
  std::uint32_t length;  ///< that the request claims, bytes
};

/// What respond() did.
enum class Outcome : std::uint32_t {
  nothing,   ///< the request has not come yet
  answered,  ///< a response was published
  refused,   ///< the request's length was over the limit; the response says so
};

/// Has `service` answer `request` in the form, packets or plain, that the response's length asks
/// for; it may differ from the request's.
template <class Group, class Service, class BeforeFence = Nothing>
OFFLOAD_HOST_DEVICE void answer(const Group& group, const Service& service, const Request& request,
                                Slot slot, std::uint32_t flag,
                                const BeforeFence& before_fence = {}) {
  const std::uint32_t length = Service::response_length(request.length());
  if (length <= kMaxPacketPayload) {
    before_fence();  // packets take no fence
    service(group, request, PacketResponse(slot, flag, length));
  } else {
    service(group, request, PlainResponse(slot, flag, length, before_fence));
  }
}

/// Publishes the response that the request's length is over the limit.
template <class Group>
OFFLOAD_HOST_DEVICE void refuse(const Group& group, Slot slot, std::uint32_t flag) {
  PacketResponse(slot, flag, 0, Status::bad_length).fill(group, [](std::uint32_t) {
    return Block{};
  });
}

/// Whether the header of message `sequence` has come. Reads 16 bytes, where receive() reads as many
/// packets as the longest message has. Called by every lane of the group, with the same arguments.
template <class Group>
OFFLOAD_HOST_DEVICE bool has_header(const Group& group, const ChannelView& channel,
                                    std::uint64_t sequence) {
  Packet header{};
  if (group.lane() == 0) header = load_packet(channel.request(sequence).packets);
  return group.from_first(header.flag == channel.layout.flag_of(sequence));
}

/// Receives message `sequence` of `channel` if it has come. Called by every lane of the group, with
/// the same arguments; `staging` is the group's own. The request stays as it is until it is
/// answered: the server does not write the slot before.
template <class Group>
OFFLOAD_HOST_DEVICE Received receive(const Group& group, const ChannelView& channel,
                                     std::uint64_t sequence, Staging& staging) {
  const std::uint32_t flag = channel.layout.flag_of(sequence);
  const Slot request = channel.request(sequence);

  // Every lane reads its own packet in one go; most polls end here.
  const std::uint32_t lane = group.lane();
  Packet packet{};
  if (lane < channel.layout.packets) packet = load_packet(request.packets + lane);
  if (!group.from_first(packet.flag == flag)) return {Arrival::none, 0};

  // The length is untrusted input: it is read once, and checked before it is used.
  const std::uint32_t length = group.from_first(packet.data[0]);
  if (length > channel.layout.max_length) return {Arrival::too_long, length};

  if (length > kMaxPacketPayload) {
    if (lane == 0) acquire_plain_payload(request.packets);
    group.sync();
    return {Arrival::plain, length};
  }

  bool complete = true;
  for (std::uint32_t index = lane; index < packets_for(length); index += group.size()) {
    if (index != lane) packet = load_packet(request.packets + index);
    complete = complete && packet.flag == flag;
    if (index != 0)
      std::memcpy(staging.bytes + (index - 1) * kPacketData, packet.data, kPacketData);
  }
  if (!group.all(complete)) return {Arrival::none, 0};  // in part: the next poll has the rest
  group.sync();
  return {Arrival::packets, length};
}

/// Answers message `sequence`, which was received. Called by every lane, with the same arguments,
/// of the group that received it, or of a larger one that was synchronised with it. Every lane
/// calls `before_fence` once, before the fence that publishing a long response takes.
template <class Group, class Service, class BeforeFence = Nothing>
OFFLOAD_HOST_DEVICE Outcome respond(const Group& group, const ChannelView& channel,
                                    std::uint64_t sequence, const Service& service,
                                    const Staging& staging, Received received,
                                    const BeforeFence& before_fence = {}) {
  if (received.arrival == Arrival::none) return Outcome::nothing;
  const std::uint32_t flag = channel.layout.flag_of(sequence);
  const Slot response = channel.response(sequence);
  if (received.arrival == Arrival::too_long) {
    refuse(group, response, flag);
    return Outcome::refused;
  }
  const std::uint8_t* const payload =
      received.arrival == Arrival::plain ? channel.request(sequence).plain() : staging.bytes;
  answer(group, service, Request(payload, received.length), response, flag, before_fence);
  group.sync();  // the staging is free again
  return Outcome::answered;
}

/// Receives and answers message `sequence` of `channel`, if it has come, by one group.
template <class Group, class Service>
OFFLOAD_HOST_DEVICE Outcome serve(const Group& group, const ChannelView& channel,
                                  std::uint64_t sequence, const Service& service,
                                  Staging& staging) {
  return respond(group, channel, sequence, service, staging,
                 receive(group, channel, sequence, staging));
}

/// Whether the slot holds the whole message of lap `flag`. For the CPU.
inline bool is_complete(const Slot& slot, std::uint32_t flag, const ChannelLayout& layout) {
  const Packet header = load_packet(slot.packets);
  if (header.flag != flag) return false;
  if (header.data[0] > layout.max_length || header.data[0] > kMaxPacketPayload) return true;
  for (std::uint32_t index = 1; index < packets_for(header.data[0]); ++index) {
    if (load_packet(slot.packets + index).flag != flag) return false;
  }
  return true;
}

}  // namespace offload::kernels
