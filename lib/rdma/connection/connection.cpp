#include "rdma/connection/connection.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/log.hpp"
#include "rdma/connection/append.hpp"
#include "rdma/connection/scatter.hpp"

namespace offload::rdma {
namespace {

using core::Error;
using core::ErrorCode;
using core::Status;

/// What flushing gets when the connection stops; a device takes microseconds.
constexpr core::Duration kFlushTime = std::chrono::seconds(2);
/// What it gets for the shared receives that the peer's messages have taken: what they are is not
/// known here, and not every device has the asynchronous event that tells the last of them.
constexpr core::Duration kSharedFlushTime = std::chrono::milliseconds(10);
/// The bit of a wr_id that tells a receive from a send.
constexpr std::uint32_t kReceive = 1U << 31;

void check_options(const ConnectionOptions& options, const std::string& name) {
  const QueuePairOptions& queues = options.queues;
  const char* wrong = nullptr;
  if (queues.transport == Transport::ud) wrong = "UD has no connections";
  const bool shared = queues.shared_receives != nullptr;
  if (queues.send_depth == 0 || (queues.receive_depth == 0 && !shared)) {
    wrong = "a queue without room";
  }
  if (queues.gather == 0) wrong = "no pieces of memory";
  if (wrong == nullptr) return;
  throw Error(ErrorCode::invalid_value, "connection '" + name + "': " + wrong);
}

}  // namespace

Connection::Connection(const Endpoint& endpoint, const ConnectionOptions& options, std::string name)
    : Context(std::move(name), Turns::on_request),
      endpoint_(endpoint),
      options_(options),
      sends_(options.queues.send_depth, options.queues.gather),
      receives_(options.queues.shared_receives == nullptr ? options.queues.receive_depth : 0,
                options.queues.gather) {
  check_options(options, this->name());
}

Connection::~Connection() {
  end();
}

bool Connection::connected() const noexcept {
  return state() == State::running && queue_ && !failed_ &&
         queue_->state() == QueuePair::State::ready_to_send;
}

progress::Context::Step Connection::on_start() {
  pairing_.emplace(endpoint_.device, options_);
  const CompletionQueue& completions = endpoint_.completions.queue();
  QueuePair queue(endpoint_.domain, completions, completions, options_.queues);
  queue.initialize(options_.port, options_.access);
  tag_ = endpoint_.completions.add(*this, depth());
  queue_ = std::move(queue);
  failed_ = lost_ = false;
  return Step::done;
}

ConnectionDescriptor Connection::descriptor() const {
  require_queue("be described");
  return pairing_->describe(*queue_);
}

void Connection::connect_to(const ConnectionDescriptor& peer,
                            std::optional<std::uint32_t> first_packet) {
  require_queue("connect");
  pairing_->connect(*queue_, peer, first_packet);
}

void Connection::require_queue(const char* action) const {
  if (state() == State::running && queue_) return;
  core::throw_bad_state("connection '" + name() + "'",
                        state() == State::running ? "broken" : name_of(state()), action);
}

Status Connection::on_submit(progress::Task& task) noexcept {
  auto& operation = static_cast<Operation&>(task);
  operation.completion_ = IBV_WC_SUCCESS;
  operation.vendor_ = 0;
  if (operation.kind_ == Operation::Kind::receive) {
    return prepare_receive(static_cast<ReceiveTask&>(operation));
  }
  return prepare_send(operation);
}

Status Connection::prepare_receive(ReceiveTask& task) noexcept {
  if (!queue_ || failed_) return ErrorCode::not_connected;
  if (has_shared_receives()) return ErrorCode::not_supported;
  if (receives_.is_full()) return ErrorCode::full;
  task.clear();
  ibv_recv_wr& request = receives_.next(std::uint64_t{tag_} << 32 | kReceive);
  std::uint64_t length = 0;
  const Status status = scatter(endpoint_.registrar, task.destination, kMostBytes,
                                receives_.pieces(), request.num_sge, length);
  if (status.ok()) receives_.add(task);
  return status;
}

Status Connection::prepare_send(Operation& task) noexcept {
  if (!connected()) return ErrorCode::not_connected;
  if (sends_.is_full()) return ErrorCode::full;
  ibv_send_wr& request = sends_.next(std::uint64_t{tag_} << 32);
  Status status;
  switch (task.kind_) {
    case Operation::Kind::send: status = fill(static_cast<SendTask&>(task), request); break;
    case Operation::Kind::write: status = fill(static_cast<WriteTask&>(task), request); break;
    case Operation::Kind::read: status = fill(static_cast<ReadTask&>(task), request); break;
    case Operation::Kind::compare_and_swap:
      status = fill(static_cast<CompareAndSwapTask&>(task), request);
      break;
    case Operation::Kind::fetch_and_add:
      status = fill(static_cast<FetchAndAddTask&>(task), request);
      break;
    case Operation::Kind::sync_event:
      status = fill(static_cast<RemoteSyncEventTask&>(task), request);
      break;
    case Operation::Kind::receive: status = ErrorCode::unexpected; break;
  }
  if (status.ok()) sends_.add(task);
  return status;
}

void Connection::on_flush() noexcept {
  if (!queue_) return;
  Status status;
  ibv_recv_wr* last_receive = nullptr;
  if (ibv_recv_wr* const first = receives_.unposted(last_receive); first != nullptr) {
    ibv_recv_wr* bad = nullptr;
    status = queue_->post_receive(*first, bad);
    endpoint_.completions.began(receives_.mark_posted());
  }
  ibv_send_wr* last_send = nullptr;
  if (ibv_send_wr* const first = sends_.unposted(last_send); first != nullptr && status.ok()) {
    // Sends end in their order: the end of the last is that of all.
    last_send->send_flags |= IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    status = queue_->post_send(*first, bad);
    endpoint_.completions.began(sends_.mark_posted());
  }
  // Of the part that was posted the end may never be told: nothing but ending the queue pair gets
  // hold of it again.
  if (!status.ok()) on_queue_failed();
}

void Connection::on_queue_failed() noexcept {
  failed_ = lost_ = true;
  request_turn();
}

void Connection::on_completion(std::uint32_t number, const ibv_wc& completion) {
  if ((number & kReceive) != 0) {
    on_ended(receives_, number & ~kReceive, completion);
  } else {
    on_ended(sends_, number, completion);
  }
  if (state() == State::stopping && under_way() == 0 && !has_shared_receives()) {
    end_queue();
    stopped();
  }
}

template <class Request>
void Connection::on_ended(WorkQueue<Request>& queue, std::uint32_t number,
                          const ibv_wc& completion) {
  const std::uint32_t tag = tag_;
  for (std::size_t left = queue.count_up_to(number); left != 0; --left) {
    Operation& task = queue.pop();
    endpoint_.completions.ended(1);
    end_task(task, left == 1 ? &completion : nullptr);
    if (!queue_ || tag != tag_) return;  // ended, and perhaps begun anew, by the task's owner
  }
}

/// `completion`: null if it was told with that of a later one, so that it ended well.
void Connection::end_task(Operation& task, const ibv_wc* completion) {
  if (completion != nullptr && completion->status != IBV_WC_SUCCESS) {
    task.completion_ = completion->status;
    task.vendor_ = completion->vendor_err;
    failed_ = true;
    const bool flushed = completion->status == IBV_WC_WR_FLUSH_ERR;
    complete(task,
             flushed && state() == State::stopping ? ErrorCode::shutdown : ErrorCode::io_failed);
    return;
  }
  switch (task.kind_) {
    case Operation::Kind::receive:
      if (completion != nullptr)
        static_cast<void>(static_cast<ReceiveTask&>(task).take(*completion));
      break;
    case Operation::Kind::read: {
      const auto& read = static_cast<ReadTask&>(task);
      append(read.destination, read.length);
      break;
    }
    case Operation::Kind::compare_and_swap:
      append(static_cast<CompareAndSwapTask&>(task).destination, sizeof(std::uint64_t));
      break;
    case Operation::Kind::fetch_and_add:
      append(static_cast<FetchAndAddTask&>(task).destination, sizeof(std::uint64_t));
      break;
    case Operation::Kind::sync_event: {
      auto& event = static_cast<RemoteSyncEventTask&>(task);
      if (event.action == RemoteSyncEventTask::Action::set) break;
      std::memcpy(&event.result, event.scratch->dataroom().data(), sizeof event.result);
      break;
    }
    case Operation::Kind::send:
    case Operation::Kind::write: break;
  }
  complete(task, {});
}

bool Connection::on_poll(std::size_t most) {
  const bool stopping = state() == State::stopping;
  if (queue_ && (lost_ || (stopping && core::Clock::now() >= flush_end()))) {
    // A driver may drop what a queue pair has in the completion queue when that ends.
    if (has_shared_receives()) endpoint_.completions.drain();
    if (!lost_ && under_way() != 0) {
      core::log_error("connection '{}' was not flushed in time", name());
    }
    end_queue();
  }
  if (stopping) {
    if (queue_) return false;  // on_completion may end it
    sends_.clear();
    receives_.clear();
    stopped();
    return true;
  }
  std::size_t ended = 0;
  for (; ended < most && !queue_ && sends_.size() + receives_.size() != 0; ++ended) {
    Operation& task = sends_.size() != 0 ? sends_.pop() : receives_.pop();
    complete(task, ErrorCode::driver);
  }
  if (!queue_ && in_flight() != 0) request_turn();
  return ended != 0;
}

core::Duration Connection::arm() {
  if (lost_ || (!queue_ && in_flight() != 0)) return {};
  if (state() != State::stopping) return core::Duration::max();
  return std::max(flush_end() - core::Clock::now(), core::Duration{});
}

progress::Context::Step Connection::on_stop() noexcept {
  sends_.drop_unposted();
  receives_.drop_unposted();
  if (queue_ && (has_shared_receives() || (under_way() != 0 && !lost_))) {
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

/// Once this returns, the device touches no memory for it.
void Connection::end_queue() noexcept {
  if (!queue_) return;
  endpoint_.completions.remove(tag_, depth(), under_way());
  queue_.reset();
}

}  // namespace offload::rdma
