#pragma once

#include <poll.h>
#include <unistd.h>

#include <array>

#include "tests/fuzz/input.hpp"

namespace offload::fuzz {

/// Checks that a run leaves no descriptor open that was not open before. One system call is enough:
/// poll(2) returns POLLNVAL for a closed one.
class NoDescriptorStays {
 public:
  NoDescriptorStays() : before_(open()) {}
  ~NoDescriptorStays() { require(open() == before_, "no descriptor stays"); }
  NoDescriptorStays(const NoDescriptorStays&) = delete;
  NoDescriptorStays& operator=(const NoDescriptorStays&) = delete;

 private:
  static constexpr int kMost = 256;

  static int open() {
    static std::array<pollfd, kMost> fds;
    for (int fd = 0; fd < kMost; ++fd) fds[static_cast<std::size_t>(fd)] = {fd, 0, 0};
    ::poll(fds.data(), fds.size(), 0);
    int count = 0;
    for (const pollfd& each : fds) count += (each.revents & POLLNVAL) == 0 ? 1 : 0;
    return count;
  }

  int before_;
};

}  // namespace offload::fuzz
