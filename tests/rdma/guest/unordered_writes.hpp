#pragma once

#include <cstdint>

/// A fabric that places the RDMA writes of a queue pair in any order, as adaptive routing allows
/// it, made of a real device. unordered_writes.cpp is linked into a program, or preloaded into it,
/// and replaces the device's function that posts sends. It posts about every second list of work
/// requests in another order, one by one: a write goes in two pieces of whole words, and each piece
/// may change places with all writes back to the last operation of another kind.
///
/// An atomic operation, a send, a read, an immediate and a completion have all that was posted
/// before them in memory, as RDMA guarantees it. So the immediate of a write, or the completion
/// that it asks for, goes in a write of its own without data, behind the pieces.
namespace offload::rdma::test {

/// Returns how many pieces this process has posted before an earlier one. It is printed to standard
/// error when the process exits, if it had a queue pair.
std::uint64_t unordered_pieces() noexcept;

}  // namespace offload::rdma::test
