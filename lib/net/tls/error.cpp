#include "net/tls/error.hpp"

#include <openssl/err.h>

namespace offload::net {

std::string take_openssl_error() {
  const unsigned long error = ::ERR_get_error();
  ::ERR_clear_error();
  if (error == 0) return "unknown error";
  // If the cause is the system's, for example a missing file, it has no reason.
  if (ERR_SYSTEM_ERROR(error)) return core::describe_errno(ERR_GET_REASON(error));
  const char* const reason = ::ERR_reason_error_string(error);
  return reason != nullptr ? reason : "error " + std::to_string(error);
}

void throw_openssl_error(const std::string& action, core::ErrorCode code) {
  throw core::Error(code, action + ": " + take_openssl_error());
}

}  // namespace offload::net
