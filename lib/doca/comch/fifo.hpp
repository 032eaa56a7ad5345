#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace offload::doca {

/// A queue that allocates only while it grows, for the data path. Elements are copied.
template <class T>
class Fifo {
 public:
  [[nodiscard]] bool empty() const noexcept { return first_ == elements_.size(); }
  /// Throws std::bad_alloc.
  void push_back(const T& element) {
    // Half of the array or more is free: moving the rest costs no more than what was removed.
    if (elements_.size() == elements_.capacity() && first_ >= elements_.size() - first_) {
      elements_.erase(elements_.begin(), elements_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
    elements_.push_back(element);
  }
  [[nodiscard]] const T& front() const noexcept { return elements_[first_]; }
  /// Removes the first element and returns it. There must be one.
  T pop_front() noexcept {
    const T element = elements_[first_++];
    if (empty()) clear();
    return element;
  }
  void clear() noexcept {
    elements_.clear();
    first_ = 0;
  }
  /// The elements, from the first on.
  [[nodiscard]] std::span<const T> all() const noexcept {
    return std::span(elements_).subspan(first_);
  }

 private:
  std::vector<T> elements_;
  std::size_t first_ = 0;
};

}  // namespace offload::doca
