#pragma once

#include <cstdint>

#include "kernels/rdma_tasks/put.hpp"
#include "kernels/rdma_tasks/receive.hpp"

/// The tests' bodies that work with queues, on a GPU and on the host. Every lane of each group
/// calls a body, with the group's number; the body writes in a report which step went wrong.
namespace offload::kernels::rdma::test {

/// One group's queues and memory, which is three areas of the same size and a few words behind
/// them.
template <class Queue>
struct Party {
  Queue queue;
  ReceiveQueue receives;  ///< of the peer of the queue
  std::uint8_t* from;
  std::uint8_t* back;
  std::uint8_t* there;   ///< the peer's area
  std::uint64_t* words;  ///< 0: the peer's, 1: the old value, 2: the signal, 8 on: the peer's
  std::uint32_t key;
};

struct Report {
  std::uint32_t step;  ///< that went wrong; 0: none
  WorkResult result;
  QueueError error;
};

OFFLOAD_HOST_DEVICE inline std::uint64_t address_of(const void* at) {
  return reinterpret_cast<std::uint64_t>(at);
}
OFFLOAD_HOST_DEVICE inline WaitLimit seconds(std::uint64_t count) {
  return {count * 1'000'000'000U};
}

/// Posts every operation, waits for it and checks its effect.
template <class Queue>
struct EveryOperation {
  const Party<Queue>* parties;
  Report* reports;
  std::uint32_t size;
  std::uint32_t rounds;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, std::uint32_t number) const {
    const Party<Queue>& party = parties[number];
    Queue queue = party.queue;
    ExclusiveReceives receives{party.receives, {}};
    Report report{};
    for (std::uint32_t round = 1; round <= rounds && report.step == 0; ++round) {
      one_round(group, party, queue, receives, round, report);
    }
    if (report.step != 0) report.error = error_of(group, queue);
    if (group.lane() == 0) reports[number] = report;
  }

 private:
  /// Notes the step unless all went well, in every lane; returns whether it did.
  template <class Group>
  OFFLOAD_HOST_DEVICE static bool is_done(const Group& group, Report& report, std::uint32_t step,
                                          WorkResult result, bool right = true) {
    if (group.all(result == WorkResult::done && right)) return true;
    report.step = step;
    report.result = result;
    return false;
  }

  template <class Group>
  OFFLOAD_HOST_DEVICE bool same(const Group& group, const std::uint8_t* one,
                                const std::uint8_t* other) const {
    bool same = true;
    for (std::uint32_t i = group.lane(); i < size; i += group.size()) same &= one[i] == other[i];
    return same;
  }

  /// Fills the sent area with bytes that no earlier round had, and writes other bytes to the
  /// target.
  template <class Group>
  OFFLOAD_HOST_DEVICE void prepare(const Group& group, const Party<Queue>& party,
                                   std::uint32_t seed, std::uint8_t* to) const {
    group.sync();
    for (std::uint32_t i = group.lane(); i < size; i += group.size()) {
      party.from[i] = static_cast<std::uint8_t>(i * 7 + seed * 31 + (i >> 8));
      to[i] = static_cast<std::uint8_t>(~party.from[i]);
    }
    group.sync();
  }

  template <class Group>
  OFFLOAD_HOST_DEVICE void one_round(const Group& group, const Party<Queue>& party, Queue& queue,
                                     ExclusiveReceives& receives, std::uint32_t round,
                                     Report& report) const {
    if (!one_sided(group, party, queue, round, report)) return;
    if (!atomics(group, party, queue, round, report)) return;
    if (!two_sided(group, party, queue, receives, round, report)) return;
    many_at_once(group, party, queue, round, report);
  }

  template <class Group>
  OFFLOAD_HOST_DEVICE bool one_sided(const Group& group, const Party<Queue>& party, Queue& queue,
                                     std::uint32_t round, Report& report) const {
    const LocalBuffer from{address_of(party.from), size, party.key};
    const LocalBuffer back{address_of(party.back), size, party.key};
    const RemotePointer there{address_of(party.there), party.key};
    const LocalBuffer before{address_of(&party.words[1]), 8, party.key};
    const WaitLimit limit = seconds(20);
    std::uint64_t ticket = 0;
    prepare(group, party, round, party.there);
    if (!is_done(group, report, 1, put(group, queue, there, from, limit, ticket))) return false;
    const WorkResult written = wait_for(group, queue, ticket, limit);
    if (!is_done(group, report, 2, written, same(group, party.from, party.there))) return false;

    prepare(group, party, round, party.back);
    if (!is_done(group, report, 3, get(group, queue, back, there, limit, ticket))) return false;
    const WorkResult read = wait_for(group, queue, ticket, limit);
    if (!is_done(group, report, 4, read, same(group, party.from, party.back))) return false;

    prepare(group, party, round + 100, party.there);
    const Signal signal{{address_of(&party.words[2]), party.key}, 3, before};
    const WorkResult put = put_with_signal(group, queue, there, from, signal, limit, ticket);
    if (!is_done(group, report, 5, put)) return false;
    const WorkResult seen = wait_signal(group, &party.words[2], 3 * std::uint64_t{round}, limit);
    if (!is_done(group, report, 6, seen, same(group, party.from, party.there))) return false;
    if (!is_done(group, report, 7, wait_for(group, queue, ticket, limit))) return false;
    if (!is_done(group, report, 8, flush_received(group, queue, back, limit))) return false;
    return is_done(group, report, 9, flush(group, queue, limit));
  }

  template <class Group>
  OFFLOAD_HOST_DEVICE bool atomics(const Group& group, const Party<Queue>& party, Queue& queue,
                                   std::uint32_t round, Report& report) const {
    const RemotePointer word{address_of(party.words), party.key};
    const LocalBuffer before{address_of(&party.words[1]), 8, party.key};
    const WaitLimit limit = seconds(20);
    const std::uint64_t sum = std::uint64_t{round} << 33;
    std::uint64_t ticket = 0;
    group.sync();
    if (group.lane() == 0) party.words[0] = sum;
    group.sync();
    WorkResult result = fetch_add(group, queue, word, 5, before, limit, ticket);
    if (result == WorkResult::done) result = wait_for(group, queue, ticket, limit);
    bool right = party.words[1] == sum && party.words[0] == sum + 5;
    if (!is_done(group, report, 20, result, right)) return false;
    for (std::uint32_t i = 0; i < 2; ++i) {  // the second returns another value
      result = compare_swap(group, queue, word, sum + 5, sum + 9, before, limit, ticket);
      if (result == WorkResult::done) result = wait_for(group, queue, ticket, limit);
      right = party.words[1] == sum + (i == 0 ? 5 : 9) && party.words[0] == sum + 9;
      if (!is_done(group, report, 21 + i, result, right)) return false;
    }
    return true;
  }

  template <class Group>
  OFFLOAD_HOST_DEVICE bool two_sided(const Group& group, const Party<Queue>& party, Queue& queue,
                                     ExclusiveReceives& receives, std::uint32_t round,
                                     Report& report) const {
    const LocalBuffer from{address_of(party.from), size, party.key};
    const LocalBuffer back{address_of(party.back), size, party.key};
    const RemotePointer there{address_of(party.there), party.key};
    const WaitLimit limit = seconds(20);
    const auto place = [&](std::uint32_t i) { return i == 2 ? LocalBuffer{} : back; };
    if (!is_done(group, report, 30, post_receives(group, receives, 3, place))) return false;
    constexpr CqeKind kKinds[] = {CqeKind::received_send, CqeKind::received_send_with_imm,
                                  CqeKind::received_write_with_imm};
    for (std::uint32_t i = 0; i < 3; ++i) {
      std::uint8_t* const to = i == 2 ? party.there : party.back;
      prepare(group, party, round + 200 + i, to);
      std::uint64_t ticket = 0;
      WorkResult result = WorkResult::done;
      if (i == 0) result = send(group, queue, from, limit, ticket);
      if (i == 1) result = send_with_immediate(group, queue, from, round, limit, ticket);
      if (i == 2) result = put_with_immediate(group, queue, there, from, round, limit, ticket);
      if (!is_done(group, report, 31 + 10 * i, result)) return false;
      Completion came{};
      result = receive(group, receives, limit, came);
      const bool right = came.kind == kKinds[i] && came.byte_count == size &&
                         came.immediate == (i == 0 ? 0 : round) && same(group, party.from, to);
      if (!is_done(group, report, 32 + 10 * i, result, right)) return false;
      if (!is_done(group, report, 33 + 10 * i, wait_for(group, queue, ticket, limit))) return false;
    }
    return true;
  }

  /// Inline words, as many as a doorbell may have, without a completion for each.
  template <class Group>
  OFFLOAD_HOST_DEVICE bool many_at_once(const Group& group, const Party<Queue>& party, Queue& queue,
                                        std::uint32_t round, Report& report) const {
    constexpr std::uint32_t kCount = 7;
    const WaitLimit limit = seconds(20);
    std::uint64_t values[kCount];
    for (std::uint32_t i = 0; i < kCount; ++i) values[i] = std::uint64_t{round} * 1000 + i;
    const auto make = [&](std::uint32_t i) {
      SendWork work;
      work.opcode = Opcode::rdma_write;
      work.remote = {address_of(&party.words[8 + i]), party.key};
      work.inline_data = &values[i];
      work.inline_length = 8;
      return work;
    };
    for (std::uint32_t i = 0; i < 3; ++i) {
      std::uint64_t ticket = 0;
      WorkResult result = post(group, queue, kCount, make, limit, ticket);
      if (result == WorkResult::done) result = wait_for(group, queue, ticket, limit);
      bool right = true;
      for (std::uint32_t word = 0; word < kCount; ++word) {
        right = right && party.words[8 + word] == values[word];
      }
      if (!is_done(group, report, 70 + i, result, right)) return false;
    }
    return true;
  }
};

/// Many groups post to one queue, no two the same number of entries; each entry adds 1 to one word,
/// and the value that it found there is stored in a separate place.
struct SharedAdds {
  SharedQueue queue;
  Report* reports;
  std::uint64_t* sum;
  std::uint64_t* found;  ///< rounds * most for each group
  std::uint32_t key;
  std::uint32_t rounds;

