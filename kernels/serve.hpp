#pragma once

#include "kernels/group.hpp"
#include "kernels/message.hpp"
#include "kernels/slot_batch.hpp"

/// The worker loop's two steps, the same on GPU and CPU: receive request `sequence` if it has come,
/// respond to it. In DOCA's words: the request slot is a posted receive; filling the response slot
/// is the send; when the server takes the response, that completes the send and posts the receive
/// again.
namespace offload::kernels {

/// The result of receive() for a request slot.
enum class Arrival : std::uint32_t {
  none,       ///< not all of it is there yet
  packets,    ///< a content that is laid out in the staging
  plain,      ///< a content that is plain in its slot
  malformed,  ///< a length over the channel's limit, or no batch: unread
};

struct Received {
  Arrival arrival;
  std::uint32_t length;  ///< that the content claims, bytes
  std::uint32_t count;   ///< of messages, if it is a batch; 0: it is one message
};

/// The result of respond().
enum class Outcome : std::uint32_t {
  nothing,   ///< the request has not come yet
  answered,  ///< a response was published
  refused,   ///< it was malformed; the response says so
};

/// A response as it was published.
struct Response {
  Outcome outcome;
  Packet header;  ///< of its slot; of Outcome::nothing: none
};

/// Lets `service` answer `request` in the form, packets or plain, that the response's length
/// requires; it may differ from the request's. `count`: as Received's. Returns the header.
template <class Group, class Service, class BeforeFence = Nothing>
OFFLOAD_HOST_DEVICE Packet answer(const Group& group, const Service& service,
                                  const Request& request, Slot slot, std::uint32_t flag,
                                  std::uint32_t count = 0, const BeforeFence& before_fence = {}) {
  const std::uint32_t length = service.response_length(request.length());
  if (length <= kMaxPacketPayload) {
    before_fence();  // packets take no fence
    service(group, request, PacketResponse(slot, flag, length, count));
  } else {
    service(group, request, PlainResponse(slot, flag, length, count, before_fence));
  }
  return make_header(flag, length, count);
}

/// Publishes the response that the request was malformed. Returns its header.
template <class Group>
OFFLOAD_HOST_DEVICE Packet refuse(const Group& group, Slot slot, std::uint32_t flag) {
  PacketResponse(slot, flag, 0, 0, ResponseStatus::bad_length).fill(group, [](std::uint32_t) {
    return Block{};
  });
  return make_header(flag, 0, 0, ResponseStatus::bad_length);
}

/// Returns whether the header of message `sequence` has arrived. Reads 16 bytes, while receive()
/// reads all packets that a message may have. Called by every lane of the group, with the same
/// arguments.
template <class Group>
OFFLOAD_HOST_DEVICE bool has_header(const Group& group, const ChannelView& channel,
                                    std::uint64_t sequence) {
  Packet header{};
  if (group.lane() == 0) header = load_packet(channel.request(sequence).packets);
  return group.from_first(header.flag == channel.layout.flag_of(sequence));
}

/// Receives message `sequence` of `channel` if it has come. Every lane of the group must call it,
/// with the same arguments; `staging` is memory of this group. The request stays unchanged until it
/// is answered: the server does not write the slot before. `polled`: how many packets are read at
/// once; a content with more of them takes another read.
///
/// `kWrittenInPieces`: the slot is written by RDMA, the header's flag last (rdma/slot_writer.hpp).
/// The other packets may arrive in pieces of eight bytes, so their flags say nothing: they are read
/// after the header has come.
template <bool kWrittenInPieces = false, class Group>
OFFLOAD_HOST_DEVICE Received receive(const Group& group, const ChannelView& channel,
                                     std::uint64_t sequence, Staging& staging,
                                     std::uint32_t polled = kMaxPackets) {
  if (kWrittenInPieces) polled = 1;
  const std::uint32_t flag = channel.layout.flag_of(sequence);
  const Slot request = channel.request(sequence);

  // Lanes read a packet each; most polls end here.
  const std::uint32_t lane = group.lane();
  Packet packet{};
  if (lane < polled) packet = load_packet(request.packets + lane);
  if (!group.from_first(packet.flag == flag)) return {Arrival::none, 0, 0};

  // Both are untrusted input: they are read once, and checked before they are used.
  const std::uint32_t length = group.from_first(packet.data[0]);
  const std::uint32_t count = group.from_first(packet.data[2]);
  if (!is_valid_content(channel.layout.max_request, length, count)) {
    return {Arrival::malformed, length, count};
  }

  if (length > kMaxPacketPayload) {
    if (lane == 0) acquire_plain_payload(request.packets);
    group.sync();
    return {Arrival::plain, length, count};
  }

  if (kWrittenInPieces) {
    if (lane == 0) acquire_plain_payload(request.packets);
    group.sync();
  }
  bool complete = true;
  for (std::uint32_t index = lane; index < packets_for(length); index += group.size()) {
    if (index != lane || lane >= polled) packet = load_packet(request.packets + index);
    complete = complete && packet.flag == flag;
    if (index != 0)
      std::memcpy(staging.bytes + (index - 1) * kPacketData, packet.data, kPacketData);
  }
  if (!group.all(complete)) return {Arrival::none, 0, 0};  // in part: the next poll has the rest
  group.sync();
  return {Arrival::packets, length, count};
}

/// Lays the first `bytes` of the received batch out in the staging, its table at least, if they are
/// not there yet, and indexes it: returns what index_batch() does. Called as respond(). One warp
/// indexes: a batch has no more than two messages for each of its lanes, and among the warps of a
/// block each of the sums would take several barriers.
template <class Group, class Service>
OFFLOAD_HOST_DEVICE std::uint32_t lay_out_batch(const Group& group, const ChannelView& channel,
                                                std::uint64_t sequence, const Service& service,
                                                Staging& staging, Received received,
                                                std::uint32_t bytes) {
  if (received.arrival == Arrival::plain) {
    // Once: the server could change what is read from the slot twice.
    const Request plain(channel.request(sequence).plain(), bytes);
    Echo{}(group, plain, FlatResponse(staging.bytes, bytes));
    group.sync();
  }
  group.by_one_warp([&](const auto& warp) {
    const std::uint32_t frames = index_batch(warp, service, staging, received.length,
                                             received.count, channel.layout.max_request);
    if (warp.lane() == 0) staging.frames_length = frames;
  });
  group.sync();
  return staging.frames_length;
}

/// Answers the batch `received`. A single lane works from slot to slot; several lanes work in the
/// staging, because a GPU accesses whole lines over PCIe only if neighbouring lanes do so together.
template <class Group, class Service, class BeforeFence>
OFFLOAD_HOST_DEVICE Response respond_to_batch(const Group& group, const ChannelView& channel,
                                              std::uint64_t sequence, const Service& service,
                                              Staging& staging, Received received,
                                              const BeforeFence& before_fence) {
  const bool from_slot = group.size() == 1 && received.arrival == Arrival::plain;
  const std::uint32_t flag = channel.layout.flag_of(sequence);
  const Slot response = channel.response(sequence);
  const std::uint32_t frames =
      lay_out_batch(group, channel, sequence, service, staging, received,
                    from_slot ? batch_table(received.count) : received.length);
  if (frames == 0) {
    before_fence();
    return {Outcome::refused, refuse(group, response, flag)};
  }
  const std::uint8_t* const content = from_slot ? channel.request(sequence).plain() : staging.bytes;
  if (group.size() == 1 && frames > kMaxPacketPayload) {
    serve_batch(group, service, staging, content, response.plain(), received.length,
                received.count);
    PlainResponse(response, flag, frames, received.count, before_fence).publish(group);
    return {Outcome::answered, make_header(flag, frames, received.count)};
  }
  serve_batch(group, service, staging, content, staging.frames, received.length, received.count);
  return {Outcome::answered, answer(group, Echo{}, Request(staging.frames, frames), response, flag,
                                    received.count, before_fence)};
}

/// Answers message `sequence`, which was received. Called by every lane, with the same arguments,
/// of the group that received it, or of a larger one that was synchronised with it. Every lane
/// calls `before_fence` once, before the fence that publishing a long response takes.
template <class Group, class Service, class BeforeFence = Nothing>
OFFLOAD_HOST_DEVICE Response respond(const Group& group, const ChannelView& channel,
                                     std::uint64_t sequence, const Service& service,
                                     Staging& staging, Received received,
                                     const BeforeFence& before_fence = {}) {
  Response response{Outcome::nothing, {}};
  if (received.arrival == Arrival::none) return response;
  if (received.arrival == Arrival::malformed) {
    before_fence();
    response = {Outcome::refused,
                refuse(group, channel.response(sequence), channel.layout.flag_of(sequence))};
  } else if (received.count != 0) {
    response = respond_to_batch(group, channel, sequence, service, staging, received, before_fence);
  } else {
    const std::uint8_t* const payload =
        received.arrival == Arrival::plain ? channel.request(sequence).plain() : staging.bytes;
    response = {Outcome::answered, answer(group, service, Request(payload, received.length),
                                          channel.response(sequence),
                                          channel.layout.flag_of(sequence), 0, before_fence)};
  }
  group.sync();  // the staging is free again
  return response;
}

/// Receives and answers message `sequence` of `channel`, if it has come, by one group.
template <class Group, class Service>
OFFLOAD_HOST_DEVICE Outcome serve(const Group& group, const ChannelView& channel,
                                  std::uint64_t sequence, const Service& service,
                                  Staging& staging) {
  return respond(group, channel, sequence, service, staging,
                 receive(group, channel, sequence, staging))
      .outcome;
}

/// Returns whether the slot has the whole message of lap `flag`. For the CPU.
inline bool is_complete(const Slot& slot, std::uint32_t flag) {
  const Packet header = load_packet(slot.packets);
  if (header.flag != flag) return false;
  if (header.data[0] > kMaxPacketPayload) return true;
  for (std::uint32_t index = 1; index < packets_for(header.data[0]); ++index) {
    if (load_packet(slot.packets + index).flag != flag) return false;
  }
  return true;
}

}  // namespace offload::kernels
