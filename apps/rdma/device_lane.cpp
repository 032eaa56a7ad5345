#include "apps/rdma/device_lane.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace offload::rdma_tool {
namespace {

namespace wire = kernels::rdma;
using Group = kernels::SingleLane;
using Kind = DeviceWork::Kind;

/// Messages that a peer may send beyond its last credit.
std::uint64_t window_of(const DeviceMemory& memory) noexcept {
  return 2 * memory.in_flight;
}

bool is_one_sided(Kind kind) noexcept {
  return kind == Kind::read || kind == Kind::swap || kind == Kind::add;
}

/// Whether each message uses up a receive.
bool uses_receives(const DeviceWork& work) noexcept {
  return work.kind == Kind::send || work.has_immediate;
}

bool takes_credits(const DeviceWork& work) noexcept {
  return uses_receives(work) || work.kind == Kind::put_signal;
}

wire::CqeKind kind_of_receive(const DeviceWork& work) noexcept {
  if (work.kind == Kind::write) return wire::CqeKind::received_write_with_imm;
  return work.has_immediate ? wire::CqeKind::received_send_with_imm : wire::CqeKind::received_send;
}

std::uint32_t immediate_at(std::uint64_t iteration) noexcept {
  return static_cast<std::uint32_t>(iteration);
}

/// The bytes of a connection's messages, at offsets of its memory.
class LaneData {
 public:
  explicit LaneData(const DeviceWork& work) : work_(work) {}

  void make(std::size_t at, bool from_requester, std::uint64_t iteration) const {
    const std::span bytes(work_.memory.here + at, work_.size);
    if (work_.verify) {
      fill(bytes, {work_.seed, work_.connection, from_requester, iteration});
    } else {
      bytes.back() = std::byte{last_byte(iteration)};
    }
  }

  [[nodiscard]] std::optional<Mismatch> mismatch(std::size_t at, bool from_requester,
                                                 std::uint64_t iteration) const {
    return find_mismatch(std::span(work_.memory.here + at, work_.size),
                         {work_.seed, work_.connection, from_requester, iteration});
  }
  /// What an atomic of an iteration finds.
  [[nodiscard]] std::uint64_t word(std::uint64_t iteration) const {
    std::array<std::byte, sizeof(std::uint64_t)> bytes;
    fill(bytes, {work_.seed, work_.connection, false, iteration});
    return std::bit_cast<std::uint64_t>(bytes);
  }

  [[nodiscard]] const std::uint64_t* word_at(std::size_t offset) const {
    return reinterpret_cast<const std::uint64_t*>(work_.memory.here + work_.memory.words + offset);
  }

 private:
  const DeviceWork& work_;
};

/// The state of one lane. Functions that return false have set the outcome.
template <class Queue>
class Lane {
 public:
  Lane(const DeviceWork& work, std::uint32_t lane, Queue& queue, wire::ExclusiveReceives& receives)
      : work_(work),
        memory_(work.memory),
        data_(work),
        lane_(lane),
        queue_(queue),
        receives_(receives),
        tickets_(memory_.in_flight) {}

  DeviceOutcome run(std::span<std::uint64_t> times) {
    static_cast<void>(run_all(times) && flush());
    return outcome_;
  }

 private:
  [[nodiscard]] bool run_all(std::span<std::uint64_t> times) {
    if (is_one_sided(work_.kind)) return run_one_sided(times);
    if (memory_.in_flight == 1) return ping_pong(times);
    return work_.sends ? send_stream() : receive_stream();
  }

  bool ping_pong(std::span<std::uint64_t> times) {
    for (std::uint64_t i = work_.begin; i != work_.end; ++i) {
      if (work_.sends && !post(i)) return false;
      if (!await(i)) return false;
      // The answering end measures from its last answer.
      times[i - work_.begin] = begun_ == 0 ? 0 : (wire::now_ns() - begun_) / 2;
      if (!check_message(i) || !give_back()) return false;
      if (!work_.sends && !post(i)) return false;
    }
    return true;
  }

  bool send_stream() {
    for (std::uint64_t i = work_.begin + lane_; i < work_.end; i += work_.lanes) {
      if (!wait_credit(i) || !post(i)) return false;
    }
    return true;
  }

  bool receive_stream() {
    for (std::uint64_t i = work_.begin; i != work_.end; ++i) {
      if (!await(i) || !check_message(i) || !give_back()) return false;
      if ((i + 1) % memory_.in_flight == 0 && !give_credit(i + 1)) return false;
    }
    return true;
  }

