#pragma once

#include <cstring>

#include "kernels/packets/datagram_worker.hpp"
#include "kernels/packets/semaphore.hpp"
#include "kernels/services/reverse.hpp"

/// The tests' bodies that work with queues, on a GPU and on the host. Every lane of each group
/// calls a body, with the group's number.
namespace offload::kernels::packets::test {

/// The results of one group.
struct alignas(64) Report {
  std::uint32_t failed;    ///< steps that went wrong
  std::uint32_t recycled;  ///< frames
  std::uint32_t count;
};

OFFLOAD_HOST_DEVICE inline WaitLimit long_wait() {
  return {20'000'000'000U};
}

/// A packet of a test: its number, then bytes that follow from that.
OFFLOAD_HOST_DEVICE inline std::uint32_t write_packet(std::uint8_t* bytes, std::uint32_t number) {
  const std::uint32_t length = 60 + number % 7;
  for (std::uint32_t i = 0; i < length; ++i) {
    bytes[i] = static_cast<std::uint8_t>(i < 4 ? number >> 8 * i : number);
  }
  return length;
}

/// Receives `count` packets, `most` at a time; `decide`(packet) decides about each.
template <class Group, class AnyQueue, class Decide>
OFFLOAD_HOST_DEVICE Report answer_all(const Group& group, const AnyQueue& queue,
                                      std::uint32_t count, std::uint32_t most,
                                      const Decide& decide) {
  Report report{};
  std::uint32_t received = 0;
  while (received < count) {
    const FrameBatch batch = receive(group, queue, received, most, long_wait());
    const WorkResult result = finish(group, queue, queue, received, batch, long_wait(), decide);
    if (batch.count == 0 || batch.count > most || result != WorkResult::done) ++report.failed;
    if (batch.count == 0) break;
    report.recycled += recycle(group, queue, long_wait());
  }
  report.count = received;
  return report;
}

/// Adds one to each byte behind the number of a packet whose number is even, and sends it; frees
/// the others.
template <class AnyQueue>
struct AnswerEven {
  AnyQueue queue;
  std::uint32_t count;
  std::uint32_t most;
  Report* reports;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, std::uint32_t number) const {
    const Report report = answer_all(group, queue, count, most, [](EthernetFrame& packet) {
      for (std::uint32_t i = 4; i < packet.length; ++i) ++packet.data[i];
      return packet.data[0] % 2 == 0 ? Verdict::send : Verdict::drop;
    });
    if (group.lane() == 0) reports[number] = report;
  }
};

/// Waits until `count` more frames have been returned.
template <class AnyQueue>
struct RecycleRest {
  AnyQueue queue;
  std::uint32_t count;
  Report* reports;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, std::uint32_t number) const {
    Report report{};
    Wait wait(long_wait());
    while (report.recycled < count) {
      report.recycled += recycle(group, queue, long_wait());
      if (group.from_first(wait.is_over() ? 1 : 0) != 0) break;
    }
    if (group.lane() == 0) reports[number] = report;
  }
};

/// Waits for a packet that never comes: with a limit, and until a stop word is set.
template <class AnyQueue>
struct ReceiveNothing {
  AnyQueue queue;
  const std::uint32_t* stop;
  Report* reports;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, std::uint32_t number) const {
    Report report{};
    report.count += receive(group, queue, 0, 8, {1000}).count;
    report.count += receive(group, queue, 0, 8, {~std::uint64_t{0} >> 1, stop}).count;
    if (group.lane() == 0) reports[number] = report;
  }
};

/// Sends new packets, numbered from 0, one a lane, until `count` are sent or no frame is left.
template <class AnyQueue>
struct SendNew {
  AnyQueue queue;
  std::uint32_t count;
  std::uint64_t nanoseconds;  ///< to wait for a frame
  Report* reports;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, std::uint32_t number) const {
    Report report{};
    for (std::uint32_t sent = 1; sent != 0 && report.count < count;) {
      const std::uint32_t first = report.count;
      sent = send_new(
          group, queue, count - first, {nanoseconds},
          [first](std::uint8_t* bytes, std::uint32_t i) { return write_packet(bytes, first + i); });
      report.count += sent;
    }
    if (group.lane() == 0) reports[number] = report;
  }
};

