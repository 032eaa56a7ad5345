#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/memory_order.hpp"
#include "kernels/packets/datagram.hpp"
#include "kernels/packets/queue.hpp"

/// The worker loop for requests in datagrams, the same on GPU and CPU: a group has a queue of an
/// Ethernet port, and answers the requests that arrive there.
namespace offload::kernels::packets {

/// The counters of a group. Only the group writes, whole words at a time; any thread may read them.
struct alignas(64) DatagramCounts {
  std::uint64_t datagrams;  ///< the sum of answered, refused, malformed and martians
  std::uint64_t answered;
  std::uint64_t refused;
  std::uint64_t malformed;
  std::uint64_t bad_frames;      ///< of the malformed: with a wrong length or checksum in a header
  std::uint64_t received_bytes;  ///< of frames with datagrams
  std::uint64_t sent_bytes;      ///< of frames with answers
  std::uint64_t busy_ns;         ///< from when datagrams were found until they were finished
  std::uint64_t poll_ns;         ///< looking for them
  std::uint64_t martians[kMartians];  ///< by Martian
};

/// The input of a group. `AnyQueue`: Queue, or another type with its functions.
template <class AnyQueue>
struct DatagramWorkOf {
  const AnyQueue* queue;
  const std::uint32_t* stop;  ///< not 0: exit
  DatagramCounts* counts;
  std::uint64_t wait_ns;  ///< for datagrams, until the next read of the stop word
  std::uint32_t batch;    ///< datagrams that a thread receives at a time; a warp: as it has lanes
  std::uint32_t mtu;
  const HostAddresses* host;  ///< who answers
};
using DatagramWork = DatagramWorkOf<Queue>;

/// The longest frame: frames of AF_XDP have 2048 bytes.
inline constexpr std::uint32_t kMostFrame = 2048;

/// The memory that a group works in: shared memory on a GPU. A frame lies in it as it does in its
/// own memory, modulo 16.
struct alignas(16) DatagramStaging {
  std::uint8_t request[kMostFrame + 16 + kSlack];
  std::uint8_t answer[kMostFrame + 16 + kSlack];
};

/// A group's state from turn to turn; all zero at first.
struct DatagramState {
  std::uint32_t received = 0;
  std::uint64_t turned = 0;  ///< when the turn before ended, or 0
  DatagramCounts counted{};
};

/// The work of one group with one queue.
template <class Group, class Service, class AnyQueue = Queue>
class DatagramWorker {
 public:
  OFFLOAD_HOST_DEVICE DatagramWorker(const Group& group, const Service& service,
                                     const DatagramWorkOf<AnyQueue>& work, DatagramState& state,
                                     DatagramStaging& staging)
      : group_(group), service_(service), work_(work), state_(state), staging_(staging) {}

  /// Returns whether the group must exit. Relaxed: it orders nothing.
  OFFLOAD_HOST_DEVICE bool is_stopped() const {
    return group_.all(load_relaxed_sys(work_.stop) != 0);
  }

  /// Answers the datagrams that have come, up to a batch; waits for them as long as the work says.
  /// `had_work`: whether a datagram came or was sent. Returns false if a ring is stuck, or a card's
  /// queue is in error.
  OFFLOAD_HOST_DEVICE bool turn(bool& had_work) {
    const AnyQueue& queue = *work_.queue;
    const bool alone = group_.size() == 1;
    if (state_.turned == 0) state_.turned = rdma::now_ns();
    const FrameBatch batch =
        receive(group_, queue, state_.received, alone ? work_.batch : group_.size(),
                {work_.wait_ns, work_.stop});
    const std::uint64_t found = rdma::now_ns();
    state_.counted.poll_ns += found - state_.turned;
    // Several lanes work on each datagram together; then each says what becomes of one.
    Verdict verdict = Verdict::drop;
    std::uint32_t length = 0;
    for (std::uint32_t i = 0; !alone && i < batch.count; ++i) {
      EthernetFrame packet = frame_at(queue, batch, i);
      const Verdict of_this = packet.data == nullptr ? Verdict::drop : answer(packet);
      if (group_.lane() != i) continue;
      verdict = of_this;
      length = packet.length;
    }
    const WaitLimit limit{kPatience, work_.stop};
    const WorkResult result =
        finish(group_, queue, queue, state_.received, batch, limit, [&](EthernetFrame& packet) {
          if (alone) return answer(packet);
          packet.length = length;
          return verdict;
        });
    const std::uint32_t recycled = recycle(group_, queue, limit);
    had_work = batch.count + recycled != 0;
    state_.turned = rdma::now_ns();
    state_.counted.busy_ns += state_.turned - found;
    show_counts(batch.count != 0);
    return result == WorkResult::done;
  }

