#include "core/process/thread.hpp"

#include <cerrno>

#include "core/error.hpp"
#include "core/process/limits.hpp"

namespace offload::core {

void throw_thread_error(const std::string& action, int errnum) {
  if (errnum != EAGAIN) throw_errno(action, errnum);
  std::string text = action + ": " + describe_errno(errnum);
  const auto threads = thread_limits();
  if (!threads.empty()) text += "; limits of threads: " + to_text(threads);
  // pthread_create(3) has the same errno where there are no addresses for the stack.
  const auto addresses = resource_limit("Max address space", false);
  if (addresses && *addresses != kUnlimited) {
    text += "; limit of addresses: " + std::to_string(*addresses) + " bytes (ulimit -v)";
  }
  throw Error(ErrorCode::no_memory, text, {Cause::Domain::system, errnum});
}

}  // namespace offload::core
