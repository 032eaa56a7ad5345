#pragma once

#include "core/clock.hpp"
#include "core/intrusive_list.hpp"

namespace offload::server {

/// When something of an element of a DeadlineList ends: a base class of the element.
template <class Tag>
class Deadline : public core::ListNode<Tag> {
 private:
  template <class, class>
  friend class DeadlineList;
  core::RunTime at_{};
};

/// Elements that each have the same time from when they were started, so the first in the list is
/// the first that is due. All takes constant time and allocates nothing. One thread.
template <class T, class Tag>
class DeadlineList {
 public:
  /// `time`: 0: nothing is ever due, and start() does nothing.
  explicit DeadlineList(core::Duration time) noexcept : time_(time) {}

  [[nodiscard]] bool enabled() const noexcept { return time_ != core::Duration{}; }
  [[nodiscard]] bool has(T& element) const noexcept { return List::is_linked(element); }

  /// Its time begins now, also if it had begun before.
  void start(T& element, core::RunTime now) noexcept {
    if (!enabled()) return;
    List::remove(element);
    static_cast<Deadline<Tag>&>(element).at_ = now + time_;
    list_.push_back(element);
  }
  void stop(T& element) noexcept { List::remove(element); }

  /// Takes an element whose time is over out of the list; null: there is none.
  T* pop_due(core::RunTime now) noexcept { return next() <= now ? list_.pop_front() : nullptr; }
  /// When the first is due; RunTime::max(): there is none.
  [[nodiscard]] core::RunTime next() noexcept {
    T* const first = list_.front();
    return first != nullptr ? static_cast<Deadline<Tag>&>(*first).at_ : core::RunTime::max();
  }

 private:
  using List = core::IntrusiveList<T, Tag>;
  core::Duration time_;
  List list_;
};

}  // namespace offload::server
