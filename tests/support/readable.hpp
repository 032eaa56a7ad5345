#pragma once

#include <poll.h>

namespace offload::support {

/// Returns whether `fd` is readable, or becomes so within that many milliseconds.
inline bool is_readable(int fd, int milliseconds) {
  pollfd watched{fd, POLLIN, 0};
  return ::poll(&watched, 1, milliseconds) == 1;
}

}  // namespace offload::support
