#pragma once

#include <cstdint>

#include "core/intrusive_list.hpp"

namespace offload::server {

/// What an element of a FairQueue has as a base class.
class FairQueueEntry : public core::ListNode<FairQueueEntry> {
 private:
  template <class>
  friend class FairQueue;
  enum class Queue : std::uint8_t { none, ready, waiting };
  Queue queue_ = Queue::none;
};

/// Shares limited room among entries, in rounds. An entry is ready (it may have something to do),
/// waiting (room is all that it lacks), or idle. A round serves each entry at most once:
///
///   1. those that are ready are tended: served if they need no room, else made to wait;
///   2. while there is room, those that wait are served, first come, first served.
///
/// An entry that got room and wants more goes behind those that got none, so one deep pipeline
/// starves nobody. A round costs what it serves: entries that wait without room cost nothing.
/// The elements belong to others, nothing allocates, an element that is destroyed leaves. One
/// thread.
template <class T>
class FairQueue {
 public:
  [[nodiscard]] static bool is_waiting(const T& entry) noexcept {
    return queue_of(entry) == Queue::waiting;
  }
  /// It is tended in the next round. One that waited gives its place away.
  void make_ready(T& entry) noexcept {
    if (queue_of(entry) != Queue::ready) move(entry, ready_, Queue::ready);
  }
  /// It is served when there is room, behind those that wait already.
  void make_waiting(T& entry) noexcept { move(entry, waiting_, Queue::waiting); }

  /// Calls `tend`(T&) for each ready entry, then `serve`(T&) for those that wait while
  /// `has_room`(). Either may make the entry, or others, ready or waiting again, and tend may
  /// destroy the entry. Returns whether a call returned true: there was work.
  template <class HasRoom, class Tend, class Serve>
  bool run_round(HasRoom has_room, Tend tend, Serve serve) {
    if (ready_.empty() && (waiting_.empty() || !has_room())) return false;
    bool worked = false;
    serving_.splice_back(ready_);
    while (T* const entry = pop_served()) worked = tend(*entry) || worked;
    serving_.splice_back(waiting_);
    while (has_room()) {
      T* const entry = pop_served();
      if (entry == nullptr) break;
      worked = serve(*entry) || worked;
    }
    // Those that got room and wait again, now in waiting_, stand behind those that got none.
    serving_.splice_back(waiting_);
    waiting_.splice_back(serving_);
    return worked;
  }

 private:
  using Queue = FairQueueEntry::Queue;
  using List = core::IntrusiveList<T, FairQueueEntry>;

  static Queue queue_of(const FairQueueEntry& entry) noexcept { return entry.queue_; }

  void move(T& entry, List& to, Queue queue) noexcept {
    List::remove(entry);
    static_cast<FairQueueEntry&>(entry).queue_ = queue;
    to.push_back(entry);
  }

  T* pop_served() noexcept {
    T* const entry = serving_.pop_front();
    if (entry != nullptr) static_cast<FairQueueEntry&>(*entry).queue_ = Queue::none;
    return entry;
  }

  List ready_;
  List waiting_;  ///< first come, first served
  List serving_;  ///< of either, in this round
};

}  // namespace offload::server
