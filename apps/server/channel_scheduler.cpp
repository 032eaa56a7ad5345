#include "apps/server/channel_scheduler.hpp"

#include <algorithm>
#include <map>

namespace offload::server {

using comch::WorkerId;

void ChannelScheduler::add(WorkerId worker, bool stands_by, bool replaces) {
  if (replaces) {
    if (Worker* const oldest = first(Role::active)) oldest->role = Role::leaving;
  }
  workers_.push_back({worker, stands_by ? Role::stand_by : Role::active});
  deal();
}

void ChannelScheduler::retire(WorkerId worker) {
  end_role(worker);
  deal();
}

void ChannelScheduler::remove(WorkerId worker) {
  end_role(worker);
  std::erase_if(workers_, [&](const Worker& one) { return one.id == worker; });
  deal();
}

std::uint32_t ChannelScheduler::count_of(WorkerId worker) const noexcept {
  return static_cast<std::uint32_t>(std::ranges::count(owners_, worker));
}

std::vector<WorkerId> ChannelScheduler::workers() const {
  std::vector<WorkerId> ids;
  for (const Worker& worker : workers_) ids.push_back(worker.id);
  return ids;
}

std::vector<WorkerId> ChannelScheduler::leaving() const {
  std::vector<WorkerId> ids;
  for (const Worker& worker : workers_) {
    if (worker.role == Role::leaving) ids.push_back(worker.id);
  }
  return ids;
}

ChannelScheduler::Worker* ChannelScheduler::first(Role role) noexcept {
  const auto found = std::ranges::find(workers_, role, &Worker::role);
  return found != workers_.end() ? &*found : nullptr;
}

/// Ends the worker's role. If it was active, a stand-by takes its place.
void ChannelScheduler::end_role(WorkerId worker) {
  const auto found = std::ranges::find(workers_, worker, &Worker::id);
  if (found == workers_.end()) return;
  const bool was_active = found->role == Role::active;
  found->role = Role::leaving;
  if (!was_active) return;
  if (Worker* const next = first(Role::stand_by)) next->role = Role::active;
}

/// Each active worker keeps what it has up to its share; what is over goes to those with the
/// fewest.
void ChannelScheduler::deal() {
  if (first(Role::active) == nullptr) {
    if (Worker* const next = first(Role::stand_by)) next->role = Role::active;
  }
  std::map<WorkerId, std::size_t> held;  // by the active ones
  for (const Worker& worker : workers_) {
    if (worker.role == Role::active) held[worker.id] = 0;
  }
  if (held.empty()) {
    std::ranges::fill(owners_, 0);
    return;
  }
  const std::size_t share = owners_.size() / held.size();
  std::size_t one_more = owners_.size() % held.size();  // workers that may have one more
  for (WorkerId& owner : owners_) {
    const auto found = held.find(owner);
    const bool keeps =
        found != held.end() && (found->second < share || (found->second == share && one_more != 0));
    if (!keeps) {
      owner = 0;
    } else if (++found->second > share) {
      --one_more;
    }
  }
  for (WorkerId& owner : owners_) {
    if (owner != 0) continue;
    const auto fewest =
        std::ranges::min_element(held, {}, [](const auto& entry) { return entry.second; });
    owner = fewest->first;
    ++fewest->second;
  }
}

}  // namespace offload::server
