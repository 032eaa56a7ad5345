#include <fmt/core.h>

#include "core/log.hpp"
#include "rdma/emulator/queue_emulator.hpp"
#include "rdma/emulator/translation.hpp"

/// The end of an emulator's queue: it sends no more, and completes all posted entries.
namespace offload::rdma {
namespace {

/// The time limit for a flush of the device, which takes microseconds.
constexpr core::Duration kGiveBackTime = std::chrono::seconds(2);

}  // namespace

void QueueEmulator::fail(const core::Error& why) {
  if (error_ || state() != State::running) return;
  enter_error(why);
  told_ = true;
}

progress::Context::Step QueueEmulator::on_stop() noexcept {
  if (!error_) enter_error({core::ErrorCode::shutdown, described() + " was stopped"});
  flush();
  if (outstanding() != 0) return Step::in_progress;
  leave();
  return Step::done;
}

void QueueEmulator::on_abandon() noexcept {
  lost_ = true;
  flush();
  leave();
}

void QueueEmulator::on_queue_failed() noexcept {
  lost_ = true;
  if (!error_) enter_error({core::ErrorCode::driver, described() + ": its completions are lost"});
}

/// The device gives back what it has, as flushed, and the peer finds out.
void QueueEmulator::enter_error(const core::Error& why) {
  error_ = why;
  flush_deadline_ = core::Clock::now() + kGiveBackTime;
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  const int errnum = errno_of(ibv_modify_qp(parts_.queue_pair.get(), &attributes, IBV_QP_STATE));
  if (errnum == 0) return;
  core::log_error("cannot move {} to ERR: {}", described(), core::describe_errno(errnum));
}

/// Completes what the device does not have, once it has given back the rest or its time is up.
/// Returns whether there was something.
bool QueueEmulator::flush() noexcept {
  if (outstanding() != 0) {
    if (!lost_ && core::Clock::now() < flush_deadline_) return false;
    if (!lost_) core::log_error("{} was not flushed in time", described());
    lost_ = true;
  }
  const bool sends = flush_sends();
  return flush_receives() || sends;
}

bool QueueEmulator::flush_sends() noexcept {
  bool worked = oldest_ != newest_;
  while (oldest_ != newest_) complete_oldest(Syndrome::flushed);
  const bool had_fault = entries_.has_fault();
  worked = entries_.look() || worked;
  // The next turn takes entries that are posted meanwhile.
  for (Entry entry; entries_.has_entry(); worked = true) {
    if (!entries_.read(entry, inline_room())) break;
    entries_.pass(entry);
    add_underway(entry.position, kernels::rdma::blocks_of(entry.segments));
    complete_oldest(Syndrome::flushed);
  }
  if (entries_.has_fault() && !had_fault) {  // its end is unknown: one completion for all
    add_underway(entries_.next(), 1);
    complete_oldest(Syndrome::flushed);
  }
  return worked;
}

bool QueueEmulator::flush_receives() noexcept {
  std::uint64_t left = receives_.look();
  for (std::uint64_t i = 0; i != left; ++i) static_cast<void>(receives_.read());
  left = receives_.next() - receives_.retired();
  if (posted_receives_ != 0) parts_.completions.on_completed(posted_receives_);
  posted_receives_ = 0;
  ibv_wc told{};
  told.status = IBV_WC_WR_FLUSH_ERR;
  for (std::uint64_t i = 0; i != left; ++i) {
    came_.write(received(told, number_, receives_.retired()));
    receives_.retire(1);
  }
  return left != 0;
}

void QueueEmulator::leave() noexcept {
  parts_.completions.remove(tag_, most_sends_ + most_receives_, outstanding());
  sending_ = false;
}

std::string QueueEmulator::described() const {
  return fmt::format("emulator '{}' of {}", name(), parts_.queue_pair.described());
}

std::string QueueEmulator::described(std::uint64_t position) const {
  return fmt::format("{}: entry {}", described(), position);
}

}  // namespace offload::rdma
