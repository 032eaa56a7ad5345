#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
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
  void add(comch::WorkerId worker, bool stands_by, bool replaces) {
    if (replaces) {
      if (Worker* const oldest = first(Role::active)) oldest->role = Role::leaving;
    }
    workers_.push_back({worker, stands_by ? Role::stand_by : Role::active});
    deal();
  }
  /// It gets no channel any more, but is there until remove().
  void retire(comch::WorkerId worker) {
    end_role(worker);
    deal();
  }
  void remove(comch::WorkerId worker) {
    end_role(worker);
    std::erase_if(workers_, [&](const Worker& one) { return one.id == worker; });
    deal();
  }

  /// Returns the worker of each channel; 0: none.
  [[nodiscard]] const std::vector<comch::WorkerId>& owners() const noexcept { return owners_; }
  /// Returns the number of channels that a worker serves.
  [[nodiscard]] std::uint32_t count_of(comch::WorkerId worker) const noexcept {
    return static_cast<std::uint32_t>(std::ranges::count(owners_, worker));
  }
  /// Returns whether there is a worker for the channels.
  [[nodiscard]] bool served() const noexcept { return owners_.front() != 0; }
  /// Return the workers, in the order in which they attached; and those of them that are going.
  [[nodiscard]] std::vector<comch::WorkerId> workers() const {
    std::vector<comch::WorkerId> ids;
    for (const Worker& worker : workers_) ids.push_back(worker.id);
    return ids;
  }
  [[nodiscard]] std::vector<comch::WorkerId> leaving() const {
    std::vector<comch::WorkerId> ids;
    for (const Worker& worker : workers_) {
      if (worker.role == Role::leaving) ids.push_back(worker.id);
    }
    return ids;
  }

 private:
  enum class Role : std::uint8_t { active, stand_by, leaving };
  struct Worker {
    comch::WorkerId id;
    Role role;
  };

  [[nodiscard]] Worker* first(Role role) noexcept {
    const auto found = std::ranges::find(workers_, role, &Worker::role);
    return found != workers_.end() ? &*found : nullptr;
  }
  /// Ends the worker's role. If it was active, a stand-by takes its place.
  void end_role(comch::WorkerId worker) {
    const auto found = std::ranges::find(workers_, worker, &Worker::id);
    if (found == workers_.end()) return;
    const bool was_active = found->role == Role::active;
    found->role = Role::leaving;
    if (!was_active) return;
    if (Worker* const next = first(Role::stand_by)) next->role = Role::active;
  }
  /// Each active worker keeps what it has up to its share; what is over goes to those with the
  /// fewest.
  void deal() {
    if (first(Role::active) == nullptr) {
      if (Worker* const next = first(Role::stand_by)) next->role = Role::active;
    }
    std::map<comch::WorkerId, std::size_t> held;  // by the active ones
    for (const Worker& worker : workers_) {
      if (worker.role == Role::active) held[worker.id] = 0;
    }
    if (held.empty()) {
      std::ranges::fill(owners_, 0);
      return;
    }
    const std::size_t share = owners_.size() / held.size();
    std::size_t one_more = owners_.size() % held.size();  // workers that may have one more
    for (comch::WorkerId& owner : owners_) {
      const auto found = held.find(owner);
      const bool keeps = found != held.end() &&
                         (found->second < share || (found->second == share && one_more != 0));
      if (!keeps) {
        owner = 0;
      } else if (++found->second > share) {
        --one_more;
      }
    }
    for (comch::WorkerId& owner : owners_) {
      if (owner != 0) continue;
      const auto fewest =
          std::ranges::min_element(held, {}, [](const auto& entry) { return entry.second; });
      owner = fewest->first;
      ++fewest->second;
    }
  }

  std::vector<Worker> workers_;  ///< the one that came first in front
  std::vector<comch::WorkerId> owners_;
};

}  // namespace offload::server
