#pragma once

#include <cstdint>

#include "kernels/rdma_tasks/put.hpp"
#include "kernels/rdma_tasks/receive.hpp"

/// The loads that groups of threads post, on a GPU or on the CPU. Each ends within its limit.
namespace offload::bench {

namespace rdma = kernels::rdma;

OFFLOAD_HOST_DEVICE inline std::uint64_t address_of(const void* at) {
  return reinterpret_cast<std::uint64_t>(at);
}

enum class LoadKind : std::uint32_t {
  post,        ///< entries and doorbells alone; completions are not polled
  rate,        ///< posted and completed
  round_trip,  ///< one entry at a time
  signal,      ///< put with signal to a group, which answers with the same
  ping_pong,   ///< the same with sends and receives
};

/// One group's part: a queue, its peer's receives, and memory.
struct Part {
  rdma::SendQueue send;
  rdma::ReceiveQueue receives;  ///< its own
  std::uint8_t* local;          ///< 64 bytes, 8 for the old value of an atomic, 64 received
  std::uint64_t remote;         ///< 64 bytes of the peer
  std::uint64_t peer_signal;    ///< a word of the peer
  std::uint64_t* signal;        ///< its own
};

struct Outcome {
  rdma::WorkResult result;
  std::uint32_t error;  ///< of the queue, as its word
  std::uint64_t begin;  ///< ns
  std::uint64_t end;
};

struct Load {
  LoadKind kind;
  Part* parts;
  rdma::SharedSendState* shared;  ///< not null: all groups post to the first part's queue
  std::uint64_t* marks;
  std::uint64_t operations;  ///< of each group, a multiple of `batch`
  std::uint32_t batch;       ///< entries a doorbell
  bool has_inline;           ///< 28 bytes in the entry, instead of two buffers of 32
  bool signals_each;         ///< a completion for each entry, not one for each doorbell
  std::uint64_t limit_ns;
  Outcome* outcomes;
};

/// A put whose entry fills its block of 64 bytes, for each entry of a batch.
struct Puts {
  const Load& load;
  const Part& part;
  rdma::LocalBuffer halves[2];

  OFFLOAD_HOST_DEVICE Puts(const Load& of, const Part& by)
      : load(of),
        part(by),
        halves{{address_of(by.local), 32, 0}, {address_of(by.local + 32), 32, 0}} {}

