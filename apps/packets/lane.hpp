#pragma once

#include <cstdint>

#include "kernels/group.hpp"
#include "kernels/packets/answers.hpp"
#include "kernels/packets/martian.hpp"
#include "kernels/packets/queue.hpp"
#include "kernels/packets/semaphore.hpp"

/// The work of a thread, or of a warp, with one queue, in one source for CPU and GPU: C++17, and
/// nothing of lib/.
namespace offload::packets {

enum class Command : std::uint32_t { count, echo, ping, filter, send, capture };

/// The counters of a lane, which alone writes them, as whole words. The CPU reads them at any time.
struct LaneCounts {
  std::uint64_t packets;
  std::uint64_t bytes;
  std::uint64_t answered;
  std::uint64_t sent;
  std::uint64_t missed;     ///< items that no room was left for
  std::uint64_t late_ns;    ///< of `send`: how long after their times packets were sent, summed up
  std::uint64_t latest_ns;  ///< and the most of it
  std::uint64_t errors[kernels::packets::kFrameErrors];
  std::uint64_t martians[kernels::packets::kMartians];
};

/// An item that is handed to the CPU.
struct PacketItem {
  enum class Kind : std::uint32_t { statistics, http_get, captured };
  static constexpr std::uint32_t kMostBytes = 2048;

  Kind kind;
  std::uint32_t length;   ///< of the packet, which `bytes` has the begin of
  std::uint64_t packets;  ///< since the last statistics, as are the next
  std::uint64_t icmp, udp, tcp, other;
  std::uint8_t bytes[kMostBytes];
};

/// Frames to be sent: `count` of them, one behind the other, each in kMostBytes.
struct Templates {
  const std::uint8_t* frames;
  const std::uint32_t* lengths;
  std::uint32_t count;
};

struct LaneWork {
  Command command;
  const kernels::packets::Queue* queue;
  const std::uint32_t* stop;  ///< not 0: exit
  LaneCounts* counts;         ///< of each lane of the group
  kernels::packets::Semaphore items;
  Templates templates;
  const kernels::packets::HostAddresses* host;  ///< who answers
  std::uint64_t statistics_every;               ///< packets
  std::uint64_t interval_ns;   ///< from packet to packet of `send`; 0: as fast as it goes
  std::uint64_t most_packets;  ///< of `send`; 0: no end
  std::uint32_t port;          ///< of `echo`; 0: any
  std::uint32_t batch;         ///< packets that are received at a time
  std::uint64_t wait_ns;       ///< for packets, until the next check of the stop word
};

/// A count as the CPU may read it. Relaxed: it says nothing of others.
OFFLOAD_HOST_DEVICE inline void show(std::uint64_t& shown, std::uint64_t value) {
  kernels::store_relaxed_sys(&shown, value);
}

/// Returns whether the lane must exit. Relaxed: it orders nothing.
OFFLOAD_HOST_DEVICE inline bool is_stopped(const std::uint32_t* stop) {
  return kernels::load_relaxed_sys(stop) != 0;
}

OFFLOAD_HOST_DEVICE inline void copy_bytes(std::uint8_t* to, const std::uint8_t* from,
                                           std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) to[i] = from[i];
}

/// One group with its queue: a thread of the CPU or a warp.
template <class Group>
class Lane {
 public:
  using WorkResult = kernels::packets::WorkResult;

  OFFLOAD_HOST_DEVICE Lane(const Group& group, const LaneWork& work)
      : group_(group), work_(work), limit_{kPatience, work.stop} {}

  /// Serves until the stop word is set. `after`(whether there was work) is called after each step,
  /// where a CPU has a system call to make.
  template <class After>
  OFFLOAD_HOST_DEVICE void run(const After& after) {
    while (!group_.all(is_stopped(work_.stop))) {
      had_work_ = false;
      const bool goes_on = work_.command == Command::send ? send() : receive();
      after(had_work_);
      if (!goes_on) return;
    }
  }

 private:
  /// For rings that others of the same program hold: no wait in normal running.
  static constexpr std::uint64_t kPatience = 1'000'000'000;
  using Headers = kernels::packets::Headers;
  using Martian = kernels::packets::Martian;
  using EthernetFrame = kernels::packets::EthernetFrame;
  using Verdict = kernels::packets::Verdict;

  OFFLOAD_HOST_DEVICE bool receive() {
    using namespace kernels::packets;
    const Queue& queue = *work_.queue;
    const FrameBatch batch = kernels::packets::receive(group_, queue, received_, work_.batch,
                                                       {work_.wait_ns, work_.stop});
    if (batch.count != 0 && work_.command == Command::filter) filter(batch);
    if (batch.count != 0 && work_.command == Command::capture) capture(batch);
    const WorkResult result = finish(group_, queue, queue, received_, batch, limit_,
                                     [this](EthernetFrame& packet) { return decide(packet); });
    const std::uint32_t recycled = recycle(group_, queue.frames, queue.completions, limit_);
    had_work_ = batch.count + recycled != 0;
    if (batch.count != 0) show_counts();
    return result == WorkResult::done;
  }

