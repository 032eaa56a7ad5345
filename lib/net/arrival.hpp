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
///
/// Where nobody else on the machine asks, the kernel begins a moment later, on a thread of its own
/// (net_enable_timestamp() defers it, as it changes code): below a millisecond, longer if the
/// machine is busy. The arrival of what comes before is not known. So a server that was asked by
/// its first client at once counts these requests from when they are read, as over TLS: their stage
/// "receive" lacks the time that they waited in the kernel.
void tell_arrivals(int fd);

/// As recv(2). `arrival`: when the last of the bytes came, where tell_arrivals() was called; else
/// as it was.
ssize_t receive_with_arrival(int fd, std::span<std::byte> room, WallTime& arrival);

}  // namespace offload::net
