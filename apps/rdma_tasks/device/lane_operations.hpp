#pragma once

#include "apps/rdma_tasks/device/lane_data.hpp"

/// The single operations of a lane. They use only the functions of kernels/rdma, whose waits all
/// have a limit.
namespace offload::rdma_tool {

/// A message's last byte. With acquire, of a GPU with await_write()'s fence: pairs with the
/// device's write.
OFFLOAD_HOST_DEVICE inline std::uint8_t load_last(const std::byte* at) {
#if defined(__CUDA_ARCH__)
  // Loads its word: PTX has no relaxed load of a byte. Messages begin on separate cache lines.
  const auto address = reinterpret_cast<std::uintptr_t>(at);
  const auto* const word = reinterpret_cast<const std::uint32_t*>(address & ~std::uintptr_t{3});
  return static_cast<std::uint8_t>(kernels::load_relaxed_sys(word) >> (address & 3) * 8);
#else
  return __atomic_load_n(reinterpret_cast<const std::uint8_t*>(at), __ATOMIC_ACQUIRE);
#endif
}

/// Returns the kind of completion of a message's receive.
OFFLOAD_HOST_DEVICE inline kernels::rdma::CqeKind kind_of_receive(const DeviceWork& work) {
  using kernels::rdma::CqeKind;
  if (work.kind == DeviceWork::Kind::write) return CqeKind::received_write_with_imm;
  return work.has_immediate ? CqeKind::received_send_with_imm : CqeKind::received_send;
}
OFFLOAD_HOST_DEVICE inline std::uint32_t immediate_at(std::uint64_t iteration) {
  return static_cast<std::uint32_t>(iteration);
}

/// The single operations of a lane, and its state, of which each lane of its group has a copy, that
/// all change alike. Functions that return false have set the outcome.
template <class Group, class Queue>
class LaneOperations {
 public:
  OFFLOAD_HOST_DEVICE LaneOperations(const Group& group, const LaneRun& run, const DeviceWork& work,
                                     Queue& queue, kernels::rdma::ExclusiveReceives& receives)
      : group_(group),
        work_(work),
        memory_(work.memory),
        data_(group, work),
        lane_(run.lane),
        times_(run.times),
        queue_(queue),
        receives_(receives),
        tickets_(group, run.tickets, work.memory.in_flight) {}

  [[nodiscard]] OFFLOAD_HOST_DEVICE const DeviceOutcome& outcome() const { return outcome_; }
  [[nodiscard]] OFFLOAD_HOST_DEVICE std::uint32_t lane() const { return lane_; }
  /// Since the latest operation began, ns; 0 before the first.
  [[nodiscard]] OFFLOAD_HOST_DEVICE std::uint64_t elapsed() const {
    return begun_ == 0 ? 0 : kernels::rdma::now_ns() - begun_;
  }

  OFFLOAD_HOST_DEVICE bool post(std::uint64_t iteration) {
    if (!wait_slot(iteration)) return false;
    const std::size_t from = memory_.outgoing(iteration);
    data_.make(from, work_.is_requester, iteration);
    const auto data = memory_.local(from, work_.size);
    const auto to = memory_.remote(memory_.incoming(iteration));
    const auto immediate = immediate_at(iteration);
    const auto& limit = work_.limit;
    std::uint64_t ticket = 0;
    begin(iteration);
    WorkResult result = WorkResult::done;
    switch (work_.kind) {
      case Kind::put_signal: {
        const kernels::rdma::Signal signal{
            memory_.remote(memory_.words + DeviceWords::signal(lane_)), 1,
            memory_.local(memory_.words + DeviceWords::found(lane_), 8)};
        result = put_with_signal(group_, queue_, to, data, signal, limit, ticket);
        break;
      }
      case Kind::write:
        result = work_.has_immediate
                     ? put_with_immediate(group_, queue_, to, data, immediate, limit, ticket)
                     : put(group_, queue_, to, data, limit, ticket);
        break;
      default:
        result = work_.has_immediate
                     ? send_with_immediate(group_, queue_, data, immediate, limit, ticket)
                     : send(group_, queue_, data, limit, ticket);
    }
    return came(result) && keep(iteration, ticket);
  }

