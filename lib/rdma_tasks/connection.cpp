#include "rdma_tasks/connection.hpp"

#include <algorithm>
#include <utility>

#include "core/log.hpp"

namespace offload::rdma {
namespace {

using core::Error;
using core::ErrorCode;
using core::Status;

/// The time for which a stop waits for flushed completions; a device takes microseconds.
constexpr core::Duration kFlushTime = std::chrono::seconds(2);
/// The time for which it waits for shared receives that messages of the peer use. Their number is
/// unknown here, and not every device reports the last (IBV_EVENT_QP_LAST_WQE_REACHED).
constexpr core::Duration kSharedFlushTime = std::chrono::milliseconds(10);
/// The bit of a wr_id that marks a receive.
constexpr std::uint32_t kReceive = 1U << 31;

void check_options(const ConnectionOptions& options, const std::string& name) {
  const QueuePairOptions& queues = options.queues;
  const char* wrong = nullptr;
  if (queues.qp_type == QpType::ud) wrong = "UD has no connections";
  if (queues.qp_type == QpType::raw_packet) wrong = "raw packets have no connections";
  const bool shared = queues.srq != nullptr;
  if (queues.max_send_wr == 0 || (queues.max_recv_wr == 0 && !shared)) {
    wrong = "max_send_wr and max_recv_wr must be above 0";
  }
  if (queues.max_sge == 0) wrong = "max_sge must be above 0";
  if (wrong == nullptr) return;
  throw Error(ErrorCode::invalid_value, "connection '" + name + "': " + wrong);
}

}  // namespace

Connection::Connection(const SharedObjects& objects, const ConnectionOptions& options,
                       std::string name)
    : Context(std::move(name), Turns::on_request),
      objects_(objects),
      options_(options),
      builder_(objects.registrar, options.queues.max_inline_data),
      sends_(options.queues.max_send_wr, options.queues.max_sge),
      receives_(options.queues.srq == nullptr ? options.queues.max_recv_wr : 0,
                options.queues.max_sge) {
  check_options(options, this->name());
}

Connection::~Connection() {
  end();
}

progress::Context::Step Connection::on_start() {
  pairing_.emplace(objects_.device, options_);
  const CompletionQueue& completions = objects_.completions.queue();
  QueuePair queue(objects_.domain, completions, completions, options_.queues);
  queue.initialize(options_.port_num, options_.access, 0, options_.pkey_index);
  tag_ = objects_.completions.add(*this, depth());
  queue_ = std::move(queue);
  failed_ = lost_ = false;
  return Step::done;
}

ConnectionDescriptor Connection::descriptor() const {
  require_queue("be described");
  return pairing_->describe(*queue_);
}

void Connection::connect_to(const ConnectionDescriptor& peer, std::optional<std::uint32_t> sq_psn) {
  require_queue("connect");
  pairing_->connect(*queue_, peer, sq_psn);
  const bool reads = pairing_->max_rd_atomic() != 0 && queue_->type() == QpType::rc;
  builder_.allow(reads, reads && objects_.device.attributes().atomic_cap != IBV_ATOMIC_NONE);
  told_connected_ = true;
  if (connection_callback_) connection_callback_(*this, true);
}

void Connection::set_connection_callback(ConnectionCallback callback) {
  if (state() != State::idle) {
    core::throw_bad_state("connection '" + name() + "'", name_of(state()), "set its callback");
  }
  connection_callback_ = std::move(callback);
}

void Connection::tell_disconnected() noexcept {
  if (!std::exchange(told_connected_, false)) return;
  if (connection_callback_) connection_callback_(*this, false);
}

void Connection::require_queue(const char* action) const {
  if (state() == State::running && queue_) return;
  core::throw_bad_state("connection '" + name() + "'",
                        state() == State::running ? "broken" : name_of(state()), action);
}

Status Connection::on_submit(progress::Task& task) noexcept {
  auto& operation = static_cast<RdmaTask&>(task);
  operation.wc_status_ = IBV_WC_SUCCESS;
  operation.vendor_ = 0;
  if (operation.kind_ == RdmaTask::Kind::receive) {
    return prepare_receive(static_cast<ReceiveTask&>(operation));
  }
  return prepare_send(operation);
}

Status Connection::prepare_receive(ReceiveTask& task) noexcept {
  if (!queue_ || failed_) return ErrorCode::not_connected;
  if (shares_receives()) return ErrorCode::not_supported;
  if (receives_.is_full()) return ErrorCode::full;
  task.clear();
  ibv_recv_wr& request = receives_.next(std::uint64_t{tag_} << 32 | kReceive);
  std::uint64_t length = 0;
  const Status status = scatter(objects_.registrar, task.destination, kMaxMessage,
                                receives_.sg_list(), request.num_sge, length);
  if (status.ok()) receives_.add(task);
  return status;
}

Status Connection::prepare_send(RdmaTask& task) noexcept {
  if (!connected()) return ErrorCode::not_connected;
  if (sends_.is_full()) return ErrorCode::full;
  ibv_send_wr& request = sends_.next(std::uint64_t{tag_} << 32);
  const Status status = builder_.fill(task, sends_.max_sge(), request);
  if (status.ok()) sends_.add(task);
  return status;
}

void Connection::on_flush() noexcept {
  if (!queue_) return;
  Status status;
  if (receives_.has_unposted()) status = post_receives();
  if (sends_.has_unposted() && status.ok()) status = post_sends();
  // The part that was posted may never complete, as its last request was not: only ending the
  // queue pair takes its tasks back.
  if (!status.ok()) on_queue_failed();
}

Status Connection::post_receives() noexcept {
  ibv_recv_wr* last = nullptr;
  ibv_recv_wr* const first = receives_.unposted(last);
  ibv_recv_wr* bad = nullptr;
  const Status status = queue_->post_receive(*first, bad);
  objects_.completions.on_posted(receives_.mark_posted());
  return status;
}

inline Status Connection::post_sends() noexcept {
  ibv_send_wr* last = nullptr;
  ibv_send_wr* const first = sends_.unposted(last);
  // Sends complete in order (IBTA volume 1, 10.8): the last completion stands for all.
  last->send_flags |= IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  const Status status = queue_->post_send(*first, bad);
  objects_.completions.on_posted(sends_.mark_posted());
  return status;
}

void Connection::on_queue_failed() noexcept {
  failed_ = lost_ = true;
  request_turn();
}

void Connection::fail_task(RdmaTask& task, const ibv_wc& completion) {
  task.wc_status_ = completion.status;
  task.vendor_ = completion.vendor_err;
  failed_ = true;
  const bool flushed = completion.status == IBV_WC_WR_FLUSH_ERR;
  complete(task,
           flushed && state() == State::stopping ? ErrorCode::shutdown : ErrorCode::io_failed);
  if (failed_) tell_disconnected();  // it was not reconnected meanwhile
}

/// `completion`: null for a send that succeeded before a later one that is signalled.
inline void Connection::end_task(RdmaTask& task, const ibv_wc* completion) {
  if (completion != nullptr && completion->status != IBV_WC_SUCCESS) {
    return fail_task(task, *completion);
  }
  WorkRequestBuilder::finish(task, completion);
  complete(task, {});
}

template <class Request>
void Connection::end_tasks(WorkQueue<Request>& queue, std::uint32_t number,
                           const ibv_wc& completion) {
  const std::uint32_t tag = tag_;
  for (std::size_t left = queue.count_up_to(number); left != 0; --left) {
    RdmaTask& task = queue.pop();
    objects_.completions.on_completed(1);
    end_task(task, left == 1 ? &completion : nullptr);
    if (!queue_ || tag != tag_) return;  // the callback stopped it
  }
}

void Connection::on_completion(std::uint32_t number, const ibv_wc& completion) {
  if ((number & kReceive) != 0) {
    end_tasks(receives_, number & ~kReceive, completion);
  } else {
    end_tasks(sends_, number, completion);
  }
  if (state() == State::stopping && outstanding() == 0 && !shares_receives()) {
    end_queue();
    stopped();
  }
}

bool Connection::on_poll(std::size_t most) {
  const bool stopping = state() == State::stopping;
  if (queue_ && (lost_ || (stopping && core::Clock::now() >= flush_end()))) {
    // A driver may drop the completions of a queue pair that ends.
    if (shares_receives()) objects_.completions.drain();
    if (!lost_ && outstanding() != 0) {
      core::log_error("connection '{}' was not flushed in time", name());
    }
    end_queue();
  }
  if (stopping) {
    if (queue_) return false;
    sends_.clear();
    receives_.clear();
    stopped();
    return true;
  }
  std::size_t ended = 0;
  for (; ended < most && !queue_ && sends_.size() + receives_.size() != 0; ++ended) {
    RdmaTask& task = sends_.size() != 0 ? sends_.pop() : receives_.pop();
    complete(task, ErrorCode::driver);
  }
  if (!queue_ && in_flight() != 0) request_turn();
  if (!queue_) tell_disconnected();
  return ended != 0;
}

core::Duration Connection::arm() {
  if (lost_ || (!queue_ && in_flight() != 0)) return {};
  if (state() != State::stopping) return core::Duration::max();
  return std::max(flush_end() - core::Clock::now(), core::Duration{});
}

progress::Context::Step Connection::on_stop() noexcept {
  tell_disconnected();
  sends_.drop_unposted();
  receives_.drop_unposted();
  if (queue_ && (shares_receives() || (outstanding() != 0 && !lost_))) {
    try {
      queue_->fail();
      const auto now = core::Clock::now();
      flush_deadline_ = now + kFlushTime;
      shared_flush_end_ = now + kSharedFlushTime;
      return Step::in_progress;
    } catch (const Error& error) {
      core::log_error("connection '{}': {}", name(), error.what());
    }
  }
  end_queue();
  sends_.clear();
  receives_.clear();
  return Step::done;
}

/// After it the device touches no memory of the connection.
void Connection::end_queue() noexcept {
  if (!queue_) return;
  objects_.completions.remove(tag_, depth(), outstanding());
  queue_.reset();
}

}  // namespace offload::rdma
