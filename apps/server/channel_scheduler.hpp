#pragma once

#include <cstdint>
#include <vector>

#include "comch/session/worker_channel.hpp"

namespace offload::server {

/// Which worker serves which channel: channels are dealt evenly among the active workers, and none
/// moves without need. A stand-by becomes active when an active worker goes, or none is there. The
/// control thread's.
class ChannelScheduler {
 public:
  explicit ChannelScheduler(std::size_t channels) : owners_(channels, 0) {}

  /// Adds a worker that serves. `replaces`: the longest active worker must go.
  void add(comch::WorkerId worker, bool stands_by, bool replaces);
  /// It gets no channel any more, but is there until remove().
  void retire(comch::WorkerId worker);
  void remove(comch::WorkerId worker);

  /// Returns the worker of each channel; 0: none.
  [[nodiscard]] const std::vector<comch::WorkerId>& owners() const noexcept { return owners_; }
  /// Returns the number of channels that a worker serves.
  [[nodiscard]] std::uint32_t count_of(comch::WorkerId worker) const noexcept;
  /// Returns whether there is a worker for the channels.
  [[nodiscard]] bool served() const noexcept { return owners_.front() != 0; }
  /// Return the workers, in the order in which they attached; and those of them that are going.
  [[nodiscard]] std::vector<comch::WorkerId> workers() const;
  [[nodiscard]] std::vector<comch::WorkerId> leaving() const;

 private:
  enum class Role : std::uint8_t { active, stand_by, leaving };
  struct Worker {
    comch::WorkerId id;
    Role role;
  };

  [[nodiscard]] Worker* first(Role role) noexcept;
  void end_role(comch::WorkerId worker);
  void deal();

  std::vector<Worker> workers_;  ///< the one that came first in front
  std::vector<comch::WorkerId> owners_;
};

}  // namespace offload::server