  OFFLOAD_HOST_DEVICE Verdict decide(EthernetFrame& packet) {
    ++packets_;
    bytes_ += packet.length;
#if defined(__CUDA_ARCH__)
    // By 16 bytes there and back: a GPU that reads host memory byte for byte waits for each.
    alignas(16) std::uint8_t staged[PacketItem::kMostBytes];
    const std::uint32_t pieces = (packet.length + 15) / 16;
    const bool fits = packet.address % 16 == 0 && pieces * 16 <= PacketItem::kMostBytes &&
                      packet.address % work_.queue->frames.frame_bytes + pieces * 16 <=
                          work_.queue->frames.frame_bytes;
    if (fits) {
      const kernels::SingleLane alone;
      kernels::packets::copy_pieces<8>(alone, staged, packet.data, packet.length);
      const Verdict verdict = answer(staged, packet.length);
      if (verdict == Verdict::send) {
        kernels::packets::copy_pieces<8>(alone, packet.data, staged, packet.length);
      }
      return verdict;
    }
#endif
    return answer(packet.data, packet.length);
  }

  OFFLOAD_HOST_DEVICE Verdict answer(std::uint8_t* frame, std::uint32_t length) {
    const Headers headers = kernels::packets::parse_frame(frame, length);
    LaneCounts& counts = work_.counts[group_.lane()];
    if (headers.error != kernels::packets::FrameError::none) {
      add_one(counts.errors[static_cast<std::uint32_t>(headers.error)]);
      return Verdict::drop;
    }
    if (work_.command != Command::echo && work_.command != Command::ping) return Verdict::drop;
    const Martian martian = why_not_answered(frame, headers);
    if (martian != Martian::none) {
      add_one(counts.martians[static_cast<std::uint32_t>(martian)]);
      return Verdict::drop;
    }
    const bool answered = work_.command == Command::echo ? make_udp_echo(frame, headers, work_.port)
                                                         : make_ping_reply(frame, headers);
    if (!answered) return Verdict::drop;
    kernels::packets::set_source(frame, work_.host->ethernet);
    ++answered_;
    return Verdict::send;
  }

  OFFLOAD_HOST_DEVICE Martian why_not_answered(const std::uint8_t* frame,
                                               const Headers& headers) const {
    if (headers.ip == 0) return Martian::none;  // neither a datagram nor a ping
    const Martian martian = martian_of(frame, headers, *work_.host);
    const bool is_echo = work_.command == Command::echo && headers.is_whole(kernels::packets::kUdp);
    return martian == Martian::none && is_echo && may_loop(frame, headers) ? Martian::loop
                                                                           : martian;
  }

  OFFLOAD_HOST_DEVICE static void add_one(std::uint64_t& shown) {
    show(shown, shown + 1);
  }

  OFFLOAD_HOST_DEVICE void show_counts() {
    LaneCounts& counts = work_.counts[group_.lane()];
    show(counts.packets, packets_);
    show(counts.bytes, bytes_);
    show(counts.answered, answered_);
    show(counts.sent, sent_);
    show(counts.missed, missed_);
    show(counts.late_ns, late_ns_);
    show(counts.latest_ns, latest_ns_);
  }

  /// Calls `look`(packet, whether there is one) for each packet of a batch, one a lane, every lane
  /// as often.
  template <class Look>
  OFFLOAD_HOST_DEVICE void for_each(const kernels::packets::FrameBatch& batch, const Look& look) {
    for (std::uint32_t base = 0; base < batch.count; base += group_.size()) {
      EthernetFrame packet;
      if (base + group_.lane() < batch.count) {
        packet = frame_at(*work_.queue, batch, base + group_.lane());
      }
      look(packet, packet.data != nullptr);
    }
  }

  /// Hands over an item of each lane that `has_one`; `write` fills it.
  template <class Write>
  OFFLOAD_HOST_DEVICE void give(bool has_one, const Write& write) {
    const auto fill = [&write](std::uint8_t* item) { write(*reinterpret_cast<PacketItem*>(item)); };
    // The CPU has this long to make room; then packets are not waited with.
    constexpr std::uint64_t kRoomWait = 1'000'000;
    const bool given =
        hand_over(group_, work_.items, next_item_, has_one, {kRoomWait, work_.stop}, fill) != 0;
    if (has_one && !given) ++missed_;
  }

  OFFLOAD_HOST_DEVICE static void copy_packet(PacketItem& item, const EthernetFrame& packet) {
    item.length = packet.length;
    copy_bytes(item.bytes, packet.data,
               packet.length < PacketItem::kMostBytes ? packet.length : PacketItem::kMostBytes);
  }

  OFFLOAD_HOST_DEVICE void capture(const kernels::packets::FrameBatch& batch) {
    for_each(batch, [this](const EthernetFrame& packet, bool is_there) {
      give(is_there, [&packet](PacketItem& item) {
        item.kind = PacketItem::Kind::captured;
        copy_packet(item, packet);
      });
    });
  }

