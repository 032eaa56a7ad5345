#pragma once

#include <map>

#include "core/intrusive_list.hpp"
#include "net/source/source.hpp"

namespace offload::net {

/// A queue in which sources take turns: of each source the first in its order, whatever others have
/// put in. An element that is destroyed leaves it. One thread.
template <class T, class Tag>
class SourceQueue {
 public:
  /// `added` must not be in it. Throws std::bad_alloc.
  void push_back(const Source& source, T& added) { queues_[source].push_back(added); }

  /// Removes the next element and returns it; null if there is none.
  T* pop_front() noexcept {
    while (!queues_.empty()) {
      auto next = queues_.upper_bound(last_);
      if (next == queues_.end()) next = queues_.begin();
      last_ = next->first;
      T* const first = next->second.pop_front();
      if (next->second.empty()) queues_.erase(next);
      if (first != nullptr) return first;
    }
    return nullptr;
  }

  [[nodiscard]] static bool has(T& element) noexcept { return List::is_linked(element); }
  static void remove(T& removed) noexcept { List::remove(removed); }

 private:
  using List = core::IntrusiveList<T, Tag>;
  std::map<Source, List> queues_;
  Source last_{};  ///< whose turn it was
};

}  // namespace offload::net
