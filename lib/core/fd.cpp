#include "core/fd.hpp"

#include <sys/resource.h>

#include <algorithm>

#include "core/error.hpp"

namespace offload::core {

int raise_descriptor_limit() {
  constexpr rlim_t kMost = 1U << 30;  // RLIM_INFINITY does not fit in an int
  rlimit limit{};
  check_errno(::getrlimit(RLIMIT_NOFILE, &limit), "getrlimit");
  limit.rlim_cur = limit.rlim_max;
  check_errno(::setrlimit(RLIMIT_NOFILE, &limit), "setrlimit");
  return static_cast<int>(std::min(limit.rlim_cur, kMost));
}

}  // namespace offload::core
