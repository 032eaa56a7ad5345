#pragma once

#include <cstddef>
#include <cstdint>

#include "core/intrusive_list.hpp"

namespace offload::server {

/// The base class of the elements of a FairQueue.
class FairQueueEntry : public core::ListNode<FairQueueEntry> {
 private:
  template <class>
  friend class FairQueue;
  enum class Queue : std::uint8_t { none, ready, waiting };
  Queue queue_ = Queue::none;
  std::int64_t deficit_ = 1;  ///< bytes that it may still have before it is another's turn
};

/// Shares limited room among entries by deficit round robin (Shreedhar and Varghese, 1995), with a
/// separate queue for sparse ones (as in DRR++ and FQ-CoDel, RFC 8290). An entry is ready (it may
/// have something to do), waiting (it lacks only room), or idle. A round:
///
///   1. Ready entries are tended: served if they need no room, else made to wait.
///   2. While there is room, and for round() bytes, waiting entries are served: sparse ones first,
///      then the others in turn, each until it has spent quantum() bytes.
///
/// So neither many requests of one entry nor long ones keep the others waiting. An entry that
/// spends more than its deficit passes turns for it. Sparse entries get at most half of the bytes
/// while others wait. A round takes constant time for each quantum_ bytes or call; entries that
/// wait without room cost nothing. The elements belong to others, nothing allocates, and an element
/// that is destroyed is removed. One thread.
template <class T>
class FairQueue {
 public:
  /// `quantum`: bytes of one turn: what one receive takes, so that what came at once is forwarded
  /// at once, while it is in the cache, and answered at once.
  explicit FairQueue(std::size_t quantum) noexcept : quantum_(static_cast<std::int64_t>(quantum)) {}

  [[nodiscard]] std::int64_t quantum() const noexcept { return quantum_; }
  /// Returns the number of bytes of one round, after which the thread does its other work.
  [[nodiscard]] std::int64_t round() const noexcept { return 4 * quantum_; }

  [[nodiscard]] static bool is_waiting(const T& entry) noexcept {
    return queue_of(entry) == Queue::waiting;
  }
  /// It is tended in the next round. One that waited gives its place away.
  void make_ready(T& entry) noexcept {
    if (queue_of(entry) != Queue::ready) move(entry, ready_, Queue::ready);
  }
  /// It is served when there is room, behind those that wait already. `sparse`: nothing of it is
  /// under way.
  void make_waiting(T& entry, bool sparse) noexcept {
    if (sparse && deficit(entry) > 0) {
      deficit(entry) = quantum_;
      move(entry, sparse_, Queue::waiting);
    } else {
      take_turn_later(entry);
    }
  }

  /// Bytes that the entry that is served may have now.
  [[nodiscard]] std::int64_t allowance(const T& entry) const noexcept { return deficit(entry); }
  /// Records bytes that the served entry has had. Must be called before it is made to wait again.
  void spend(T& entry, std::size_t bytes) noexcept {
    deficit(entry) -= static_cast<std::int64_t>(bytes);
    round_left_ -= static_cast<std::int64_t>(bytes);
    if (serving_sparse_) sparse_spent_ += static_cast<std::int64_t>(bytes);
  }

  /// Calls `tend`(T&) for each ready entry, then `serve`(T&) for those that wait while
  /// `has_room`(). Either may make the entry, or others, ready or waiting again, and tend may
  /// destroy the entry. Returns whether a call returned true: there was work. An entry for which
  /// serve returned false is not served again in this round.
  template <class HasRoom, class Tend, class Serve>
  bool run_round(HasRoom has_room, Tend tend, Serve serve) {
    if (ready_.empty() && ((sparse_.empty() && waiting_.empty()) || !has_room())) return false;
    bool worked = false;
    tending_.splice_back(ready_);
    while (T* const entry = pop(tending_)) worked = tend(*entry) || worked;
    round_left_ = round();
    while (round_left_ > 0 && has_room()) {
      T* const entry = next();
      if (entry == nullptr) break;
      const bool served = serve(*entry);
      worked = served || worked;
      if (!served && is_waiting(*entry)) move(*entry, stalled_, Queue::waiting);
    }
    serving_sparse_ = false;
    waiting_.splice_back(stalled_);
    return worked;
  }

 private:
  using Queue = FairQueueEntry::Queue;
  using List = core::IntrusiveList<T, FairQueueEntry>;

  static Queue queue_of(const FairQueueEntry& entry) noexcept { return entry.queue_; }
  static std::int64_t& deficit(FairQueueEntry& entry) noexcept { return entry.deficit_; }
  static std::int64_t deficit(const FairQueueEntry& entry) noexcept { return entry.deficit_; }

  void move(T& entry, List& to, Queue queue) noexcept {
    List::remove(entry);
    static_cast<FairQueueEntry&>(entry).queue_ = queue;
    to.push_back(entry);
  }

  static T* pop(List& list) noexcept {
    T* const entry = list.pop_front();
    if (entry != nullptr) static_cast<FairQueueEntry&>(*entry).queue_ = Queue::none;
    return entry;
  }

  /// When all others have had theirs. One that has spent what it had may have as much again then.
  void take_turn_later(T& entry) noexcept {
    if (deficit(entry) <= 0) deficit(entry) += quantum_;
    move(entry, waiting_, Queue::waiting);
  }

  T* next() noexcept {
    serving_sparse_ = !sparse_.empty() && (waiting_.empty() || sparse_spent_ < quantum_);
    if (serving_sparse_) return pop(sparse_);
    sparse_spent_ = 0;
    while (T* const entry = pop(waiting_)) {
      if (deficit(*entry) > 0) return entry;
      take_turn_later(*entry);
    }
    return nullptr;
  }

  std::int64_t quantum_;
  List ready_;
  List tending_;  ///< those that were ready at the beginning of the round
  List sparse_;   ///< first come, first served, both
  List waiting_;
  List stalled_;  ///< waits, and room is not what it lacks
  std::int64_t round_left_ = 0;
  std::int64_t sparse_spent_ = 0;  ///< since one of waiting_ was served
  bool serving_sparse_ = false;
};

}  // namespace offload::server
