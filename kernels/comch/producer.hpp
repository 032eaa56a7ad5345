#pragma once

#include "kernels/comch/consumer.hpp"
#include "kernels/memory_order.hpp"
#include "kernels/rdma/slot_writer.hpp"

namespace offload::kernels::comch {

/// The state of a send until its completion was polled.
struct SentMessage {
  std::uint64_t behind;  ///< the sequence behind its own; 0: none
  std::uint32_t user_msg_id;
};

/// The result of send().
enum class SendResult : std::uint32_t {
  sent,
  refused,     ///< the message was malformed, or a batch's answers do not fit; that is sent
  full,        ///< not sent: completions of earlier sends must be polled first
  too_long,    ///< not sent: the channel has no room for such a response
  no_receive,  ///< not sent: of UnsolicitedProducer, whose peer has posted no receive
  failed,      ///< it cannot be posted to the server on another machine: the queue is in error
};

/// The sending end, for the messages of one consumer.
class Producer {
 public:
  /// `sent`: memory of this group, zeroed, for `count` messages, a power of two: those from the
  /// first one on whose completion was not polled. `writer`: posts the responses if the server is
  /// on another machine, else null.
  OFFLOAD_HOST_DEVICE Producer(const ChannelView& channel, SentMessage* sent, std::uint32_t count,
                               const rdma::SlotWriter* writer = nullptr)
      : channel_(channel), sent_(sent), count_(count), writer_(writer) {}

  /// Sends the answers of `service` to the requests of `message`, once, in any order of messages.
  /// `service`: a function object (docs/reference/services.md). `user_msg_id`: returned with the
  /// completion. Afterwards the caller may reuse the message's memory.
  template <class Group, class Service>
  [[nodiscard]] OFFLOAD_HOST_DEVICE SendResult send(const Group& group, const Message& message,
                                                    const Service& service,
                                                    std::uint32_t user_msg_id) {
    if (message.number - completed_ >= count_) return SendResult::full;
    const Received& received = message.received;
    if (received.arrival != Arrival::malformed && received.count == 0 &&
        service.response_length(received.length) > room_for(received.length)) {
      return SendResult::too_long;
    }
    if (group.lane() == 0) entry(message.number) = {message.sequence + 1, user_msg_id};
    const Response response =
        respond(group, channel_, message.sequence, service, *message.memory, received);
    if (writer_ != nullptr && rdma::write_response(group, *writer_, channel_, message.sequence,
                                                   response.header) != rdma::WorkResult::done) {
      return SendResult::failed;
    }
    return response.outcome == Outcome::refused ? SendResult::refused : SendResult::sent;
  }

  /// Sends `length` bytes at `bytes`, which has kSlack readable bytes before it and after its end,
  /// as the answer to each request of the message.
  template <class Group>
  [[nodiscard]] OFFLOAD_HOST_DEVICE SendResult send(const Group& group, const Message& message,
                                                    const std::uint8_t* bytes, std::uint32_t length,
                                                    std::uint32_t user_msg_id) {
    return send(group, message, Bytes{{bytes, length}}, user_msg_id);
  }

  /// Returns whether the next send is complete: the server has taken the response, and posted the
  /// receive of its slot again. Sends complete in the order of their messages. Costs one or two
  /// reads of the server's memory, so do not call it in each turn.
  template <class Group>
  [[nodiscard]] OFFLOAD_HOST_DEVICE bool poll_completion(const Group& group,
                                                         std::uint32_t& user_msg_id) {
    SentMessage next{};
    std::uint32_t complete = 0;
    if (group.lane() == 0) {
      next = entry(completed_);
      complete = next.behind != 0 && was_taken(next.behind - 1) ? 1 : 0;
      if (complete != 0) entry(completed_) = {};
    }
    if (group.from_first(complete) == 0) return false;
    user_msg_id = group.from_first(next.user_msg_id);
    ++completed_;
    return true;
  }

 private:
  /// A service whose answer is known.
  struct Bytes {
    Request bytes;

    OFFLOAD_HOST_DEVICE std::uint32_t response_length(std::uint32_t) const {
      return bytes.length();
    }
    template <class Group, class Response>
    OFFLOAD_HOST_DEVICE void operator()(const Group& group, const Request&,
                                        const Response& response) const {
      response.fill(group, [&](std::uint32_t offset) { return bytes.block(offset); });
    }
  };

  /// Returns the maximum number of bytes of the response to a request of `length`.
  [[nodiscard]] OFFLOAD_HOST_DEVICE std::uint32_t room_for(std::uint32_t length) const {
    const std::uint32_t least = channel_.layout.max_response;
    return length < least ? least : length;
  }

  [[nodiscard]] OFFLOAD_HOST_DEVICE SentMessage& entry(std::uint64_t number) const {
    return sent_[number & (count_ - 1)];
  }

  /// Uses the server's count; or, because that never changes if the server is on another machine,
  /// the next request in its slot. Relaxed: the numbers order nothing; pairs with SlotQueue::flush.
  [[nodiscard]] OFFLOAD_HOST_DEVICE bool was_taken(std::uint64_t sequence) const {
    const std::uint64_t* const consumed =
        &reinterpret_cast<const RequestHeader*>(channel_.requests)->consumed;
    const std::uint64_t taken = load_relaxed_sys(consumed);
    if (taken > sequence) return true;
    const std::uint64_t next = sequence + channel_.layout.depth;
    return load_packet(channel_.request(next).packets).flag == channel_.layout.flag_of(next);
  }

  ChannelView channel_;
  SentMessage* sent_;
  std::uint32_t count_;
  const rdma::SlotWriter* writer_;
  std::uint64_t completed_ = 0;
};

}  // namespace offload::kernels::comch
