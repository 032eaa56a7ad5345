#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

namespace offload::doca {

/// Counts a user of an object in its member `users`, for as long as it lives. Its end is a release
/// that pairs with is_used().
template <class Object>
class Use {
 public:
  explicit Use(Object& object) noexcept : object_(&object) {
    object.users.fetch_add(1, std::memory_order_relaxed);
  }
  Use(const Use&) = delete;
  Use(Use&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Use& operator=(Use other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Use() {
    if (object_ != nullptr) object_->users.fetch_sub(1, std::memory_order_release);
  }
  [[nodiscard]] Object* get() const noexcept { return object_; }
  Object* operator->() const noexcept { return object_; }

 private:
  Object* object_;
};

/// Returns whether an object has users; if not, all of their accesses have ended.
template <class Object>
[[nodiscard]] bool is_used(const Object& object) noexcept {
  return object.users.load(std::memory_order_acquire) != 0;  // pairs with the end of a Use
}

/// Ends a share of an object: deletes it at the end of the last one. The handle of a program has
/// one from the beginning, in the object's member `shares`, which is 1 then.
template <class Object>
void end_share(Object& object) noexcept {
  if (object.shares.fetch_sub(1, std::memory_order_acq_rel) == 1) delete &object;
}

/// Keeps an object for as long as it lives, also after the end of the program's handle: unlike a
/// Use, it lets the program end the handle first.
template <class Object>
class Share {
 public:
  explicit Share(Object& object) noexcept : object_(&object) {
    object.shares.fetch_add(1, std::memory_order_relaxed);
  }
  Share& operator=(Share&&) = delete;
  ~Share() { end_share(*object_); }

 private:
  Object* object_;
};

}  // namespace offload::doca
