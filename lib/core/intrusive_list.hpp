#pragma once

namespace offload::core {

template <class T, class Tag>
class IntrusiveList;

/// The links of an element of an IntrusiveList: a base class of the element. An element that may be
/// in several lists has several, told apart by `Tag`. An element that is destroyed leaves its list.
template <class Tag>
class ListNode {
 public:
  ListNode& operator=(ListNode&&) = delete;

 protected:
  ListNode() noexcept = default;
  ~ListNode() { unlink(); }

 private:
  template <class, class>
  friend class IntrusiveList;

  void unlink() noexcept {
    next_->previous_ = previous_;
    previous_->next_ = next_;
    next_ = previous_ = this;
  }

  ListNode* next_ = this;
  ListNode* previous_ = this;
};

/// A doubly linked list of elements that it does not own: it allocates nothing, and an element
/// leaves it in constant time. One thread.
template <class T, class Tag = T>
class IntrusiveList {
 public:
  IntrusiveList() noexcept = default;
  ~IntrusiveList() {
    while (pop_front() != nullptr) continue;
  }
  IntrusiveList& operator=(IntrusiveList&&) = delete;

  [[nodiscard]] bool empty() const noexcept { return head_.next_ == &head_; }
  /// The first element; null if the list is empty.
  [[nodiscard]] T* front() noexcept { return element(head_.next_); }
  [[nodiscard]] const T* front() const noexcept {
    return empty() ? nullptr : static_cast<const T*>(head_.next_);
  }
  /// The element after `current`; null after the last.
  [[nodiscard]] T* next(T& current) noexcept { return element(node_of(current).next_); }

  /// `added` must be in no list.
  void push_back(T& added) noexcept {
    Node& node = node_of(added);
    node.previous_ = head_.previous_;
    node.next_ = &head_;
    head_.previous_->next_ = &node;
    head_.previous_ = &node;
  }

  /// Removes the first element and returns it; null if the list is empty.
  T* pop_front() noexcept {
    T* const first = front();
    if (first != nullptr) remove(*first);
    return first;
  }

  /// Moves all elements of `other` behind those of this one.
  void splice_back(IntrusiveList& other) noexcept {
    if (other.empty()) return;
    Node* const first = other.head_.next_;
    Node* const last = other.head_.previous_;
    other.head_.next_ = other.head_.previous_ = &other.head_;
    first->previous_ = head_.previous_;
    head_.previous_->next_ = first;
    last->next_ = &head_;
    head_.previous_ = last;
  }

  /// Removes an element from the list that it is in; does nothing if it is in none.
  static void remove(T& removed) noexcept { node_of(removed).unlink(); }
  /// Returns whether `element` is in a list with this tag.
  [[nodiscard]] static bool is_linked(T& element) noexcept {
    return node_of(element).next_ != &node_of(element);
  }

 private:
  using Node = ListNode<Tag>;
  struct Head : Node {};

  [[nodiscard]] static Node& node_of(T& element) noexcept { return element; }
  [[nodiscard]] T* element(Node* node) noexcept {
    return node == &head_ ? nullptr : static_cast<T*>(node);
  }

  Head head_;
};

}  // namespace offload::core