  OFFLOAD_HOST_DEVICE rdma::SendWork operator()(std::uint32_t) const {
    rdma::SendWork work;
    work.opcode = rdma::Opcode::rdma_write;
    work.flags = load.signals_each ? rdma::kSignaled : 0;
    work.remote = {part.remote, 0};
    if (load.has_inline) {
      work.inline_data = part.local;
      work.inline_length = 28;
    } else {
      work.buffers = halves;
      work.buffer_count = 2;
    }
    return work;
  }
};

template <class Group>
OFFLOAD_HOST_DEVICE rdma::WorkResult post_only(const Group& group, const Load& load,
                                               const Part& part) {
  rdma::ExclusiveQueue queue{part.send, {}, {}};
  const Puts puts(load, part);
  const std::uint64_t end = rdma::now_ns() + load.limit_ns;
  std::uint64_t ticket = 0;
  for (std::uint64_t i = 0; i < load.operations; i += load.batch) {
    queue.state.completed = queue.state.posted;  // no card reads the ring
    const auto result = post(group, queue, load.batch, puts, {load.limit_ns}, ticket);
    if (result != rdma::WorkResult::done) return result;
    if (i % 4096 == 0 && group.from_first(rdma::now_ns() > end ? 1 : 0) != 0) {
      return rdma::WorkResult::timed_out;
    }
  }
  return rdma::WorkResult::done;
}

template <class Group, class Queue>
OFFLOAD_HOST_DEVICE rdma::WorkResult post_and_complete(const Group& group, const Load& load,
                                                       const Part& part, Queue& queue) {
  const Puts puts(load, part);
  std::uint64_t ticket = 0;
  auto result = rdma::WorkResult::done;
  for (std::uint64_t i = 0; i < load.operations && result == rdma::WorkResult::done;
       i += load.batch) {
    result = post(group, queue, load.batch, puts, {load.limit_ns}, ticket);
    const bool alone = load.kind == LoadKind::round_trip;
    if (result == rdma::WorkResult::done && (alone || i + load.batch >= load.operations)) {
      result = wait_for(group, queue, ticket, {load.limit_ns});
    }
  }
  return result;
}

/// The even groups begin, the odd ones answer.
template <class Group>
OFFLOAD_HOST_DEVICE rdma::WorkResult exchange_signals(const Group& group, const Load& load,
                                                      const Part& part, bool begins,
                                                      rdma::ExclusiveQueue& queue) {
  const rdma::LocalBuffer from{address_of(part.local), 64, 0};
  const rdma::Signal signal{{part.peer_signal, 0}, 1, {address_of(part.local + 64), 8, 0}};
  std::uint64_t ticket = 0;
  auto result = rdma::WorkResult::done;
  for (std::uint64_t i = 1; i <= load.operations && result == rdma::WorkResult::done; ++i) {
    if (!begins) result = rdma::wait_signal(group, part.signal, i, {load.limit_ns});
    if (result != rdma::WorkResult::done) break;
    result = put_with_signal(group, queue, {part.remote, 0}, from, signal, {load.limit_ns}, ticket);
    if (begins && result == rdma::WorkResult::done) {
      result = rdma::wait_signal(group, part.signal, i, {load.limit_ns});
    }
  }
  return result == rdma::WorkResult::done ? wait_for(group, queue, ticket, {load.limit_ns})
                                          : result;
}

template <class Group>
OFFLOAD_HOST_DEVICE rdma::WorkResult exchange_messages(const Group& group, const Load& load,
                                                       const Part& part, bool begins,
                                                       rdma::ExclusiveQueue& queue) {
  rdma::ExclusiveReceives receives{part.receives, {}};
  const rdma::LocalBuffer from{address_of(part.local), 64, 0};
  const auto to = [&](std::uint32_t) {
    return rdma::LocalBuffer{address_of(part.local + 128), 64, 0};
  };
  rdma::Completion came{};
  std::uint64_t ticket = 0;
  auto result = post_receives(group, receives, 2, to);
  for (std::uint64_t i = 0; i < load.operations && result == rdma::WorkResult::done; ++i) {
    for (const bool sends : {begins, !begins}) {
      if (result != rdma::WorkResult::done) break;
      if (sends) {
        result = send(group, queue, from, {load.limit_ns}, ticket);
      } else {
        result = receive(group, receives, {load.limit_ns}, came);
        // The peer's next message has the second receive.
        if (result == rdma::WorkResult::done) result = post_receives(group, receives, 1, to);
      }
    }
  }
  return result == rdma::WorkResult::done ? wait_for(group, queue, ticket, {load.limit_ns})
                                          : result;
}

/// Runs the load of group `number`; each of its lanes must call it.
template <class Group>
OFFLOAD_HOST_DEVICE void run_load(const Group& group, std::uint32_t number, const Load& load) {
  const Part part = load.parts[load.shared == nullptr ? number : 0];
  Outcome outcome{rdma::WorkResult::done, 0, rdma::now_ns(), 0};
  if (load.kind == LoadKind::post) {
    outcome.result = post_only(group, load, part);
  } else if (load.shared != nullptr) {
    rdma::SharedQueue queue{part.send, load.shared, load.marks};
    outcome.result = post_and_complete(group, load, part, queue);
    outcome.error = error_of(group, queue).word;
  } else {
    rdma::ExclusiveQueue queue{part.send, {}, {}};
    const bool begins = number % 2 == 0;
    if (load.kind == LoadKind::signal) {
      outcome.result = exchange_signals(group, load, part, begins, queue);
    } else if (load.kind == LoadKind::ping_pong) {
      outcome.result = exchange_messages(group, load, part, begins, queue);
    } else {
      outcome.result = post_and_complete(group, load, part, queue);
    }
    outcome.error = queue.error.word;
  }
  outcome.end = rdma::now_ns();
  if (group.lane() == 0) load.outcomes[number] = outcome;
}

}  // namespace offload::bench