  OFFLOAD_HOST_DEVICE bool post_one_sided(std::uint64_t iteration) {
    const std::uint64_t depth = memory_.in_flight;
    const auto slot = memory_.local(memory_.outgoing(iteration), work_.size);
    const auto& limit = work_.limit;
    std::uint64_t ticket = 0;
    if (work_.kind == Kind::copy) {
      data_.make(memory_.outgoing(iteration), work_.is_requester, iteration);
      begin(iteration);
      const auto to = memory_.remote(memory_.incoming(iteration % depth));
      return came(put(group_, queue_, to, slot, limit, ticket)) && keep(iteration, ticket);
    }
    begin(iteration);
    if (work_.kind == Kind::read) {
      const auto from = memory_.remote(memory_.incoming(iteration % (depth + 1)));
      return came(get(group_, queue_, slot, from, limit, ticket)) && keep(iteration, ticket);
    }
    const auto at = memory_.remote(memory_.incoming(iteration % depth));
    const std::uint64_t before = data_.word(iteration);
    const std::uint64_t after = data_.word(iteration + depth);
    const auto result = work_.kind == Kind::swap
                            ? compare_swap(group_, queue_, at, before, after, slot, limit, ticket)
                            : fetch_add(group_, queue_, at, after - before, slot, limit, ticket);
    return came(result) && keep(iteration, ticket);
  }

  OFFLOAD_HOST_DEVICE bool check_one_sided(std::uint64_t iteration) {
    if (work_.kind == Kind::copy) {
      return check(memory_.incoming(iteration % memory_.in_flight), work_.is_requester, iteration);
    }
    const std::uint64_t made =
        work_.kind == Kind::read ? iteration % (memory_.in_flight + 1) : iteration;
    return check(memory_.outgoing(iteration), false, made);
  }

  /// The peer's message of an iteration.
  OFFLOAD_HOST_DEVICE bool await(std::uint64_t iteration) {
    outcome_.iteration = iteration;
    outcome_.step = Step::message;
    if (work_.kind == Kind::put_signal) {
      const auto* const signal =
          data_.word_at(DeviceWords::signal(static_cast<std::uint32_t>(iteration % work_.lanes)));
      return came(wait_signal(group_, signal, iteration / work_.lanes + 1, work_.limit));
    }
    if (work_.kind == Kind::write && !work_.has_immediate) return await_write(iteration);
    completion_ = {};
    const WorkResult result = receive(group_, receives_, work_.limit, completion_);
    outcome_.syndrome = completion_.syndrome;
    return came(result);
  }

  OFFLOAD_HOST_DEVICE bool check_message(std::uint64_t iteration) {
    std::size_t at = memory_.incoming(iteration);
    if (uses_receives()) {
      if (completion_.byte_count != work_.size) return wrong(Wrong::length);
      if (work_.has_immediate && completion_.immediate != immediate_at(iteration)) {
        return wrong(Wrong::immediate);
      }
      if (completion_.kind != kind_of_receive(work_)) return wrong(Wrong::kind);
      if (work_.kind == Kind::send) {
        at = memory_.receive_buffer(receives_.state.polled - 1, true).address -
             reinterpret_cast<std::uint64_t>(memory_.here);
      }
    }
    return check(at, !work_.is_requester, iteration);
  }

  OFFLOAD_HOST_DEVICE bool give_back() {
    if (!uses_receives()) return true;
    const std::uint64_t number = receives_.state.posted;
    return came(post_receives(group_, receives_, 1, [&](std::uint32_t i) {
      return memory_.receive_buffer(number + i, work_.kind == Kind::send);
    }));
  }

  /// Tells the peer that it may post `count` messages and a window more.
  OFFLOAD_HOST_DEVICE bool give_credit(std::uint64_t count) {
    if (!takes_credits()) return true;
    kernels::rdma::SendWork work;
    work.opcode = kernels::rdma::Opcode::rdma_write;
    work.flags = kernels::rdma::kSignaled;
    work.remote = memory_.remote(memory_.words + DeviceWords::credits());
    work.inline_data = &count;
    work.inline_length = sizeof count;
    std::uint64_t ticket = 0;
    if (!came(kernels::rdma::post(group_, queue_, work, work_.limit, ticket))) return false;
    credit_ = ticket + 1;
    return true;
  }