  /// As Benchmark::run_one_sided(): an atomic finds the word that the one before it in its slot
  /// made, so a slot is one lane's.
  bool run_one_sided(std::span<std::uint64_t> times) {
    const std::uint64_t depth = memory_.in_flight;
    for (std::uint64_t i = work_.begin + lane_; i < work_.end + depth; i += work_.lanes) {
      if (i >= work_.begin + depth) {
        const std::uint64_t done = i - depth;
        if (!wait_slot(done)) return false;
        if (!times.empty()) times[done - work_.begin] = wire::now_ns() - begun_;
        const auto slot = memory_.outgoing(done);
        if (!check(slot, false, work_.kind == Kind::read ? done % (depth + 1) : done)) return false;
      }
      if (i < work_.end && !post_one_sided(i)) return false;
    }
    return true;
  }

  bool post(std::uint64_t iteration) {
    if (!wait_slot(iteration)) return false;
    const std::size_t from = memory_.outgoing(iteration);
    data_.make(from, work_.is_requester, iteration);
    const auto data = memory_.local(from, work_.size);
    const auto to = memory_.remote(memory_.incoming(iteration));
    const auto immediate = immediate_at(iteration);
    std::uint64_t& ticket = take_ticket(iteration);
    const wire::WaitLimit& limit = work_.limit;
    begun_ = wire::now_ns();
    switch (work_.kind) {
      case Kind::put_signal: {
        const wire::Signal signal{memory_.remote(memory_.words + DeviceWords::signal(lane_)), 1,
                                  memory_.local(memory_.words + DeviceWords::found(lane_), 8)};
        return came(put_with_signal(Group{}, queue_, to, data, signal, limit, ticket));
      }
      case Kind::write:
        return came(work_.has_immediate
                        ? put_with_immediate(Group{}, queue_, to, data, immediate, limit, ticket)
                        : put(Group{}, queue_, to, data, limit, ticket));
      default:
        return came(work_.has_immediate
                        ? send_with_immediate(Group{}, queue_, data, immediate, limit, ticket)
                        : send(Group{}, queue_, data, limit, ticket));
    }
  }

  bool post_one_sided(std::uint64_t iteration) {
    const std::uint64_t depth = memory_.in_flight;
    const auto slot = memory_.local(memory_.outgoing(iteration), work_.size);
    std::uint64_t& ticket = take_ticket(iteration);
    begun_ = wire::now_ns();
    if (work_.kind == Kind::read) {
      const auto from = memory_.remote(memory_.incoming(iteration % (depth + 1)));
      return came(get(Group{}, queue_, slot, from, work_.limit, ticket));
    }
    const auto at = memory_.remote(memory_.incoming(iteration % depth));
    const std::uint64_t before = data_.word(iteration);
    const std::uint64_t after = data_.word(iteration + depth);
    if (work_.kind == Kind::swap) {
      return came(compare_swap(Group{}, queue_, at, before, after, slot, work_.limit, ticket));
    }
    return came(fetch_add(Group{}, queue_, at, after - before, slot, work_.limit, ticket));
  }

  /// The peer's message of an iteration.
  bool await(std::uint64_t iteration) {
    outcome_.iteration = iteration;
    outcome_.what = "a message of the peer";
    if (work_.kind == Kind::put_signal) {
      const auto* const signal =
          data_.word_at(DeviceWords::signal(static_cast<std::uint32_t>(iteration % work_.lanes)));
      return came(wait_signal(Group{}, signal, iteration / work_.lanes + 1, work_.limit));
    }
    if (work_.kind == Kind::write && !work_.has_immediate) return await_write(iteration);
    completion_ = {};
    const wire::Result result = receive(Group{}, receives_, work_.limit, completion_);
    outcome_.syndrome = completion_.syndrome;
    return came(result);
  }

  /// By its last byte, which is the last that is written. Acquire: pairs with the device's write.
  bool await_write(std::uint64_t iteration) {
    const std::byte* const end = memory_.here + memory_.incoming(iteration) + work_.size;
    const auto* const last = reinterpret_cast<const std::uint8_t*>(end - 1);
    wire::Wait wait(work_.limit);
    while (__atomic_load_n(last, __ATOMIC_ACQUIRE) != last_byte(iteration)) {
      if (wait.is_over()) return came(wire::Result::timed_out);
    }
    return true;
  }

