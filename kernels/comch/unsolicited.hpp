#pragma once

#include "kernels/comch/producer.hpp"

namespace offload::kernels::comch {

/// The sending end of a channel whose peer asks for nothing: its requests are receives that it has
/// posted, to be completed by a message each, whenever there is one. A request's content is not
/// read; its length is room for the message, as with any response. The peer posts each in a
/// separate slot (channel::Requester: a flush() after each post()) and posts it again once it is
/// complete: the receives that are posted bound the messages that may be under way.
///
///     producer.send(group, bytes, length, id)      a message, if the peer has a receive for it
///     producer.poll_completion(group, id)          the peer has taken it
///
/// A group's own, as Producer is. Several groups share a channel by every n-th receive each.
/// `kWrittenInPieces`: as receive()'s.
template <bool kWrittenInPieces = false>
class UnsolicitedProducer {
 public:
  /// `memory`: the group's own. `first`, `step`: as Consumer's. The rest: as Producer's.
  OFFLOAD_HOST_DEVICE UnsolicitedProducer(const ChannelView& channel, Staging& memory,
                                          SentMessage* sent, std::uint32_t count,
                                          std::uint64_t first = 0, std::uint32_t step = 1,
                                          const rdma::SlotWriter* writer = nullptr)
      : consumer_(channel, first, step), producer_(channel, sent, count, writer) {
    static_cast<void>(consumer_.post_receive(memory));  // the first, for which there is room
  }

  /// Sends `length` bytes at `bytes`, which has kSlack readable bytes before it and after its end.
  /// `no_receive`: the peer has none posted, so nothing was sent: it takes its messages too slowly.
  /// `refused`: the next receive was malformed, or a batch; the peer is told, and nothing was sent.
  /// Else as Producer::send().
  template <class Group>
  [[nodiscard]] OFFLOAD_HOST_DEVICE SendResult send(const Group& group, const std::uint8_t* bytes,
                                                    std::uint32_t length,
                                                    std::uint32_t user_msg_id) {
    if (!has_receive_) {
      if (!consumer_.poll(group, receive_)) return SendResult::no_receive;
      has_receive_ = true;
      // One message would complete all of a batch: as many copies of it.
      if (receive_.received.count != 0) receive_.received.arrival = Arrival::malformed;
    }
    const SendResult result = producer_.send(group, receive_, bytes, length, user_msg_id);
    if (result == SendResult::full || result == SendResult::too_long) return result;
    has_receive_ = false;
    static_cast<void>(consumer_.post_receive(*receive_.memory));  // the one that was taken
    return result;
  }

  /// As Producer::poll_completion(). Also of a receive that was refused.
  template <class Group>
  [[nodiscard]] OFFLOAD_HOST_DEVICE bool poll_completion(const Group& group,
                                                         std::uint32_t& user_msg_id) {
    return producer_.poll_completion(group, user_msg_id);
  }

 private:
  Consumer<1, kWrittenInPieces> consumer_;
  Producer producer_;
  Message receive_{};  ///< taken and not completed yet, if has_receive_
  bool has_receive_ = false;
};

}  // namespace offload::kernels::comch
