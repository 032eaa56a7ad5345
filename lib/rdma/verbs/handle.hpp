#pragma once

#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "rdma/verbs/error.hpp"

namespace offload::rdma {

/// Owns an object of libibverbs, or borrows one that somebody else made. Move-only. One that it
/// owns it destroys with `destroy`, and logs if that fails, as it does while others use the object.
template <class Object, auto destroy>
class Handle {
 public:
  Handle() noexcept = default;
  /// `kind`, a literal, is for the log.
  Handle(Object* owned, const char* kind) noexcept : object_(owned), kind_(kind) {}
  static Handle borrow(Object* object) noexcept {
    Handle handle(object, "");
    handle.owned_ = false;
    return handle;
  }
  Handle(Handle&& other) noexcept
      : object_(std::exchange(other.object_, nullptr)), kind_(other.kind_), owned_(other.owned_) {}
  Handle& operator=(Handle other) noexcept {
    std::swap(object_, other.object_);
    std::swap(kind_, other.kind_);
    std::swap(owned_, other.owned_);
    return *this;
  }
  ~Handle() {
    if (object_ == nullptr || !owned_) return;
    const int errnum = errno_of(destroy(object_));
    if (errnum != 0) core::log_error("cannot end {}: {}", kind_, core::describe_errno(errnum));
  }

  [[nodiscard]] Object* get() const noexcept { return object_; }
  Object* operator->() const noexcept { return object_; }

 private:
  Object* object_ = nullptr;
  const char* kind_ = "";
  bool owned_ = true;
};

}  // namespace offload::rdma
