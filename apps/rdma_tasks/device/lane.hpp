#pragma once

#include <cstddef>
#include <cstdint>

#include "apps/rdma_tasks/device/pattern_words.hpp"
#include "kernels/rdma_tasks/put.hpp"
#include "kernels/rdma_tasks/receive.hpp"

/// The input and output of a lane: plain data, in memory that the lanes' threads reach. A lane is a
/// warp of a kernel, or a thread of a CPU. C++17, as device code is.
namespace offload::rdma_tool {

/// The maximum number of lanes that share one queue.
inline constexpr std::uint32_t kMostLanes = 16;

/// Words of 8 bytes by which the ends report their progress to each other, one in each cache line:
/// a signal of each lane of the peer, its credits, and results of a lane's adds.
struct DeviceWords {
  static constexpr std::size_t kBytes = (2 * std::size_t{kMostLanes} + 1) * 64;

  OFFLOAD_HOST_DEVICE static constexpr std::size_t signal(std::uint32_t lane) noexcept {
    return lane * std::size_t{64};
  }
  OFFLOAD_HOST_DEVICE static constexpr std::size_t found(std::uint32_t lane) noexcept {
    return (kMostLanes + lane) * std::size_t{64};
  }
  OFFLOAD_HOST_DEVICE static constexpr std::size_t credits() noexcept {
    return 2 * std::size_t{kMostLanes} * 64;
  }
};

/// The memory of an endpoint, of which both ends have the same layout: where a lane finds what. All
/// offsets are multiples of 64.
struct DeviceMemory {
  std::byte* here = nullptr;
  std::uint32_t lkey = 0;
  kernels::rdma::RemotePointer there{};  ///< the begin of the peer's
  std::size_t stride = 0;                ///< of slots and receives
  std::size_t in_flight = 0;             ///< outgoing slots
  std::size_t slots = 0;                 ///< incoming ones, behind them
  std::size_t words = 0;                 ///< where DeviceWords begin
  std::size_t receives = 0;              ///< and the receives

  [[nodiscard]] OFFLOAD_HOST_DEVICE kernels::rdma::LocalBuffer local(std::size_t offset,
                                                                     std::size_t length) const {
    return {reinterpret_cast<std::uint64_t>(here) + offset, static_cast<std::uint32_t>(length),
            lkey};
  }
  [[nodiscard]] OFFLOAD_HOST_DEVICE kernels::rdma::RemotePointer remote(std::size_t offset) const {
    return {there.address + offset, there.rkey};
  }
  [[nodiscard]] OFFLOAD_HOST_DEVICE std::size_t outgoing(std::uint64_t operation) const {
    return operation % in_flight * stride;
  }
  [[nodiscard]] OFFLOAD_HOST_DEVICE std::size_t incoming(std::uint64_t slot) const {
    return (in_flight + slot % slots) * stride;
  }
  /// Messages that a peer may send beyond its last credit, and receives that are posted for them.
  [[nodiscard]] OFFLOAD_HOST_DEVICE std::uint64_t window() const { return 2 * in_flight; }
  /// The buffer of a connection's receive `number`, counted from the start.
  [[nodiscard]] OFFLOAD_HOST_DEVICE kernels::rdma::LocalBuffer receive_buffer(std::uint64_t number,
                                                                              bool has_data) const {
    if (!has_data) return {};
    return local(receives + number % window() * stride, stride);
  }
};

/// The work of a connection's lanes in one launch: the iterations from begin to end.
struct DeviceWork {
  enum class Kind : std::uint8_t { send, write, put_signal, read, swap, add, copy };
  Kind kind = Kind::send;
  bool has_immediate = false;
  bool is_requester = true;
  bool sends = true;  ///< first, or alone
  bool verify = true;
  std::uint32_t size = 0;
  std::uint32_t lanes = 1;  ///< of the end that posts; lane i has each lanes-th iteration from i on
  std::uint32_t connection = 0;
  std::uint64_t seed = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  DeviceMemory memory;
  kernels::rdma::WaitLimit limit{};
};

/// The last action or wait of a lane.
enum class Step : std::uint32_t { begin, message, credit, room, end };
/// The fault of a received message.
enum class Wrong : std::uint32_t { nothing, length, immediate, kind, data };

/// The outcome of a lane.
struct DeviceOutcome {
  kernels::rdma::WorkResult result = kernels::rdma::WorkResult::done;
  Step step = Step::begin;
  kernels::rdma::Syndrome syndrome{};  ///< of WorkResult::failed
  Wrong wrong = Wrong::nothing;        ///< about the message of `iteration`, whatever the result
  Mismatch mismatch{};                 ///< of Wrong::data
  std::uint64_t iteration = 0;
  std::uint64_t checked = 0;

  [[nodiscard]] bool is_good() const noexcept {
    return result == kernels::rdma::WorkResult::done && wrong == Wrong::nothing;
  }
};

/// For an error's text.
inline const char* words_of(Step step) noexcept {
  switch (step) {
    case Step::begin: break;
    case Step::message: return "a message from the peer";
    case Step::credit: return "a credit from the peer";
    case Step::room: return "room for an operation";
    case Step::end: return "the completion of an operation";
  }
  return "the first operation";
}
inline const char* words_of(Wrong wrong) noexcept {
  switch (wrong) {
    case Wrong::nothing: break;
    case Wrong::length: return "a message has the wrong length";
    case Wrong::immediate: return "the immediate data is wrong";
    case Wrong::kind: return "a message has the wrong kind";
    case Wrong::data: return "a byte is wrong";
  }
  return "nothing";
}

/// The queues of a connection, as the device functions have them.
struct DeviceQueues {
  kernels::rdma::ExclusiveQueue sends;
  kernels::rdma::SharedQueue shared;  ///< the same queue, where several lanes post
  kernels::rdma::ExclusiveReceives receives;
};

/// One lane of a launch. Its pointers address memory that the lane's threads can reach.
struct LaneRun {
  DeviceWork work;
  std::uint32_t lane = 0;
  DeviceQueues* queues = nullptr;    ///< the positions, which outlast a launch, are in there
  std::uint64_t* tickets = nullptr;  ///< `in_flight` words, only for this lane
  /// ns of each iteration, half a round trip where the peer answers, 0 where there was no begin;
  /// null for none.
  std::uint64_t* times = nullptr;
  DeviceOutcome outcome;
};

}  // namespace offload::rdma_tool