  static constexpr std::uint32_t kMost = 5;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, std::uint32_t number) const {
    Report report{};
    std::uint64_t* mine = found + std::uint64_t{number} * rounds * kMost;
    for (std::uint32_t round = 0; round < rounds && report.step == 0; ++round, mine += kMost) {
      const std::uint32_t count = 1 + (number + round) % kMost;
      LocalBuffer places[kMost];
      for (std::uint32_t i = 0; i < kMost; ++i) places[i] = {address_of(mine + i), 8, key};
      const auto make = [&](std::uint32_t i) {
        SendWork work = signaled(Opcode::fetch_add, places[i], {address_of(sum), key});
        work.flags = 0;
        work.compare_add = 1;
        return work;
      };
      std::uint64_t ticket = 0;
      report.result = post(group, queue, count, make, seconds(20), ticket);
      if (report.result != WorkResult::done) report.step = 1;
      // Half of them go on at once, so that the ring fills.
      if (report.step == 0 && (round % 2 == 0 || round + 1 == rounds)) {
        report.result = wait_for(group, queue, ticket, seconds(20));
        if (report.result != WorkResult::done) report.step = 2;
      }
    }
    report.error = error_of(group, queue);
    if (group.lane() == 0) reports[number] = report;
  }
};

/// Stores the results of waits that never end: of a post to a full ring, an operation and a
/// receive.
template <class Queue>
struct Unanswered {
  const Party<Queue>* parties;
  WorkResult* results;  ///< 4 for each
  const std::uint32_t* stop;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, std::uint32_t number) const {
    Queue queue = parties[number].queue;
    ExclusiveReceives receives{parties[number].receives, {}};
    const WaitLimit soon{1'000'000};
    std::uint64_t ticket = 0;
    const SendWork work;
    WorkResult posted = WorkResult::done;
    const std::uint32_t blocks = handle_of(queue).ring.blocks;
    for (std::uint32_t i = 0; i < blocks; ++i) {
      const WorkResult each = post(group, queue, work, soon, ticket);
      if (each != WorkResult::done) posted = each;
    }
    const WorkResult full = post(group, queue, work, soon, ticket);
    const WorkResult waited = wait_for(group, queue, ticket, {20'000'000'000U, stop});
    post_receives(group, receives, 1, [](std::uint32_t) { return LocalBuffer{}; });
    Completion completion{};
    const WorkResult received = receive(group, receives, soon, completion);
    if (group.lane() == 0) {
      WorkResult* const mine = results + 4 * number;
      mine[0] = posted;
      mine[1] = full;
      mine[2] = waited;
      mine[3] = received;
    }
  }
};

/// One operation that fails, and one more behind it.
template <class Queue>
struct Refused {
  const Party<Queue>* parties;
  Opcode opcode;
  LocalBuffer local;
  RemotePointer remote;
  WorkResult* results;  ///< of the wait, and of the post behind it
  QueueError* error;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, std::uint32_t) const {
    Queue queue = parties[0].queue;
    std::uint64_t ticket = 0;
    WorkResult failed = post(group, queue, signaled(opcode, local, remote), seconds(20), ticket);
    if (failed == WorkResult::done) failed = wait_for(group, queue, ticket, seconds(20));
    const WorkResult behind = post(group, queue, SendWork{}, seconds(20), ticket);
    const QueueError found = error_of(group, queue);
    if (group.lane() != 0) return;
    results[0] = failed;
    results[1] = behind;
    *error = found;
  }
};

}  // namespace offload::kernels::rdma::test
