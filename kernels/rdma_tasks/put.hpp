#pragma once

#include <cstdint>

#include "kernels/rdma/operations.hpp"

/// One-sided operations and sends, by name. Called like post(): by every lane of a group with the
/// same arguments, on an exclusive or a shared queue; each posts with one doorbell and returns a
/// ticket. A buffer of length 0 is omitted. After wait_for(), local memory can be reused, and the
/// data of a read has arrived.
namespace offload::kernels::rdma {

OFFLOAD_HOST_DEVICE inline SendWork signaled(Opcode opcode, const LocalBuffer& buffer,
                                             const RemotePointer& remote = {}) {
  SendWork work;
  work.opcode = opcode;
  work.flags = kSignaled;
  work.remote = remote;
  work.buffers = &buffer;
  work.buffer_count = 1;
  return work;
}

/// Writes `from` to the peer's memory.
template <class Group, class Queue>
OFFLOAD_HOST_DEVICE WorkResult put(const Group& group, Queue& queue, const RemotePointer& to,
                                   const LocalBuffer& from, const WaitLimit& limit,
                                   std::uint64_t& ticket) {
  return post(group, queue, signaled(Opcode::rdma_write, from, to), limit, ticket);
}

/// As put(), and consumes a receive of the peer, whose completion has the immediate.
template <class Group, class Queue>
OFFLOAD_HOST_DEVICE WorkResult put_with_immediate(const Group& group, Queue& queue,
                                                  const RemotePointer& to, const LocalBuffer& from,
                                                  std::uint32_t immediate, const WaitLimit& limit,
                                                  std::uint64_t& ticket) {
  SendWork work = signaled(Opcode::rdma_write_with_imm, from, to);
  work.immediate = immediate;
  return post(group, queue, work, limit, ticket);
}

/// Reads the peer's memory into `to`.
template <class Group, class Queue>
OFFLOAD_HOST_DEVICE WorkResult get(const Group& group, Queue& queue, const LocalBuffer& to,
                                   const RemotePointer& from, const WaitLimit& limit,
                                   std::uint64_t& ticket) {
  return post(group, queue, signaled(Opcode::rdma_read, to, from), limit, ticket);
}

/// Does `*word += add` at the peer, on 8 aligned bytes; the old value is written to `before`, of 8
/// bytes.
template <class Group, class Queue>
OFFLOAD_HOST_DEVICE WorkResult fetch_add(const Group& group, Queue& queue,
                                         const RemotePointer& word, std::uint64_t add,
                                         const LocalBuffer& before, const WaitLimit& limit,
                                         std::uint64_t& ticket) {
  SendWork work = signaled(Opcode::fetch_add, before, word);
  work.compare_add = add;
  return post(group, queue, work, limit, ticket);
}

/// Does `*word = swap` at the peer if it is `compare`. Otherwise the same as fetch_add().
template <class Group, class Queue>
OFFLOAD_HOST_DEVICE WorkResult compare_swap(const Group& group, Queue& queue,
                                            const RemotePointer& word, std::uint64_t compare,
                                            std::uint64_t swap, const LocalBuffer& before,
                                            const WaitLimit& limit, std::uint64_t& ticket) {
  SendWork work = signaled(Opcode::compare_swap, before, word);
  work.compare_add = compare;
  work.swap = swap;
  return post(group, queue, work, limit, ticket);
}

/// A word at the peer that an operation adds to, so that the peer sees what was written before.
struct Signal {
  RemotePointer word;
  std::uint64_t add;
  LocalBuffer before;  ///< 8 bytes, for the old value
};

/// As put(), then adds to the signal's word: both use one queue, so a peer that sees the sum has
/// the data. Posts two entries with one doorbell.
template <class Group, class Queue>
OFFLOAD_HOST_DEVICE WorkResult put_with_signal(const Group& group, Queue& queue,
                                               const RemotePointer& to, const LocalBuffer& from,
                                               const Signal& signal, const WaitLimit& limit,
                                               std::uint64_t& ticket) {
  const auto make = [&](std::uint32_t i) {
    SendWork work = i == 0 ? signaled(Opcode::rdma_write, from, to)
                           : signaled(Opcode::fetch_add, signal.before, signal.word);
    if (i == 0) work.flags = 0;
    if (i == 1) work.compare_add = signal.add;
    return work;
  };
  return post(group, queue, 2, make, limit, ticket);
}

/// Waits until a signal's word is at least `sum`: then data that was put before the add has
/// arrived, for all lanes. Acquires, to the whole system; pairs with the card's atomic.
template <class Group>
OFFLOAD_HOST_DEVICE WorkResult wait_signal(const Group& group, const std::uint64_t* word,
                                           std::uint64_t sum, const WaitLimit& limit) {
  Wait wait(limit);
  for (;;) {
    const bool there = group.lane() == 0 && look_sys(word) >= sum;
    if (group.from_first(there ? 1 : 0) != 0) break;
    if (group.from_first(wait.is_over() ? 1 : 0) != 0) return WorkResult::timed_out;
  }
  acquire_looked_sys();
  group.sync();
  return WorkResult::done;
}

/// Sends `from` to the peer's oldest receive.
template <class Group, class Queue>
OFFLOAD_HOST_DEVICE WorkResult send(const Group& group, Queue& queue, const LocalBuffer& from,
                                    const WaitLimit& limit, std::uint64_t& ticket) {
  return post(group, queue, signaled(Opcode::send, from), limit, ticket);
}

template <class Group, class Queue>
OFFLOAD_HOST_DEVICE WorkResult send_with_immediate(const Group& group, Queue& queue,
                                                   const LocalBuffer& from, std::uint32_t immediate,
                                                   const WaitLimit& limit, std::uint64_t& ticket) {
  SendWork work = signaled(Opcode::send_with_imm, from);
  work.immediate = immediate;
  return post(group, queue, work, limit, ticket);
}

/// Waits until all earlier operations of the queue, of any thread, are completed.
template <class Group, class Queue>
OFFLOAD_HOST_DEVICE WorkResult flush(const Group& group, Queue& queue, const WaitLimit& limit) {
  SendWork work;
  work.flags = kSignaled | kFence;
  return post_and_wait(group, queue, work, limit);
}

/// Lets the card read `received`, GPU memory that a peer has written, which orders the data written
/// before. Needed by GPUs before Hopper after a receive was seen and before its data is read.
template <class Group, class Queue>
OFFLOAD_HOST_DEVICE WorkResult flush_received(const Group& group, Queue& queue,
                                              const LocalBuffer& received, const WaitLimit& limit) {
  return post_and_wait(group, queue, signaled(Opcode::dump, received), limit);
}

}  // namespace offload::kernels::rdma
