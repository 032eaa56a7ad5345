#include "rdma/emulator/queue_emulator.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "core/log.hpp"
#include "rdma/emulator/translation.hpp"

namespace offload::rdma {
namespace {

using core::Error;
using core::ErrorCode;
using kernels::rdma::Completion;
using kernels::rdma::CqeKind;
using kernels::rdma::LocalBuffer;

/// The interval of polls of a doorbell in memory, which wakes no thread.
constexpr core::Duration kLookInterval = std::chrono::microseconds(50);
/// Entries that one turn takes, so that many emulators of an engine get their turns.
constexpr std::size_t kBatch = 64;
/// Buffers of a batch: it ends before one that might not fit.
constexpr std::size_t kPieces = 2 * kBatch;
/// The bit of a wr_id that marks a receive, and those that number the work requests.
constexpr std::uint32_t kReceiveBit = 1U << 31;
constexpr std::uint32_t kNumbers = kReceiveBit - 1;

}  // namespace

/// Work requests that are posted with one doorbell. On the stack, where the batches of all
/// emulators find it in the cache.
struct QueueEmulator::Batch {
  std::array<ibv_send_wr, kBatch> requests;
  std::array<ibv_sge, kPieces> pieces;
  std::size_t count = 0;
  std::size_t used = 0;  ///< pieces
  Entry entry;