/// Each group sends `each` packets of the free frames at positions that give the order, and gives
/// up one of ten. Frame `number * each + i` of those to send belongs to the group.
template <class AnyQueue>
struct SendInOrder {
  AnyQueue queue;
  std::uint32_t each;
  Report* reports;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, std::uint32_t number) const {
    Report report{};
    const Frames& frames = queue.frames;
    for (std::uint32_t base = 0; base < each; base += group.size()) {
      const std::uint32_t left = each - base;
      const std::uint32_t count = left < group.size() ? left : group.size();
      const bool has_one = group.lane() < count;
      std::uint64_t position = 0;
      if (reserve(group, queue, count, long_wait(), position) != WorkResult::done) {
        ++report.failed;
        break;
      }
      FrameDescriptor packet = nothing_to_send();
      const auto at = static_cast<std::uint32_t>(position) + group.lane();
      if (has_one && at % 10 != 9) {
        const std::uint32_t frame = frames.frames_per_home + number * each + base + group.lane();
        packet.address = std::uint64_t{frame} * frames.frame_bytes;
        packet.options = 0;
        packet.length = write_packet(frames.bytes + packet.address, at);
      }
      const WorkResult sent = send_at(group, queue, position, has_one, packet, long_wait());
      if (sent != WorkResult::done) ++report.failed;
    }
    if (group.lane() == 0) reports[number] = report;
  }
};

/// The first group sends `count` new packets, and the others recycle frames until it has done so.
template <class AnyQueue>
struct SendWhileOthersRecycle {
  AnyQueue queue;
  std::uint32_t count;
  std::uint64_t* done;  ///< that the groups share
  Report* reports;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, std::uint32_t number) const {
    Report report{};
    if (number == 0) {
      const SendNew<AnyQueue> send{queue, count, long_wait().nanoseconds, reports};
      send(group, 0);
      group.sync();
      if (group.lane() == 0) rdma::store_release(done, 1);
      return;
    }
    Wait wait(long_wait());
    bool goes_on = true;
    while (goes_on) {
      report.recycled += recycle(group, queue, long_wait());
      const bool is_over = group.lane() == 0 && (rdma::load_acquire(done) != 0 || wait.is_over());
      goes_on = group.from_first(is_over ? 1 : 0) == 0;
    }
    if (group.lane() == 0) reports[number] = report;
  }
};

/// Answers UDP datagrams and pings in place, and drops all other packets.
template <class AnyQueue>
struct AnswerFrames {
  AnyQueue queue;
  std::uint32_t count;
  Report* reports;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, std::uint32_t number) const {
    const Report report = answer_all(group, queue, count, 32, [](EthernetFrame& packet) {
      const Headers headers = parse_frame(packet.data, packet.length);
      const bool answers =
          make_udp_echo(packet.data, headers, 0) || make_ping_reply(packet.data, headers);
      return answers ? Verdict::send : Verdict::drop;
    });
    if (group.lane() == 0) reports[number] = report;
  }
};

/// Runs the worker's loop until it has handled `count` datagrams.
template <class AnyQueue>
struct ServeDatagrams {
  DatagramWorkOf<AnyQueue> work;
  std::uint64_t count;
  DatagramStaging* staging;
  Report* reports;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, std::uint32_t number) const {
    Report report{};
    DatagramState state;
    const Reverse service;
    DatagramWorker<Group, Reverse, AnyQueue> worker(group, service, work, state, staging[number]);
    while (state.counted.datagrams < count && report.failed == 0) {
      bool had_work = false;
      if (!worker.turn(had_work) || !had_work) ++report.failed;
    }
    if (group.lane() == 0) reports[number] = report;
  }
};

/// Takes `count` numbers from one semaphore and hands their squares to another, in the same order;
/// group i of n the items i, i + n...
struct SquareItems {
  Semaphore from;
  Semaphore to;
  std::uint32_t count;
  std::uint32_t groups;
  Report* reports;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, std::uint32_t number) const {
    Report report{};
    for (std::uint64_t i = number; i < count && report.failed == 0; i += groups) {
      ItemStatus status{};
      if (wait_for_item(group, from, i, true, long_wait(), status) != WorkResult::done)
        ++report.failed;
      std::uint64_t value = 0;
      std::memcpy(&value, from.item(i), sizeof value);
      set_status(group, from, i, ItemStatus::free);
      const ItemStatus taken = status;
      if (wait_for_item(group, to, i, false, long_wait(), status) != WorkResult::done)
        ++report.failed;
      value *= value;
      if (group.lane() == 0) std::memcpy(to.item(i), &value, sizeof value);
      set_status(group, to, i, taken);
    }
    if (group.lane() == 0) reports[number] = report;
  }
};

/// Each lane parses frames and stores the headers that it found.
struct ParseEach {
  const std::uint8_t* frames;  ///< of `stride` bytes each
  const std::uint32_t* lengths;
  Headers* found;
  std::uint32_t count;
  std::uint32_t stride;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, std::uint32_t) const {
    for (std::uint32_t i = group.lane(); i < count; i += group.size()) {
      found[i] = parse_frame(frames + i * stride, lengths[i]);
    }
  }
};

}  // namespace offload::kernels::packets::test