  OFFLOAD_HOST_DEVICE bool wait_credit(std::uint64_t iteration) {
    const std::uint64_t window = memory_.window();
    if (!takes_credits() || iteration < window) return true;
    outcome_.iteration = iteration;
    outcome_.step = Step::credit;
    return came(wait_signal(group_, data_.word_at(DeviceWords::credits()), iteration + 1 - window,
                            work_.limit));
  }

  /// Until the latest operation from an iteration's slot has ended.
  OFFLOAD_HOST_DEVICE bool wait_slot(std::uint64_t iteration) {
    return wait_ticket(tickets_.take(iteration));
  }

  /// Nothing of this lane is under way at the end.
  OFFLOAD_HOST_DEVICE bool flush() {
    for (std::uint64_t slot = 0; slot < tickets_.count(); ++slot) {
      if (!wait_slot(slot)) return false;
    }
    return wait_ticket(credit_);
  }

  OFFLOAD_HOST_DEVICE void took(std::uint64_t iteration, std::uint64_t time) {
    if (times_ != nullptr && group_.lane() == 0) times_[iteration - work_.begin] = time;
  }

 private:
  using Kind = DeviceWork::Kind;
  using WorkResult = kernels::rdma::WorkResult;

  /// Returns whether each message uses up a receive.
  OFFLOAD_HOST_DEVICE bool uses_receives() const {
    return work_.kind == Kind::send || work_.has_immediate;
  }
  OFFLOAD_HOST_DEVICE bool takes_credits() const {
    return uses_receives() || work_.kind == Kind::put_signal;
  }

  /// By its last byte, which is the last that is written.
  OFFLOAD_HOST_DEVICE bool await_write(std::uint64_t iteration) {
    const std::byte* const last = memory_.here + memory_.incoming(iteration) + work_.size - 1;
    kernels::rdma::Wait wait(work_.limit);
    for (;;) {
      const bool there = group_.lane() == 0 && load_last(last) == last_byte(iteration);
      if (group_.from_first(there ? 1 : 0) != 0) break;
      if (group_.from_first(wait.is_over() ? 1 : 0) != 0) return came(WorkResult::timed_out);
    }
    kernels::acquire_looked_sys();
    group_.sync();
    return true;
  }

  /// `ticket`: as Tickets have it.
  OFFLOAD_HOST_DEVICE bool wait_ticket(std::uint64_t ticket) {
    if (ticket == 0) return true;
    outcome_.step = Step::end;
    return came(wait_for(group_, queue_, ticket - 1, work_.limit));
  }

  OFFLOAD_HOST_DEVICE void begin(std::uint64_t iteration) {
    outcome_.iteration = iteration;
    outcome_.step = Step::room;
    begun_ = kernels::rdma::now_ns();
  }
  OFFLOAD_HOST_DEVICE bool keep(std::uint64_t iteration, std::uint64_t ticket) {
    tickets_.set(iteration, ticket);
    return true;
  }
  OFFLOAD_HOST_DEVICE bool came(WorkResult result) {
    if (result == WorkResult::done) return true;
    outcome_.result = result;
    const auto error = error_of(group_, queue_);
    if (error) outcome_.syndrome = error.syndrome();
    return false;
  }

  OFFLOAD_HOST_DEVICE bool wrong(Wrong what) {
    outcome_.wrong = what;
    return false;
  }

  OFFLOAD_HOST_DEVICE bool check(std::size_t at, bool from_requester, std::uint64_t iteration) {
    if (!work_.verify) return true;
    outcome_.iteration = iteration;
    if (!data_.is_right(at, from_requester, iteration, outcome_.mismatch)) {
      return wrong(Wrong::data);
    }
    ++outcome_.checked;
    return true;
  }

  Group group_;
  const DeviceWork& work_;
  const DeviceMemory& memory_;
  LaneData<Group> data_;
  std::uint32_t lane_;
  std::uint64_t* times_;
  Queue& queue_;
  kernels::rdma::ExclusiveReceives& receives_;
  Tickets<Group> tickets_;
  std::uint64_t credit_ = 0;  ///< the ticket of the latest, as Tickets have it
  kernels::rdma::Completion completion_{};
  std::uint64_t begun_ = 0;
  DeviceOutcome outcome_;
};

}  // namespace offload::rdma_tool
