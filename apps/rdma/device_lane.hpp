#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/rdma/options.hpp"
#include "apps/rdma/pattern.hpp"
#include "kernels/group.hpp"
#include "kernels/rdma/put.hpp"
#include "kernels/rdma/receive.hpp"

namespace offload::rdma_tool {

/// Words of 8 bytes by which the ends tell each other how far they are, one a cache line: a signal
/// of each lane of the peer, the peer's credits, and room for what a lane's adds found.
class DeviceWords {
 public:
  static constexpr std::size_t kBytes = (2 * std::size_t{kMostLanes} + 1) * 64;

  static constexpr std::size_t signal(std::uint32_t lane) noexcept { return lane * 64UL; }
  static constexpr std::size_t found(std::uint32_t lane) noexcept {
    return (kMostLanes + lane) * 64UL;
  }
  static constexpr std::size_t credits() noexcept { return 2 * std::size_t{kMostLanes} * 64; }
};

/// The memory of an endpoint, of which both ends have the same layout: where a lane finds what.
struct DeviceMemory {
  std::byte* here = nullptr;
  std::uint32_t lkey = 0;
  kernels::rdma::RemoteBuffer there{};  ///< the begin of the peer's
  std::size_t stride = 0;               ///< of slots and receives
  std::size_t in_flight = 0;            ///< outgoing slots
  std::size_t slots = 0;                ///< incoming ones, behind them
  std::size_t words = 0;                ///< where DeviceWords begin
  std::size_t receives = 0;             ///< and the receives

  [[nodiscard]] kernels::rdma::LocalBuffer local(std::size_t offset, std::size_t length) const {
    return {reinterpret_cast<std::uint64_t>(here) + offset, static_cast<std::uint32_t>(length),
            lkey};
  }
  [[nodiscard]] kernels::rdma::RemoteBuffer remote(std::size_t offset) const {
    return {there.address + offset, there.rkey};
  }
  [[nodiscard]] std::size_t outgoing(std::uint64_t operation) const {
    return operation % in_flight * stride;
  }
  [[nodiscard]] std::size_t incoming(std::uint64_t slot) const {
    return (in_flight + slot % slots) * stride;
  }
};

/// What the lanes of a connection do in one launch: the iterations from begin to end.
struct DeviceWork {
  enum class Kind : std::uint8_t { send, write, put_signal, read, swap, add };
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

/// What became of a lane.
struct DeviceOutcome {
  kernels::rdma::Result result = kernels::rdma::Result::done;
  const char* what = "";               ///< was done or waited for last
  kernels::rdma::Syndrome syndrome{};  ///< of Result::failed
  const char* wrong = nullptr;         ///< about the message of `iteration`, whatever the result
  std::optional<Mismatch> mismatch;
  std::uint64_t iteration = 0;
  std::uint64_t checked = 0;

  [[nodiscard]] bool is_good() const noexcept {
    return result == kernels::rdma::Result::done && wrong == nullptr && !mismatch;
  }
};

/// The queues of a connection, as the device functions have them.
struct DeviceQueues {
  kernels::rdma::ExclusiveQueue sends;
  kernels::rdma::SharedQueue shared;  ///< the same queue, where several lanes post
  kernels::rdma::ExclusiveReceives receives;
};

/// Does one lane's part, with the functions of kernels/rdma alone, each of whose waits has a limit.
/// `times`: ns of each iteration, half a round trip where the peer answers; empty for none, and 0
/// where there was no begin. One thread a lane; several lanes only of an end that posts.
DeviceOutcome run_lane(const DeviceWork& work, std::uint32_t lane, DeviceQueues& queues,
                       std::span<std::uint64_t> times);

/// The buffer of a connection's receive `number`, counted from the start.
kernels::rdma::LocalBuffer receive_buffer(const DeviceMemory& memory, std::uint64_t number,
                                          bool has_data);

}  // namespace offload::rdma_tool
