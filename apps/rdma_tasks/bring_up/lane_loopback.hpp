#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "apps/rdma_tasks/device/lane.hpp"
#include "apps/rdma_tasks/device/launcher.hpp"
#include "apps/rdma_tasks/device/rings.hpp"
#include "apps/rdma_tasks/environment.hpp"
#include "core/clock.hpp"
#include "memory/region.hpp"

namespace offload::rdma_tool {

/// Two connected ends whose rings lanes post to, as a back end of offload-worker does: a lane is a
/// warp of the GPU, or a thread. Its operations return what they found as text, and throw Error:
/// unexpected for wrong data, io_failed with the syndrome of an operation, timed_out, and that of
/// the environment. After an Error it cannot be used. One thread.
class LaneLoopback {
 public:
  /// `rings`: card or proxy. Throws Error as make_card_rings() and make_proxy_rings().
  LaneLoopback(Environment& environment, Rings rings);
  LaneLoopback& operator=(LaneLoopback&&) = delete;

  /// Returns what carries out the entries.
  [[nodiscard]] std::string carrier() const { return one_.rings->carrier(); }
  /// Writes messages, each checked.
  std::string write();
  /// Writes data, then adds to a word that the peer polls: its lane checks the data.
  std::string flag_by_atomic();
  /// Writes data with an immediate: the peer's lane checks the data after the completion.
  std::string flag_by_immediate();
  /// Measures entries per second for about `time`, and the time of a single one.
  std::string rate(core::Duration time);

 private:
  /// One end: its memory, its rings and the positions in them.
  struct End {
    End(Environment& environment, Rings kind, const char* name);

    memory::MemoryRegion region;
    std::unique_ptr<LaneRings> rings;
    LaneArray<DeviceQueues> queues;
  };
  /// One iteration after the other, or as many as fit.
  struct Load {
    std::size_t in_flight = 1;
    std::uint64_t iterations = 0;
    std::uint32_t size = 0;
    bool verify = true;
  };

  [[nodiscard]] DeviceMemory memory_of(const End& end, const End& other,
                                       std::size_t in_flight) const;
  [[nodiscard]] DeviceWork work_of(DeviceWork::Kind kind, const End& end, const Load& load) const;
  /// Runs a lane of one_ alone, which writes to its own memory through other_.
  void copy(const Load& load, std::uint64_t* times = nullptr);
  /// Runs a lane of each end, which answer each other.
  void exchange(DeviceWork::Kind kind, bool has_immediate);
  void launch(std::span<const DeviceWork> works, std::uint64_t* times);

  Environment& environment_;
  End one_;
  End other_;
};

}  // namespace offload::rdma_tool
