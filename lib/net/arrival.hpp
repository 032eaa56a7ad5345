#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <span>

namespace offload::net {

/// A time of the kernel's: since the epoch, in nanoseconds. {}: not known.
using WallTime = std::chrono::sys_time<std::chrono::nanoseconds>;

/// The kernel notes when bytes came for `fd`, and for the connections that are accepted from it
/// from now on (SO_TIMESTAMPNS). Machine-wide that costs each packet a look at the clock.
void tell_arrivals(int fd);

/// As recv(2). `arrival`: when the last of the bytes came, where tell_arrivals() was called; else
/// as it was.
ssize_t receive_with_arrival(int fd, std::span<std::byte> room, WallTime& arrival);

}  // namespace offload::net