  OFFLOAD_HOST_DEVICE static bool is_http_get(const EthernetFrame& packet, const Headers& headers) {
    return headers.is_whole(kernels::packets::kTcp) && headers.payload_length() >= 4 &&
           kernels::packets::load_32(packet.data + headers.payload) == 0x4745'5420;  // "GET "
  }

  OFFLOAD_HOST_DEVICE void filter(const kernels::packets::FrameBatch& batch) {
    for_each(batch, [this](const EthernetFrame& packet, bool is_there) {
      Headers headers;
      if (is_there) headers = kernels::packets::parse_frame(packet.data, packet.length);
      const std::uint32_t protocol = headers.protocol;
      const bool is_icmp =
          protocol == kernels::packets::kIcmp || protocol == kernels::packets::kIcmpv6;
      const bool is_udp = protocol == kernels::packets::kUdp;
      const bool is_tcp = protocol == kernels::packets::kTcp;
      icmp_ += sum(is_icmp);
      udp_ += sum(is_udp);
      tcp_ += sum(is_tcp);
      seen_ += sum(is_there);
      give(is_there && is_http_get(packet, headers), [&packet](PacketItem& item) {
        item.kind = PacketItem::Kind::http_get;
        copy_packet(item, packet);
      });
    });
    if (seen_ < work_.statistics_every) return;
    give(group_.lane() == 0, [this](PacketItem& item) {
      item.kind = PacketItem::Kind::statistics;
      item.length = 0;
      item.packets = seen_;
      item.icmp = icmp_;
      item.udp = udp_;
      item.tcp = tcp_;
      item.other = seen_ - icmp_ - udp_ - tcp_;
    });
    seen_ = icmp_ = udp_ = tcp_ = 0;
  }

  OFFLOAD_HOST_DEVICE std::uint32_t sum(bool predicate) {
    std::uint32_t before = 0;
    return kernels::packets::sum_of(group_, predicate ? 1U : 0U, before);
  }

  /// Sends what is due, one packet a lane at most. False: all are sent.
  OFFLOAD_HOST_DEVICE bool send() {
    const std::uint64_t now = kernels::from_first_64(group_, kernels::rdma::now_ns());
    if (begin_ns_ == 0) begin_ns_ = now;
    std::uint64_t due = group_.size();
    if (work_.interval_ns != 0) due = (now - begin_ns_) / work_.interval_ns + 1 - all_sent_;
    if (work_.most_packets != 0 && work_.most_packets - all_sent_ < due) {
      due = work_.most_packets - all_sent_;
      if (due == 0) return false;
    }
    if (due == 0) return true;
    const auto most = static_cast<std::uint32_t>(due < group_.size() ? due : group_.size());
    const std::uint32_t count = kernels::packets::send_new(
        group_, *work_.queue, most, {work_.wait_ns, work_.stop},
        [this](std::uint8_t* frame, std::uint32_t i) { return write_frame(frame, all_sent_ + i); });
    if (group_.lane() < count) {
      ++sent_;
      const std::uint64_t late =
          work_.interval_ns == 0
              ? 0
              : now - begin_ns_ - (all_sent_ + group_.lane()) * work_.interval_ns;
      late_ns_ += late;
      if (late > latest_ns_) latest_ns_ = late;
    }
    all_sent_ += count;
    show_counts();
    return true;
  }

  /// The next of the templates, with its number as the first 8 bytes of a payload that has room.
  OFFLOAD_HOST_DEVICE std::uint32_t write_frame(std::uint8_t* frame, std::uint64_t number) const {
    const auto which = static_cast<std::uint32_t>(number % work_.templates.count);
    const std::uint32_t length = work_.templates.lengths[which];
    copy_bytes(frame, work_.templates.frames + which * PacketItem::kMostBytes, length);
    const Headers headers = kernels::packets::parse_headers(frame, length);
    if (headers.payload_length() >= 8) {
      for (std::uint32_t i = 0; i < 8; ++i) {
        frame[headers.payload + i] = static_cast<std::uint8_t>(number >> (56 - 8 * i));
      }
    }
    write_udp_checksum(frame, headers);
    return length;
  }

  const Group& group_;
  const LaneWork& work_;
  kernels::packets::WaitLimit limit_;
  std::uint32_t received_ = 0;
  std::uint64_t next_item_ = 0;
  // The counts of this lane.
  std::uint64_t packets_ = 0, bytes_ = 0, answered_ = 0, sent_ = 0, missed_ = 0;
  std::uint64_t late_ns_ = 0, latest_ns_ = 0;
  // The counts of the group, the same in each lane.
  std::uint64_t seen_ = 0, icmp_ = 0, udp_ = 0, tcp_ = 0;
  std::uint64_t begin_ns_ = 0, all_sent_ = 0;
  bool had_work_ = false;
};

}  // namespace offload::packets
