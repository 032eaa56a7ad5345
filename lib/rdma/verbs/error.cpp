#include "rdma/verbs/error.hpp"

#include <fcntl.h>
#include <fmt/core.h>

namespace offload::rdma {

using core::ErrorCode;

void set_nonblocking(int fd) {
  const int flags = core::check_errno(::fcntl(fd, F_GETFL), "fcntl");
  core::check_errno(::fcntl(fd, F_SETFL, flags | O_NONBLOCK), "fcntl");
}

core::Status failed_post_status(int result) noexcept {
  switch (errno_of(result)) {
    case ENOMEM:
    case ENOSPC: return ErrorCode::full;
    case EINVAL: return ErrorCode::invalid_value;
    default: return ErrorCode::driver;
  }
}

std::string_view usual_cause(ibv_wc_status status) noexcept {
  switch (status) {
    case IBV_WC_SUCCESS: return "";
    case IBV_WC_LOC_LEN_ERR:
      return "a message is longer than the receive posted for it, or than the device can send";
    case IBV_WC_LOC_QP_OP_ERR:
      // Soft-RoCE reports the latter while its network interface is down.
      return "the work request is malformed or not allowed on this queue, or the peer is no longer "
             "reachable";
    case IBV_WC_LOC_PROT_ERR:
      return "local memory is not registered, not in this protection domain, or may not be written";
    case IBV_WC_WR_FLUSH_ERR:
      return "the queue pair was already in error: look for the first error before this one";
    case IBV_WC_BAD_RESP_ERR: return "the peer answered with an unexpected response";
    case IBV_WC_REM_INV_REQ_ERR:
      return "the peer rejected the request: receive too short, or operation not allowed";
    case IBV_WC_REM_ACCESS_ERR:
      return "the peer's memory is not registered, its key or range is wrong, or it does not allow "
             "that access";
    case IBV_WC_REM_OP_ERR:
      return "the peer failed while it did the operation, or its receive was too short";
    case IBV_WC_RETRY_EXC_ERR:
      return "the peer does not answer: it is gone, its queue pair is not ready, or the path "
             "(address, MTU, routing) is wrong";
    case IBV_WC_RNR_RETRY_EXC_ERR: return "the peer had no receive posted for too long";
    case IBV_WC_REM_ABORT_ERR: return "the peer aborted the operation";
    case IBV_WC_FATAL_ERR: return "the device or its port has failed";
    case IBV_WC_RESP_TIMEOUT_ERR: return "the peer's answer did not come in time";
    default: return "the vendor's code tells more";
  }
}

std::string explain(ibv_wc_status status, std::uint32_t vendor) {
  if (status == IBV_WC_SUCCESS) return "success";
  return fmt::format("{} (status {}, vendor code {:#x}): {}", ibv_wc_status_str(status),
                     static_cast<int>(status), vendor, usual_cause(status));
}

}  // namespace offload::rdma
