#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "core/status.hpp"

/// How the calls of libibverbs and librdmacm fail, made one here. Some return a positive errno,
/// some -1 with the number in errno, some a negative errno, some null with the number in errno.
namespace offload::rdma {

/// The errno behind a result, 0 for success. To be called before errno can change.
inline int errno_of(int result) noexcept {
  if (result == -1) return errno != 0 ? errno : EIO;
  return result < 0 ? -result : result;
}

/// Throws the Error for a result that is none of success.
inline void check(int result, std::string_view action) {
  const int errnum = errno_of(result);
  if (errnum != 0) core::throw_errno(std::string(action), errnum);
}

/// Passes the object through; throws the Error for null.
template <class Object>
Object* check_pointer(Object* object, std::string_view action) {
  const int errnum = errno;
  if (object == nullptr) core::throw_errno(std::string(action), errnum != 0 ? errnum : EIO);
  return object;
}

/// For the data path, of a call that posts: full if the queue has no room, invalid_value for what
/// the device does not take, else driver.
core::Status post_status(int result) noexcept;

/// What a completion that is no success tells: "remote access error", what usually causes it, and
/// the vendor's own code.
std::string explain(ibv_wc_status status, std::uint32_t vendor);

/// What usually causes it, in a line; empty for success.
std::string_view usual_cause(ibv_wc_status status) noexcept;

/// The cause of an error that a completion told.
inline core::Cause cause_of(ibv_wc_status status, std::uint32_t vendor) noexcept {
  return {core::Cause::Domain::work_completion, status, vendor};
}

}  // namespace offload::rdma
