#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

namespace offload::doca {

/// Counts a user of an object in its member `users`, for as long as it lives. The counter is
/// relaxed: it publishes nothing.
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
    if (object_ != nullptr) object_->users.fetch_sub(1, std::memory_order_relaxed);
  }
  [[nodiscard]] Object* get() const noexcept { return object_; }
  Object* operator->() const noexcept { return object_; }

 private:
  Object* object_;
};

}  // namespace offload::doca
