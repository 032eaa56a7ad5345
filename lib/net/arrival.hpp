#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <span>

namespace offload::net {

/// A time of the kernel's: since the epoch, in nanoseconds. {}: not known.
using WallTime = std::chrono::sys_time<std::chrono::nanoseconds>;

/// Makes the kernel record when bytes arrived for `fd`, and for connections accepted from it from
/// now on (SO_TIMESTAMPNS). This costs each packet of the machine a read of the clock.
///
/// For the first user on the machine, the kernel begins a moment later, in a separate thread
/// (net_enable_timestamp() defers it, as it changes code): below a millisecond, longer if the
/// machine is busy. The arrival of earlier bytes is unknown. So a server counts the early requests
/// of its first client from the time of reading, as over TLS: their stage "receive" lacks the time
/// that they waited in the kernel.
void tell_arrivals(int fd);

/// Receives as recv(2) does. Sets `arrival` to the arrival of the last byte if tell_arrivals() was
/// called; else keeps it.
ssize_t receive_with_arrival(int fd, std::span<std::byte> room, WallTime& arrival);

}  // namespace offload::net
