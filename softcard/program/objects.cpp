#include "softcard/program/objects.hpp"

#include <infiniband/verbs.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <exception>
#include <iterator>
#include <span>

#include "core/error.hpp"
#include "core/log.hpp"

namespace offload::softcard {
namespace {

using kernels::rdma::Cqe;
using kernels::rdma::Segment;
using model::PairEvent;
using model::State;

/// Returns a word of a record. Word 0 counts receives, or completions that were read; word 1 counts
/// sends, or has a request for an event.
std::uint32_t* word_of(const Area& record, std::size_t index) {
  return reinterpret_cast<std::uint32_t*>(record.bytes.data()) + index;
}

State state_of(std::uint32_t native) {
  switch (native) {
    case IBV_QPS_RESET: return State::reset;
    case IBV_QPS_INIT: return State::init;
    case IBV_QPS_RTR: return State::receiving;
    case IBV_QPS_RTS: return State::sending;
    case IBV_QPS_SQD: return State::drained;
    default: return State::error;
  }
}

ibv_qp_state native_of(State state) {
  switch (state) {
    case State::reset: return IBV_QPS_RESET;
    case State::init: return IBV_QPS_INIT;
    case State::receiving: return IBV_QPS_RTR;
    case State::sending: return IBV_QPS_RTS;
    case State::drained: return IBV_QPS_SQD;
    default: return IBV_QPS_ERR;
  }
}

ibv_event_type native_of(PairEvent event) {
  switch (event) {
    case PairEvent::access_error: return IBV_EVENT_QP_ACCESS_ERR;
    case PairEvent::request_error: return IBV_EVENT_QP_REQ_ERR;
    case PairEvent::last_receive: return IBV_EVENT_QP_LAST_WQE_REACHED;
    case PairEvent::sends_drained: return IBV_EVENT_SQ_DRAINED;
    default: return IBV_EVENT_QP_FATAL;
  }
}

model::RemoteRights rights_of(std::uint32_t access) {
  return {(access & IBV_ACCESS_REMOTE_READ) != 0, (access & IBV_ACCESS_REMOTE_WRITE) != 0,
          (access & IBV_ACCESS_REMOTE_ATOMIC) != 0};
}

/// Returns the IPv4 address in a GID. Throws Error.
std::uint32_t address_in(std::span<const std::uint8_t, 16> gid) {
  constexpr std::uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (!std::equal(std::begin(kMapped), std::end(kMapped), gid.begin())) {
    throw core::Error(core::ErrorCode::not_supported,
                      "a peer on another machine is not named by an address of IPv4",
                      {core::Cause::Domain::system, EOPNOTSUPP});
  }
  std::uint32_t address = 0;
  for (const std::uint8_t byte : gid.last<4>()) address = address << 8 | byte;
  return address;
}

/// Returns the IPv4 address of the peer's card; 0: it is this one. Throws Error.
std::uint32_t address_of_peer(const softcard_state& wanted) {
  const bool is_here =
      std::equal(std::begin(wanted.peer_gid), std::end(wanted.peer_gid), wanted.own_gid);
  return is_here ? 0 : address_in(wanted.peer_gid);
}

}  // namespace

bool Objects::progress() {
  bool worked = false;
  while (link_.has_request()) {
    const auto request = link_.read();
    if (!request) break;
    carry_out(*request);
    worked = true;
  }
  if (has_failed_) return worked;
  for (auto& [number, registers] : registers_) worked = registers.look(card_) || worked;
  worked = card_.progress() || worked;
  for (auto& [number, completions] : completions_) {
    if (!completions.queue->has_event()) continue;
    link_.tell(SOFTCARD_COMPLETION_EVENT, number);
    worked = true;
  }
  return worked;
}

void Objects::reset() {
  has_failed_ = true;
  core::log_warning("the device has failed");
  link_.tell(SOFTCARD_DEVICE_EVENT, 0, IBV_EVENT_DEVICE_FATAL);
  recover();
}

void Objects::recover() {
  if (!has_failed_ || !is_empty()) return;
  has_failed_ = false;
  core::log_info("the device works again");
  link_.tell(SOFTCARD_DEVICE_EVENT, 0, IBV_EVENT_PORT_ACTIVE);
}

bool Objects::is_empty() const noexcept {
  return registers_.empty() && memory_.empty() && completions_.empty() && receives_.empty() &&
         pairs_.empty() && card_.flow_rules().empty();
}

void Objects::carry_out(const softcard_request& request) {
  int error = 0;
  try {
    switch (request.kind) {
      case SOFTCARD_FREE_UAR:
      case SOFTCARD_FREE_MR:
      case SOFTCARD_FREE_CQ:
      case SOFTCARD_FREE_SRQ:
      case SOFTCARD_FREE_QP:
      case SOFTCARD_FREE_FLOW: free_object(request); break;
      default:
        if (has_failed_) {
          error = -EIO;
        } else {
          make(request);
        }
    }
  } catch (const core::Error& failed) {
    core::log_error("request {} of the module: {}", request.kind, failed.what());
    error = failed.system_errno() == 0 ? -EINVAL : -failed.system_errno();
  } catch (const std::exception& failed) {  // such as a number that no object has
    core::log_error("request {} of the module: {}", request.kind, failed.what());
    error = -EINVAL;
  }
  recover();
  link_.answer(request, error);
}

void Objects::make(const softcard_request& request) {
  const std::uint32_t number = request.number;
  switch (request.kind) {
    case SOFTCARD_NEW_UAR: registers_.emplace(number, link_.map(request.uar)); break;
    case SOFTCARD_NEW_MR: make_memory(number, request.mr); break;
    case SOFTCARD_NEW_CQ: make_completions(number, request.cq); break;
    case SOFTCARD_NEW_SRQ: make_receives(number, request.srq); break;
    case SOFTCARD_MODIFY_SRQ: receives_.at(number).queue->set_limit(request.srq.limit); break;
    case SOFTCARD_NEW_QP: make_pair(number, request.qp); break;
    case SOFTCARD_MODIFY_QP: change_pair(number, request.state); break;
    case SOFTCARD_NEW_FLOW: make_flow(number, request.flow); break;
    case SOFTCARD_SEND_MAD: network_.send(address_in(request.mad.to), request.mad); break;
    default: throw core::Error(core::ErrorCode::not_supported, "it is unknown");
  }
}

void Objects::free_object(const softcard_request& request) {
  const std::uint32_t number = request.number;
  switch (request.kind) {
    case SOFTCARD_FREE_UAR: registers_.erase(number); break;
    case SOFTCARD_FREE_MR:
      card_.remove_memory(number);
      memory_.erase(number);
      break;
    case SOFTCARD_FREE_CQ: free_completions(number); break;
    case SOFTCARD_FREE_SRQ:
      card_.remove_receives(number);
      receives_.erase(number);
      break;
    case SOFTCARD_FREE_FLOW: card_.flow_rules().remove(number); break;
    default: free_pair(number);
  }
}

void Objects::make_memory(std::uint32_t key, const softcard_mr& wanted) {
  constexpr std::uint32_t kWrites =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  const bool writable = (wanted.access & kWrites) != 0;
  Area area = link_.map(wanted.area, writable);
  card_.add_memory(key, {wanted.iova, area.bytes, rights_of(wanted.access), writable, wanted.pd});
  memory_.emplace(key, std::move(area));
}

void Objects::make_completions(std::uint32_t number, const softcard_cq& wanted) {
  Registers& registers = registers_.at(wanted.uar);
  CompletionQueue made{{link_.map(wanted.entries), link_.map(wanted.record), wanted.uar}};
  const kernels::rdma::CompletionQueue memory{
      reinterpret_cast<Cqe*>(made.entries.bytes.data()),
      static_cast<std::uint32_t>(std::countr_zero(wanted.count)), word_of(made.record, 0), number};
  made.queue = &card_.add_completions(memory, {.checks_overrun = wanted.ignores_overrun == 0,
                                               .armed = word_of(made.record, 1),
                                               .number = number});
  registers.add_completions(*made.queue);
  completions_.emplace(number, std::move(made));
}

void Objects::make_receives(std::uint32_t number, const softcard_srq& wanted) {
  SharedQueue made{{link_.map(wanted.entries), link_.map(wanted.record)}};
  made.queue = &card_.add_receives(number, {made.entries.bytes.data(), wanted.count, wanted.shift,
                                            wanted.is_cyclic == 0, word_of(made.record, 0)});
  receives_.emplace(number, std::move(made));
}

void Objects::make_pair(std::uint32_t number, const softcard_qp& wanted) {
  Registers& registers = registers_.at(wanted.uar);
  PairQueue made{{link_.map(wanted.entries), link_.map(wanted.record), wanted.uar}, {}, false};
  model::PairLayout layout;
  layout.number = number;
  std::byte* sends =
      made.entries.bytes.data() + (std::size_t{wanted.receives} << wanted.receive_shift);
  if (wanted.is_raw != 0) {
    network_.open_ethernet(card_);
    made.is_raw = true;
    made.sends = link_.map(wanted.sends);
    sends = made.sends.bytes.data();
    layout.format = rdma::EntryFormat::raw_packet;
    layout.owner = wanted.owner;
    layout.receives_own = wanted.receives_own != 0;
  }
  layout.sends = {reinterpret_cast<Segment*>(sends), wanted.send_blocks};
  layout.send_record = word_of(made.record, 1);
  layout.receives = {made.entries.bytes.data(), wanted.receives, wanted.receive_shift, false,
                     word_of(made.record, 0)};
  layout.shared_receives = wanted.srq;
  layout.sent = wanted.send_cq;
  layout.came = wanted.receive_cq;
  layout.domain = wanted.pd;
  layout.is_unreliable = wanted.is_unreliable != 0;
  layout.has_record = wanted.without_record == 0;
  layout.may_wait = wanted.is_master != 0;
  card_.add(layout);
  registers.add_pair(number);
  raw_pairs_ += made.is_raw ? 1 : 0;
  pairs_.emplace(number, std::move(made));
}

void Objects::make_flow(std::uint32_t number, const softcard_flow& wanted) {
  const auto fields_in = [](const softcard_fields& from) {
    return std::bit_cast<model::FrameFields>(from);
  };
  card_.flow_rules().add(
      number, {wanted.qp, wanted.priority, fields_in(wanted.value), fields_in(wanted.mask)});
}

void Objects::change_pair(std::uint32_t number, const softcard_state& wanted) {
  model::PairChange change;
  const auto set = [&](std::uint32_t field, auto& to, auto value) {
    if ((wanted.mask & field) != 0) to = value;
  };
  set(SOFTCARD_STATE, change.state, state_of(wanted.state));
  set(SOFTCARD_ACCESS, change.rights, rights_of(wanted.access));
  set(SOFTCARD_PEER, change.peer, wanted.peer);
  set(SOFTCARD_SEND_PSN, change.send_psn, wanted.send_psn);
  set(SOFTCARD_RECEIVE_PSN, change.receive_psn, wanted.receive_psn);
  set(SOFTCARD_RETRIES, change.retries, wanted.retries);
  set(SOFTCARD_RNR_RETRIES, change.rnr_retries, wanted.rnr_retries);
  set(SOFTCARD_TIMEOUT, change.timeout, wanted.timeout);
  set(SOFTCARD_RNR_TIMER, change.rnr_timer, wanted.rnr_timer);
  if ((wanted.mask & SOFTCARD_PATH_CHANGE) != 0) change.remote = address_of_peer(wanted);
  if (change.state == State::reset) {
    // A doorbell that was rung before the reset must not be read after it.
    const auto registers = registers_.find(pairs_.at(number).uar);
    if (registers != registers_.end()) registers->second.look(card_);
  }
  card_.change(number, change);
}

void Objects::free_completions(std::uint32_t number) {
  const auto found = completions_.find(number);
  if (found == completions_.end()) return;
  // When a process ends, its registers may go first.
  const auto registers = registers_.find(found->second.uar);
  if (registers != registers_.end()) {
    registers->second.remove_completions(*found->second.queue);
  }
  card_.remove_completions(number);
  completions_.erase(found);
}

void Objects::free_pair(std::uint32_t number) {
  const auto found = pairs_.find(number);
  if (found == pairs_.end()) return;
  const auto registers = registers_.find(found->second.uar);
  if (registers != registers_.end()) registers->second.remove_pair(number);
  card_.remove(number);
  if (found->second.is_raw && --raw_pairs_ == 0) network_.close_ethernet();
  pairs_.erase(found);
}

void Objects::pair_event(std::uint32_t pair, PairEvent event) {
  link_.tell(SOFTCARD_QP_EVENT, pair, native_of(event));
}

void Objects::state_changed(std::uint32_t pair, State state) {
  link_.tell(SOFTCARD_QP_STATE, pair, native_of(state));
}

void Objects::completions_in_error(std::uint32_t completions) {
  link_.tell(SOFTCARD_CQ_EVENT, completions, IBV_EVENT_CQ_ERR);
}

void Objects::limit_reached(std::uint32_t receives) {
  link_.tell(SOFTCARD_SRQ_EVENT, receives, IBV_EVENT_SRQ_LIMIT_REACHED);
}

}  // namespace offload::softcard
