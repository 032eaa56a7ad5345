#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/status.hpp"

/// The result conventions of libibverbs and librdmacm, normalised to one. Their calls return a
/// positive errno (ibv_post_send(3)), -1 with errno set (rdma_connect(3)), a negative errno
/// (ibv_query_gid_table), or null with errno set (ibv_create_qp(3)).
namespace offload::rdma {

/// The errno of a result, 0 for success. Call it before errno can change.
inline int errno_of(int result) noexcept {
  if (result == -1) return errno != 0 ? errno : EIO;
  return result < 0 ? -result : result;
}

/// Throws the Error of a result that is not success.
inline void check(int result, std::string_view action) {
  const int errnum = errno_of(result);
  if (errnum != 0) core::throw_errno(std::string(action), errnum);
}

/// Returns the object, or throws the Error if it is null.
template <class Object>
Object* check_pointer(Object* object, std::string_view action) {
  const int errnum = errno;
  if (object == nullptr) core::throw_errno(std::string(action), errnum != 0 ? errnum : EIO);
  return object;
}

/// Makes reads of a descriptor that a library opened return at once. Throws Error.
void set_nonblocking(int fd);

/// post_status() of a call that failed.
core::Status failed_post_status(int result) noexcept;
/// Returns the Status of a call that posts, for the data path: full if the queue has no room,
/// invalid_value if the device rejects the request, else driver.
inline core::Status post_status(int result) noexcept {
  return result == 0 ? core::Status() : failed_post_status(result);  // in its caller: most are 0
}

/// The text of a failed completion: the status ("remote access error"), its usual cause, and
/// vendor_err.
std::string explain(ibv_wc_status status, std::uint32_t vendor);

/// The usual cause of a completion status, in one line; empty for success.
std::string_view usual_cause(ibv_wc_status status) noexcept;

/// The Cause of an error that a completion reported.
inline core::Cause cause_of(ibv_wc_status status, std::uint32_t vendor) noexcept {
  return {core::Cause::Domain::work_completion, status, vendor};
}

/// Owner of an object of libibverbs or librdmacm, or a borrower of one that another library owns.
/// Move-only. An owner ends its object with `destroy` and logs a failure, such as EBUSY while other
/// objects still use it.
template <class Object, auto destroy>
class Handle {
 public:
  Handle() noexcept = default;
  /// `kind`: a string literal that names the object in the log.
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
    if (errnum != 0) core::log_error("cannot destroy {}: {}", kind_, core::describe_errno(errnum));
  }

  [[nodiscard]] Object* get() const noexcept { return object_; }
  Object* operator->() const noexcept { return object_; }

 private:
  Object* object_ = nullptr;
  const char* kind_ = "";
  bool owned_ = true;
};

}  // namespace offload::rdma
