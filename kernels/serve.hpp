#pragma once

#include "kernels/group.hpp"
#include "kernels/message.hpp"

/// The worker's step, the same on GPU and CPU: take the request `sequence` if it has come, answer
/// it. In the words of comch: the request part is a posted receive; filling the response part is
/// the send; the server taking the response completes it and reposts the receive.
namespace offload::kernels {

/// Where a packed request is laid out contiguously: shared memory on the GPU, one per warp; the
/// stack or a member on a CPU.
struct alignas(16) Staging {
  std::uint8_t before[kSlack];
  std::uint8_t bytes[kMaxPacked];
  std::uint8_t after[kSlack];
};
static_assert(sizeof(Staging) % 16 == 0);

enum class Outcome : std::uint32_t {
  nothing,   ///< the request has not come yet
  answered,  ///< a response was published
  refused,   ///< the request's length was over the limit; the response says so
};

/// `service` may answer differently long than it was asked: this picks the response's form.
template <class Group, class Service>
OFFLOAD_HOST_DEVICE void answer(const Group& group, const Service& service, const Request& request,
                                Part part, std::uint32_t turn) {
  const std::uint32_t length = Service::response_length(request.length());
  if (length <= kMaxPacked) {
    service(group, request, PackedResponse(part, turn, length));
  } else {
    service(group, request, PlainResponse(part, turn, length));
  }
}

/// Answers that the request's length is over the limit.
template <class Group>
OFFLOAD_HOST_DEVICE void refuse(const Group& group, Part part, std::uint32_t turn) {
  PackedResponse(part, turn, 0, Status::bad_length).fill(group, [](std::uint32_t) {
    return Block{};
  });
}

/// Serves message `sequence` of `channel` if it is there. Called by every lane of the group, with
/// the same arguments; `staging` is the group's own.
template <class Group, class Service>
OFFLOAD_HOST_DEVICE Outcome serve(const Group& group, const Channel& channel,
                                  std::uint64_t sequence, const Service& service,
                                  Staging& staging) {
  const std::uint32_t turn = channel.layout.turn_of(sequence);
  const Part request = channel.request(sequence);

  // Every lane reads its own vector in one go; most polls end here.
  const std::uint32_t lane = group.lane();
  Vector vector{};
  if (lane < channel.layout.vectors) vector = load_vector(request.vectors + lane);
  if (!group.from_first(vector.turn == turn)) return Outcome::nothing;

  // The length is a stranger's word: it is read once, and checked before it counts anything.
  const std::uint32_t length = group.from_first(vector.data[0]);
  const Part response = channel.response(sequence);
  if (length > channel.layout.max_length) {
    refuse(group, response, turn);
    return Outcome::refused;
  }

  if (length > kMaxPacked) {
    if (lane == 0) acquire_plain_payload();  // it read the header
    group.sync();
    answer(group, service, Request(request.plain, length), response, turn);
    return Outcome::answered;
  }

  bool complete = true;
  for (std::uint32_t v = lane; v < vectors_for(length); v += group.size()) {
    if (v != lane) vector = load_vector(request.vectors + v);
    complete = complete && vector.turn == turn;
    if (v != 0) std::memcpy(staging.bytes + (v - 1) * kVectorData, vector.data, kVectorData);
  }
  if (!group.all(complete)) return Outcome::nothing;  // on its way: the next poll has it
  group.sync();
  answer(group, service, Request(staging.bytes, length), response, turn);
  group.sync();  // the staging is free again
  return Outcome::answered;
}

/// Whether the part holds message `turn` whole. For the CPU.
inline bool is_complete(const Part& part, std::uint32_t turn, const ChannelLayout& layout) {
  const Vector header = load_vector(part.vectors);
  if (header.turn != turn) return false;
  if (header.data[0] > layout.max_length || header.data[0] > kMaxPacked) return true;
  for (std::uint32_t v = 1; v < vectors_for(header.data[0]); ++v) {
    if (load_vector(part.vectors + v).turn != turn) return false;
  }
  return true;
}

/// Takes over a channel, on the CPU, before anyone polls it: answers what a former worker left
/// unanswered and returns the sequence to go on from. `consumed`: the channel header's, all before
/// it are done; from there to the first message not posted yet, some may be answered and some not.
template <class Service>
std::uint64_t take_over(const Channel& channel, std::uint64_t consumed, const Service& service,
                        Staging& staging) {
  std::uint64_t sequence = consumed;
  for (; sequence != consumed + channel.layout.depth; ++sequence) {
    const std::uint32_t turn = channel.layout.turn_of(sequence);
    if (is_complete(channel.response(sequence), turn, channel.layout)) continue;
    if (serve(SingleLane{}, channel, sequence, service, staging) == Outcome::nothing) break;
  }
  return sequence;
}

}  // namespace offload::kernels
