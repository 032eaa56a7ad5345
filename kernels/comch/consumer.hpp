#pragma once

#include "kernels/serve.hpp"

/// Consumer and producer of a channel for a custom kernel, modelled on DOCA Comch's: the worker
/// loop's steps (serve.hpp) as objects. The same source serves a GPU and a CPU thread.
///
///     consumer.post_receive(memory)            as many times as messages may be in hand
///     consumer.poll(group, message)            a request, if one has come
///     producer.send(group, message, ...)       its response, at any time and in any order
///     producer.poll_completion(group, id)      the server has taken it: post its memory again
///
/// Each group has its own object: every lane has a copy, and all lanes call its members together
/// with the same arguments. Several groups share a channel by taking every n-th message each.
namespace offload::kernels::comch {

/// A message that a consumer received: one request, or a batch of requests that share a slot.
/// Either is answered once.
struct Message {
  std::uint64_t number;    ///< of its consumer's messages, from 0
  std::uint64_t sequence;  ///< of the channel's
  Staging* memory;         ///< of the receive that it completed
  const std::uint8_t* data;
  Received received;  ///< malformed: it cannot be read, and any send() answers that

  /// Returns request `i` of those that Consumer::open() counted. It is untrusted, and must not be
  /// read once the message is answered.
  [[nodiscard]] OFFLOAD_HOST_DEVICE Request request(std::uint32_t i = 0) const {
    if (received.count == 0) return {data, received.length};
    const std::uint32_t at = memory->request_at[i];
    return {memory->bytes + at, static_cast<std::uint32_t>(memory->request_at[i + 1]) - at};
  }
};

/// The receiving end. `kReceives`: the maximum number of posted receives. `kWrittenInPieces`: as
/// receive()'s.
template <std::uint32_t kReceives = 1, bool kWrittenInPieces = false>
class Consumer {
  static_assert(kReceives != 0 && (kReceives & (kReceives - 1)) == 0, "a power of two");

 public:
  /// Takes message `first` and every `step`-th after it. For all messages of a channel: its first
  /// sequence, and 1.
  OFFLOAD_HOST_DEVICE explicit Consumer(const ChannelView& channel, std::uint64_t first,
                                        std::uint32_t step = 1)
      : channel_(channel), first_(first), step_(step) {}

  /// Posts a receive into `memory`, shared or global memory of this group, which the message uses
  /// until it is answered. Returns false if kReceives are posted already.
  [[nodiscard]] OFFLOAD_HOST_DEVICE bool post_receive(Staging& memory) {
    if (posted_ - received_ == kReceives) return false;
    memories_[posted_++ % kReceives] = &memory;
    return true;
  }

  /// Takes the next message, if it has come and a receive is posted for it; returns whether it did.
  /// `polled`: as receive()'s.
  template <class Group>
  [[nodiscard]] OFFLOAD_HOST_DEVICE bool poll(const Group& group, Message& message,
                                              std::uint32_t polled = kMaxPackets) {
    if (posted_ == received_) return false;
    Staging* const memory = memories_[received_ % kReceives];
    const std::uint64_t sequence = first_ + received_ * step_;
    const Received received = receive<kWrittenInPieces>(group, channel_, sequence, *memory, polled);
    if (received.arrival == Arrival::none) return false;
    message = {
        received_++, sequence, memory,
        received.arrival == Arrival::plain ? channel_.request(sequence).plain() : memory->bytes,
        received};
    return true;
  }

  /// Returns the number of requests in `message`, which request() then returns; 0: it is malformed.
  /// Only for a look at them before they are answered: send() does not need it.
  template <class Group>
  [[nodiscard]] OFFLOAD_HOST_DEVICE std::uint32_t open(const Group& group, Message& message) const {
    Received& received = message.received;
    if (received.arrival == Arrival::malformed) return 0;
    if (received.count == 0) return 1;
    if (lay_out_batch(group, channel_, message.sequence, NoAnswer{}, *message.memory, received,
                      received.length) == 0) {
      received.arrival = Arrival::malformed;
      return 0;
    }
    // It is in the staging from here on, so the bytes that are checked are those that are answered.
    received.arrival = Arrival::packets;
    return received.count;
  }

 private:
  /// The answer to a batch whose frames are not known yet.
  struct NoAnswer {
    OFFLOAD_HOST_DEVICE static constexpr std::uint32_t response_length(std::uint32_t) { return 0; }
  };

  ChannelView channel_;
  std::uint64_t first_;
  std::uint32_t step_;
  Staging* memories_[kReceives] = {};
  std::uint64_t posted_ = 0;
  std::uint64_t received_ = 0;
};

}  // namespace offload::kernels::comch