 private:
  /// For rings that other groups fill too: normally there is no wait, but a busy machine may stop
  /// the thread of another group in the middle of its update, for seconds.
  static constexpr std::uint64_t kPatience = 30'000'000'000;

  /// Replaces the request by the answer. Every lane must call it, with the same packet.
  OFFLOAD_HOST_DEVICE Verdict answer(EthernetFrame& packet) {
    const Frames& frames = work_.queue->frames;
    const auto in_frame = static_cast<std::uint32_t>(packet.address & (frames.frame_bytes - 1));
    DatagramAnswer made;
    if (packet.length <= kMostFrame && in_frame + kSlack < frames.frame_bytes) {
      const std::uint32_t left = frames.frame_bytes - in_frame - kSlack;
      made = answer_at(packet, left < kMostFrame ? left : kMostFrame);
    }
    DatagramCounts& counted = state_.counted;
    ++counted.datagrams;
    counted.received_bytes += packet.length;
    if (made.outcome == Datagram::malformed) {
      ++counted.malformed;
      if (made.error != FrameError::none) ++counted.bad_frames;
      return Verdict::drop;
    }
    if (made.outcome == Datagram::martian) {
      ++counted.martians[static_cast<std::uint32_t>(made.martian)];
      return Verdict::drop;
    }
    ++(made.outcome == Datagram::answered ? counted.answered : counted.refused);
    counted.sent_bytes += made.length;
    packet.length = made.length;
    return Verdict::send;
  }

  OFFLOAD_HOST_DEVICE DatagramAnswer answer_at(const EthernetFrame& packet, std::uint32_t room) {
    group_.sync();  // the staging is free: the datagram before is written
#if defined(__CUDA_ARCH__)
    // By 16 bytes there and back, a lane each: the frame is memory of the host.
    const auto shift = static_cast<std::uint32_t>(packet.address % 16);
    copy_pieces<4>(group_, staging_.request, packet.data - shift, shift + packet.length);
    group_.sync();
    const DatagramAnswer made =
        answer_datagram(group_, service_, staging_.request + shift, packet.length,
                        staging_.answer + shift, room, work_.mtu, *work_.host);
    if (made.length != 0) {
      copy_pieces<4>(group_, packet.data - shift, staging_.answer, shift + made.length);
    }
    return made;
#else
    if (group_.lane() == 0) std::memcpy(staging_.request, packet.data, packet.length);
    group_.sync();
    return answer_datagram(group_, service_, staging_.request, packet.length, packet.data, room,
                           work_.mtu, *work_.host);
#endif
  }

  /// Publishes the counts; after a turn without datagrams only the time has changed.
  OFFLOAD_HOST_DEVICE void show_counts(bool had_datagrams) const {
    if (group_.lane() != 0) return;
    const DatagramCounts& counted = state_.counted;
    show(work_.counts->busy_ns, counted.busy_ns);
    show(work_.counts->poll_ns, counted.poll_ns);
    if (!had_datagrams) return;
    show(work_.counts->datagrams, counted.datagrams);
    show(work_.counts->answered, counted.answered);
    show(work_.counts->refused, counted.refused);
    show(work_.counts->malformed, counted.malformed);
    show(work_.counts->bad_frames, counted.bad_frames);
    for (std::uint32_t i = 0; i < kMartians; ++i) {
      show(work_.counts->martians[i], counted.martians[i]);
    }
    show(work_.counts->received_bytes, counted.received_bytes);
    show(work_.counts->sent_bytes, counted.sent_bytes);
  }

  /// Relaxed, as its reader's load: the counts are independent of each other.
  OFFLOAD_HOST_DEVICE static void show(std::uint64_t& shown, std::uint64_t value) {
    store_relaxed_sys(&shown, value);
  }

  const Group& group_;
  const Service& service_;
  const DatagramWorkOf<AnyQueue>& work_;
  DatagramState& state_;
  DatagramStaging& staging_;
};

}  // namespace offload::kernels::packets
