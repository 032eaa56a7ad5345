#pragma once

#include <memory>
#include <string>

#include "apps/rdma_tasks/environment.hpp"
#include "apps/rdma_tasks/options.hpp"
#include "rdma/queues/queue_memory.hpp"
#include "rdma_tasks/connection.hpp"

namespace offload::rdma_tool {

/// A queue pair whose rings lanes post to in the format of mlx5, and what carries out their
/// entries: the card itself, or an emulator in turns of the engine. The destructor stops it in
/// bounded time. One thread, except for the rings, which belong to the lanes while they run.
class LaneRings {
 public:
  LaneRings& operator=(LaneRings&&) = delete;
  virtual ~LaneRings() = default;

  /// Returns the handles with the addresses of the lanes.
  [[nodiscard]] virtual const rdma::QueuePairMemory& queues() const noexcept = 0;
  [[nodiscard]] virtual rdma::ConnectionDescriptor descriptor() const = 0;
  /// Connects the queue pair; entries are carried out from here on. Throws Error.
  virtual void connect_to(const rdma::ConnectionDescriptor& peer) = 0;
  /// Returns what carries out the entries and what rings the doorbell, for the log.
  [[nodiscard]] virtual std::string carrier() const = 0;
};

/// The parts of a LaneRings. The environment outlives it and has the lanes' launcher.
struct LaneRingParts {
  Environment& environment;
  rdma::QueueSizes sizes;
  rdma::ConnectionOptions options;  ///< its path is the environment's
  std::string name;                 ///< for errors
};

/// Makes rings that the device itself reads. Throws Error: not_supported, with the reason, for a
/// device that is no mlx5 card, for UC, and in a build without libmlx5; the device's errors.
std::unique_ptr<LaneRings> make_card_rings(const LaneRingParts& parts);
/// Makes rings that an emulator reads, on any device. An error of the queues ends the run by
/// Environment::fail(). Throws Error.
std::unique_ptr<LaneRings> make_proxy_rings(const LaneRingParts& parts);
/// Makes rings of the chosen kind, and logs which they are and why. Throws Error.
std::unique_ptr<LaneRings> make_rings(const LaneRingParts& parts, Rings choice);

}  // namespace offload::rdma_tool