  [[nodiscard]] bool has_room() const {
    return count != kBatch && pieces.size() - used >= kernels::rdma::kMostSegments;
  }
};

QueueEmulator::QueueEmulator(const QueueEmulatorParts& parts, const QueuePairMemory& queues,
                             OnError on_error, std::string name)
    : Context(std::move(name), Turns::always),
      parts_(parts),
      number_(queues.send.number),
      on_error_(std::move(on_error)),
      entries_(queues.send),
      receives_(queues.receive),
      sent_(queues.send.completions),
      came_(queues.receive.completions),
      limits_{parts.queue_pair.type() == QpType::rc, parts.queue_pair.capacity().max_send_sge,
              parts.queue_pair.capacity().max_inline_data},
      most_sends_(std::min(queues.send.ring.blocks, parts.queue_pair.capacity().max_send_wr)),
      most_receives_(std::min(queues.receive.entries, parts.queue_pair.capacity().max_recv_wr)),
      ring_mask_(queues.send.ring.blocks - 1) {
  check_sizes(queues);
  if (parts.queue_pair.type() == QpType::ud || parts.queue_pair.type() == QpType::raw_packet) {
    throw Error(ErrorCode::invalid_value,
                fmt::format("emulator '{}' of a {} queue pair; the type must be RC or UC",
                            this->name(), name_of(parts.queue_pair.type())));
  }
  // Each has a block at least, and one more may be refused without any.
  underway_.resize(std::bit_ceil(std::size_t{queues.send.ring.blocks} + 1));
  // The last entry of the ring has its data in one piece too.
  inline_bytes_.resize(std::size_t{queues.send.ring.blocks} * kernels::rdma::kBlockBytes +
                       kMostInline);
  constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE;  // ibv_reg_mr() is a macro that masks it
  inline_region_ = {check_pointer(ibv_reg_mr(parts.domain.get(), inline_bytes_.data(),
                                             inline_bytes_.size(), kAccess),
                                  "register room for inline data"),
                    "a region for inline data"};
}

QueueEmulator::~QueueEmulator() {
  end();
}

progress::Context::Step QueueEmulator::on_start() {
  if (error_) core::throw_bad_state("emulator '" + name() + "'", "broken", "start");
  tag_ = parts_.completions.add(*this, most_sends_ + most_receives_);
  request_turn();
  return Step::done;
}

bool QueueEmulator::on_poll(std::size_t) {
  bool worked = false;
  if (!error_) {
    worked = carry_out_receives();
    worked = carry_out_sends() || worked;
  }
  if (!error_) return worked;
  worked = flush() || worked;
  if (state() == State::stopping) {
    if (outstanding() != 0) return worked;
    leave();
    stopped();
    return true;
  }
  if (std::exchange(told_, true)) return worked;
  if (on_error_) on_error_(*this, *error_);  // it may have stopped
  return true;
}

core::Duration QueueEmulator::arm() {
  return error_ && !told_ ? core::Duration{} : kLookInterval;
}

// ---- Sends

bool QueueEmulator::carry_out_sends() {
  bool worked = entries_.look();
  if (!sending_ || refused_) return worked;
  if (!entries_.has_entry() && !entries_.has_fault()) return worked;
  Batch batch;
  while (batch.has_room() && take_entry(batch)) worked = true;
  if (batch.count != 0) post(batch);
  complete_local();
  return worked;
}

/// Reads the next entry, and makes a work request of it if it has one. False: no more now.
bool QueueEmulator::take_entry(Batch& batch) {
  if (refused_) return false;
  Entry& entry = batch.entry;
  if (!entries_.has_fault()) {
    if (!entries_.has_entry() || posted_sends_ + batch.count == most_sends_) return false;
    if (entries_.read(entry, inline_room())) {
      entries_.pass(entry);
      Underway& added = add_underway(entry.position, kernels::rdma::blocks_of(entry.segments));
      const std::uint64_t length = length_of(entry);
      if (kernels::rdma::has_remote(entry.work.opcode)) {
        added.bytes = static_cast<std::uint32_t>(length);
      }
      added.opcode = entry.work.opcode;
      added.is_signaled = (entry.work.flags & kernels::rdma::kSignaled) != 0;
      added.syndrome = refusal_of(entry, length, limits_);
      refused_ = added.syndrome != Syndrome::none;
      if (refused_ || !has_request(entry.work.opcode)) return true;
      added.is_posted = true;
      ibv_send_wr& request = batch.requests[batch.count++];
      fill_request(entry, limits_, inline_region_->lkey, &batch.pieces[batch.used], request);
      request.wr_id = std::uint64_t{tag_} << 32 | ((newest_ - 1) & kNumbers);
      batch.used += static_cast<std::size_t>(request.num_sge);
      return true;
    }
  }
  add_underway(entries_.next(), 1).syndrome = Syndrome::local_queue_operation;
  refused_ = true;
  return true;
}

/// With one doorbell. The last is signaled whatever the owner wants: who has posted it gets it back
/// then, and all before it.
void QueueEmulator::post(Batch& batch) {
  for (std::size_t i = 0; i + 1 < batch.count; ++i) {
    batch.requests[i].next = &batch.requests[i + 1];
  }
  batch.requests[batch.count - 1].next = nullptr;
  batch.requests[batch.count - 1].send_flags |= IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  const int errnum = errno_of(ibv_post_send(parts_.queue_pair.get(), batch.requests.data(), &bad));
  std::size_t taken = batch.count;
  if (errnum != 0)
    taken = bad == nullptr ? 0 : static_cast<std::size_t>(bad - batch.requests.data());
  posted_sends_ += taken;
  parts_.completions.on_posted(taken);
  if (errnum == 0) return;
  // The device has only those before: the rest is completed without it.
  const auto first = static_cast<std::uint32_t>(batch.requests[taken].wr_id) & kNumbers;
  std::uint64_t failed = newest_ - 1;
  while ((failed & kNumbers) != first) --failed;
  Underway& refused = underway_[failed & (underway_.size() - 1)];
  refused.syndrome = Syndrome::local_queue_operation;
  for (std::uint64_t i = failed; i != newest_; ++i) {
    underway_[i & (underway_.size() - 1)].is_posted = false;
  }
  enter_error(Error(ErrorCode::driver, described(refused.position) +
                                           " cannot be posted: " + core::describe_errno(errnum)));
}

/// The memory of the next entry's inline data: no other that is under way has it.
std::byte* QueueEmulator::inline_room() noexcept {
  return inline_bytes_.data() +
         (entries_.next() & ring_mask_) * std::size_t{kernels::rdma::kBlockBytes};
}

QueueEmulator::Underway& QueueEmulator::add_underway(std::uint64_t position,
                                                     std::uint32_t blocks) noexcept {
  Underway& added = underway_[newest_++ & (underway_.size() - 1)];
  added = {};
  added.position = position;
  added.blocks = static_cast<std::uint8_t>(blocks);
  return added;
}

void QueueEmulator::on_completion(std::uint32_t number, const ibv_wc& told) {
  if ((number & kReceiveBit) != 0) {
    on_received(number & kNumbers, told);
  } else {
    on_sent(number, told);
  }
}

/// It completes those before it too, which were not signaled.
void QueueEmulator::on_sent(std::uint32_t number, const ibv_wc& told) {
  const std::uint64_t before = (number - oldest_) & kNumbers;
  if (before >= newest_ - oldest_) return;
  const std::uint64_t position = underway_[(oldest_ + before) & (underway_.size() - 1)].position;
  for (std::uint64_t i = 0; i != before; ++i) complete_oldest(Syndrome::none);
  complete_oldest(syndrome_of(told.status), told.vendor_err);
  if (told.status != IBV_WC_SUCCESS && !error_) {
    enter_error(Error(ErrorCode::io_failed,
                      described(position) + ": " + explain(told.status, told.vendor_err),
                      cause_of(told.status, told.vendor_err)));
  }
  complete_local();
}

/// Completes the oldest, with its own syndrome if it has one.
void QueueEmulator::complete_oldest(Syndrome syndrome, std::uint32_t vendor) noexcept {
  const Underway& done = underway_[oldest_++ & (underway_.size() - 1)];
  if (done.is_posted) {
    --posted_sends_;
    parts_.completions.on_completed(1);
  }
  if (done.syndrome != Syndrome::none) syndrome = done.syndrome;
  entries_.retire(done.position + done.blocks);
  if (syndrome == Syndrome::none && !done.is_signaled) return;
  Completion completion{};
  completion.counter = static_cast<std::uint16_t>(done.position);
  completion.queue = number_;
  completion.byte_count = done.bytes;
  completion.opcode = done.opcode;
  if (syndrome != Syndrome::none) {
    completion.kind = CqeKind::request_error;
    completion.syndrome = syndrome;
    completion.vendor = static_cast<std::uint8_t>(vendor);
  }
  sent_.write(completion);
}

/// Completes what is the oldest and was not for the device.
void QueueEmulator::complete_local() {
  while (oldest_ != newest_) {
    const Underway& oldest = underway_[oldest_ & (underway_.size() - 1)];
    if (oldest.is_posted) return;
    const bool refused = oldest.syndrome != Syndrome::none;
    const std::uint64_t position = oldest.position;
    const bool waits = oldest.opcode == kernels::rdma::Opcode::wait;
    const char* const why =
        waits ? " is a WAIT, which libibverbs does not support; use the queues of an mlx5 card"
              : " has an operation that the queue pair does not support";
    complete_oldest(error_ ? Syndrome::flushed : Syndrome::none);
    if (!refused || error_) continue;
    enter_error(entries_.has_fault()
                    ? Error(ErrorCode::bad_message, described() + ": " + entries_.fault())
                    : Error(ErrorCode::invalid_value, described(position) + why));
  }
}

// ---- Receives

bool QueueEmulator::carry_out_receives() {
  const std::uint32_t waiting = receives_.look();
  if (receives_.has_fault()) {
    enter_error(Error(ErrorCode::bad_message, described() + ": " + receives_.fault()));
    return true;
  }
  const std::size_t count =
      std::min<std::size_t>({waiting, most_receives_ - posted_receives_, kBatch});
  if (count == 0) return false;
  std::array<ibv_recv_wr, kBatch> requests;
  std::array<ibv_sge, kBatch> pieces;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t number = receives_.next();
    const LocalBuffer buffer = receives_.read();
    pieces[i] = {buffer.address, buffer.length, buffer.lkey};
    requests[i] = {std::uint64_t{tag_} << 32 | kReceiveBit | (number & kNumbers),
                   i + 1 == count ? nullptr : &requests[i + 1], &pieces[i],
                   buffer.length == 0 ? 0 : 1};
  }
  ibv_recv_wr* bad = nullptr;
  const int errnum = errno_of(ibv_post_recv(parts_.queue_pair.get(), requests.data(), &bad));
  std::size_t taken = count;
  if (errnum != 0) taken = bad == nullptr ? 0 : static_cast<std::size_t>(bad - requests.data());
  posted_receives_ += taken;
  parts_.completions.on_posted(taken);
  if (errnum != 0) {
    enter_error(Error(ErrorCode::driver,
                      described() + ": cannot post a receive: " + core::describe_errno(errnum)));
  }
  return true;
}

/// Those of a queue pair complete in their order.
void QueueEmulator::on_received(std::uint32_t number, const ibv_wc& told) {
  if (posted_receives_ == 0 || number != (receives_.retired() & kNumbers)) return;
  came_.write(received(told, number_, receives_.retired()));
  receives_.retire(1);
  --posted_receives_;
  parts_.completions.on_completed(1);
  if (told.status != IBV_WC_SUCCESS && !error_) {
    enter_error(Error(ErrorCode::io_failed,
                      fmt::format("{}: receive {}: {}", described(), receives_.retired() - 1,
                                  explain(told.status, told.vendor_err)),
                      cause_of(told.status, told.vendor_err)));
  }
}

// ---- The end of an emulator's queue: it sends no more, and completes all posted entries

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