  bool check_message(std::uint64_t iteration) {
    std::size_t at = memory_.incoming(iteration);
    if (uses_receives(work_)) {
      if (completion_.byte_count != work_.size) return wrong("a message of another length");
      if (work_.has_immediate && completion_.immediate != immediate_at(iteration)) {
        return wrong("the immediate is another");
      }
      if (completion_.kind != kind_of_receive(work_)) return wrong("a message of another kind");
      if (work_.kind == Kind::send) {
        at = receive_buffer(memory_, receives_.state.polled - 1, true).address -
             reinterpret_cast<std::uint64_t>(memory_.here);
      }
    }
    return check(at, !work_.is_requester, iteration);
  }

  bool give_back() {
    if (!uses_receives(work_)) return true;
    const std::uint64_t number = receives_.state.posted;
    return came(wire::post_receives(Group{}, receives_, 1, [&](std::uint32_t i) {
      return receive_buffer(memory_, number + i, work_.kind == Kind::send);
    }));
  }

  /// Tells the peer that it may post `count` messages and a window more.
  bool give_credit(std::uint64_t count) {
    if (!takes_credits(work_)) return true;
    wire::SendWork work;
    work.opcode = wire::Opcode::rdma_write;
    work.flags = wire::kSignaled;
    work.remote = memory_.remote(memory_.words + DeviceWords::credits());
    work.inline_data = &count;
    work.inline_length = sizeof count;
    return came(wire::post(Group{}, queue_, work, work_.limit, credit_.emplace()));
  }

  bool wait_credit(std::uint64_t iteration) {
    const std::uint64_t window = window_of(memory_);
    if (!takes_credits(work_) || iteration < window) return true;
    outcome_.iteration = iteration;
    outcome_.what = "a credit of the peer";
    return came(wait_signal(Group{}, data_.word_at(DeviceWords::credits()), iteration + 1 - window,
                            work_.limit));
  }

  /// Until the latest operation from an iteration's slot has ended.
  bool wait_slot(std::uint64_t iteration) {
    return wait_ticket(tickets_[iteration % memory_.in_flight]);
  }

  /// Nothing of this lane is under way at the end.
  bool flush() {
    for (auto& ticket : tickets_) {
      if (!wait_ticket(ticket)) return false;
    }
    return wait_ticket(credit_);
  }

  bool wait_ticket(std::optional<std::uint64_t>& ticket) {
    if (!ticket) return true;
    outcome_.what = "the end of an operation";
    if (!came(wire::wait_for(Group{}, queue_, *ticket, work_.limit))) return false;
    ticket.reset();
    return true;
  }

  std::uint64_t& take_ticket(std::uint64_t iteration) {
    outcome_.iteration = iteration;
    outcome_.what = "room for an operation";
    return tickets_[iteration % memory_.in_flight].emplace();
  }

  bool came(wire::Result result) {
    if (result == wire::Result::done) return true;
    outcome_.result = result;
    const auto error = error_of(Group{}, queue_);
    if (error) outcome_.syndrome = error.syndrome();
    return false;
  }

  bool wrong(const char* what) {
    outcome_.wrong = what;
    return false;
  }

  bool check(std::size_t at, bool from_requester, std::uint64_t iteration) {
    if (!work_.verify) return true;
    outcome_.iteration = iteration;
    outcome_.mismatch = data_.mismatch(at, from_requester, iteration);
    if (outcome_.mismatch) return false;
    ++outcome_.checked;
    return true;
  }

  const DeviceWork& work_;
  const DeviceMemory& memory_;
  LaneData data_;
  std::uint32_t lane_;
  Queue& queue_;
  wire::ExclusiveReceives& receives_;
  std::vector<std::optional<std::uint64_t>> tickets_;  ///< of each slot's latest operation
  std::optional<std::uint64_t> credit_;                ///< of the latest
  wire::Completion completion_{};
  std::uint64_t begun_ = 0;
  DeviceOutcome outcome_;
};

}  // namespace

DeviceOutcome run_lane(const DeviceWork& work, std::uint32_t lane, DeviceQueues& queues,
                       std::span<std::uint64_t> times) {
  if (work.lanes > 1) return Lane(work, lane, queues.shared, queues.receives).run(times);
  return Lane(work, lane, queues.sends, queues.receives).run(times);
}

wire::LocalBuffer receive_buffer(const DeviceMemory& memory, std::uint64_t number, bool has_data) {
  if (!has_data) return {};
  return memory.local(memory.receives + number % window_of(memory) * memory.stride, memory.stride);
}

}  // namespace offload::rdma_tool
