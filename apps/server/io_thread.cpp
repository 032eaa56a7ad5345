#include "apps/server/io_thread.hpp"

#include <algorithm>
#include <cassert>
#include <exception>
#include <future>
#include <utility>

#include "core/cpu.hpp"
#include "core/error.hpp"

namespace offload::server {
namespace {

using protocol::FrameView;
using protocol::MessageId;
using protocol::Refusal;

/// Frames of one batch: those of one poll of the requester, and as many errors before them.
constexpr std::size_t kBatch = 2 * progress::Context::kCompletionsAtOnce;
/// A payload up to this long is copied behind its header, so that a batch is one piece; the copy of
/// a longer one would cost more than the piece of its own.
constexpr std::size_t kShortPayload = kernels::kMaxPacketPayload;
/// Error frames are short too.
constexpr std::size_t kFrameRoom = protocol::kFrameHeaderSize + kShortPayload;
/// One recv takes up to this much, and always a whole frame.
constexpr std::size_t kReceiveSize = 64 * 1024;
/// Buffers that stay with the thread when it has no use for them: so many bytes, or so many.
constexpr std::size_t kKeptBytes = 16 * 1024 * 1024;
constexpr std::size_t kKeptBuffers = 16;
/// How long the thread sleeps at most.
constexpr core::Duration kLongestSleep = std::chrono::hours(1);

std::size_t receive_buffer_size(std::uint32_t max_message_length) {
  return std::max(kReceiveSize, 2 * (protocol::kFrameHeaderSize + max_message_length));
}

}  // namespace

IoThread::IoThread(const Config& config, channel::ChannelMemory& memory)
    : config_(config),
      engine_(config.spin),
      requester_(memory.endpoint(), *this),
      buffers_(receive_buffer_size(config.max_message_length),
               std::max(kKeptBuffers, kKeptBytes / receive_buffer_size(config.max_message_length))),
      gather_(kBatch, kFrameRoom) {
  received_.reserve(requester_.capacity());
  engine_.attach(*this);
}

IoThread::~IoThread() {
  stop();
}

void IoThread::start() {
  std::promise<void> started;
  thread_ = std::thread([this, &started] {
    try {
      core::name_this_thread(("io-" + std::to_string(config_.index)).c_str());
      if (config_.cpu >= 0) core::pin_this_thread(config_.cpu);
      requester_.open(engine_);
      started.set_value();
    } catch (...) {
      started.set_exception(std::current_exception());
      return;
    }
    run();
  });
  started.get_future().get();
}

template <class Change>
void IoThread::give_order(Change change) {
  bool told = false;
  {
    const std::lock_guard lock(orders_mutex_);
    change();
    told = has_orders_.exchange(true, std::memory_order_release);  // pairs with apply_orders
  }
  if (!told) engine_.notify();
}

void IoThread::set_worker(WorkerState state, std::unique_ptr<comch::DataEndpoint> line) {
  give_order([&] {
    worker_order_ = state;
    line_order_ = std::move(line);
  });
}

void IoThread::take(core::Fd socket) {
  ++given_;
  give_order([&] { socket_orders_.push_back(std::move(socket)); });
}

void IoThread::drain() noexcept {
  give_order([&] { drain_order_ = true; });
}

void IoThread::stop() noexcept {
  if (!thread_.joinable()) return;
  stop_order_.store(true, std::memory_order_relaxed);
  engine_.notify();
  thread_.join();
  core::log_info("I/O thread {}: {} connections, {} responses, {} refusals", config_.index,
                 accepted_, answered_, refused_);
}

void IoThread::run() {
  while (!stop_order_.load(std::memory_order_relaxed)) {
    const Connection* const first = lingering_.front();
    engine_.run_once(first != nullptr ? first->linger_deadline() : engine_.now() + kLongestSleep);
  }
  connections_.clear();
  requester_.stop();
}

bool IoThread::poll() {
  bool worked = apply_orders();
  if (draining_) go_on_draining();
  look_after_line();
  worked = finish_batch() || worked;
  worked = serve_ready() || worked;
  close_lingering();
  return worked;
}

// ---- Orders

bool IoThread::apply_orders() {
  if (!has_orders_.load(std::memory_order_acquire)) return false;  // pairs with give_order
  std::optional<WorkerState> worker;
  std::unique_ptr<comch::DataEndpoint> line;
  bool drain = false;
  {
    const std::lock_guard lock(orders_mutex_);
    has_orders_.store(false, std::memory_order_relaxed);  // under the lock
    worker.swap(worker_order_);
    line = std::move(line_order_);
    newcomers_.swap(socket_orders_);
    drain = drain_order_;
  }
  if (worker) apply_worker_order(*worker, std::move(line));
  for (core::Fd& socket : newcomers_) welcome(std::move(socket));
  newcomers_.clear();
  if (drain && !draining_) start_draining();  // the newcomers as well
  return true;
}

void IoThread::apply_worker_order(WorkerState state, std::unique_ptr<comch::DataEndpoint> line) {
  worker_ = state;
  requester_.set_wakeup(worker_.wakeup);
  remote_.reset();
  if (worker_.wakeup == channel::Wakeup::engine) {
    try {
      remote_.emplace(requester_, std::move(line));
    } catch (const core::Error& error) {
      config_.on_line_lost(error.what());
    }
  }
  if (worker_.expired) abandon_requests(Refusal::worker_unavailable);
}

/// Says once that the line to the worker has ended; the control thread says what follows.
void IoThread::look_after_line() {
  if (!remote_ || remote_->failure() == nullptr) return;
  const std::string reason = *remote_->failure();
  remote_.reset();
  config_.on_line_lost(reason);
}

void IoThread::abandon_requests(Refusal reason) {
  requester_.for_each_pending([&](channel::PendingRequest& request) {
    // The slot stays taken: the next worker answers it, and that answer is dropped.
    void* const user = std::exchange(request.user_data, nullptr);
    if (user == nullptr) return;
    auto& connection = *static_cast<Connection*>(user);
    connection.remove_request();
    if (gather_.full()) send_touched();
    append_error(connection, reason);
    on_ready(connection);
  });
  send_touched();
}

void IoThread::start_draining() {
  draining_ = true;
  for (const auto& connection : connections_) {
    connection->drain();
    on_ready(*connection);
  }
}

void IoThread::go_on_draining() {
  if (!worker_.attached() && requester_.awaited() != 0) {
    abandon_requests(Refusal::shutting_down);
  }
  // Release: pairs with drained().
  if (connections_.empty()) drained_.store(true, std::memory_order_release);
}

// ---- Clients come

void IoThread::welcome(core::Fd socket) {
  try {
    connections_.push_back(std::make_unique<Connection>(std::move(socket), engine_, buffers_,
                                                        static_cast<ConnectionOwner&>(*this)));
    connections_.back()->index = connections_.size() - 1;
    ++accepted_;
  } catch (const std::exception& error) {
    count_gone();
    if (!turned_away_log_.allow(engine_.now())) return;
    core::log_warning("a client is turned away: {} ({} more were not logged)", error.what(),
                      turned_away_log_.suppressed());
  }
}

void IoThread::on_ready(Connection& connection) {
  if (connection.queue == Connection::Queue::ready) return;
  // Its place among those that wait is not given away.
  if (connection.queue == Connection::Queue::waiting && connection.waits_for_room()) return;
  enqueue(connection, Connection::Queue::ready);
}

void IoThread::enqueue(Connection& connection, Connection::Queue queue) {
  Connections::remove(connection);
  connection.queue = queue;
  (queue == Connection::Queue::ready ? ready_ : waiting_).push_back(connection);
}

// ---- Requests go

bool IoThread::refuses_requests() const noexcept {
  return worker_.expired || (draining_ && !worker_.attached());
}

/// Whether there is no room for a request.
bool IoThread::full() const noexcept {
  return requester_.full() && !refuses_requests();
}

/// Serves everyone at most once, and nobody for whom there is no room: with many clients, those
/// that wait cost a turn nothing, and what they sent stays in the kernel.
bool IoThread::serve_ready() {
  if (ready_.empty() && (waiting_.empty() || full())) return false;
  bool worked = false;
  const std::uint64_t posted = requester_.posted();
  serving_.splice_back(ready_);
  while (Connection* const connection = serving_.pop_front()) {
    connection->queue = Connection::Queue::none;
    worked = tend(*connection) || worked;
  }
  serving_.splice_back(waiting_);
  while (!full()) {
    Connection* const connection = serving_.pop_front();
    if (connection == nullptr) break;
    connection->queue = Connection::Queue::none;
    worked = serve(*connection) || worked;
  }
  // Who got room and wants more stands behind who got none: one deep pipeline starves nobody.
  serving_.splice_back(waiting_);
  waiting_.splice_back(serving_);
  if (requester_.posted() != posted) (void)requester_.flush();
  send_touched();
  return worked;
}

/// Does for a connection what needs no room in the channel.
bool IoThread::tend(Connection& connection) {
  if (connection.disposable()) {
    erase(connection);
    return true;
  }
  if (!connection.waits_for_room()) return serve(connection);
  enqueue(connection, Connection::Queue::waiting);
  return false;
}

bool IoThread::serve(Connection& connection) {
  const std::size_t before = connection.input().bytes().size();
  bool took_all = take_frames(connection);
  bool worked = connection.input().bytes().size() != before;
  if (took_all && connection.wants_to_read()) {
    connection.receive();
    took_all = take_frames(connection);
    worked = true;
  }
  connection.input().release_if_empty();
  connection.holds_frames = !took_all;
  if (connection.waits_for_room()) {
    enqueue(connection, Connection::Queue::waiting);
  } else if (connection.wants_to_read()) {
    on_ready(connection);
  } else if (connection.finishing()) {
    finish(connection);
    worked = true;
  }
  if (connection.disposable()) on_ready(connection);
  return worked;
}

void IoThread::finish(Connection& connection) {
  if (gather_.full()) send_touched();
  connection.finish(gather_);
  if (connection.state() == Connection::State::lingering) lingering_.push_back(connection);
}

/// Takes the whole frames that came. False if some are left because the channel is full.
bool IoThread::take_frames(Connection& connection) {
  while (connection.state() == Connection::State::open ||
         connection.state() == Connection::State::draining) {
    const auto stream = connection.input().bytes();
    const FrameView frame = protocol::parse_frame(stream, config_.max_message_length);
    if (frame.state == FrameView::State::incomplete) return true;
    if (frame.state == FrameView::State::bad) {
      refuse(connection, frame.reason);
    } else if (frame.id != MessageId::client_request) {
      refuse(connection, Refusal::misplaced_message);
    } else if (forward(connection, frame.payload)) {
      // To send it a refusal may have closed it, which emptied its input.
      if (connection.state() == Connection::State::closed) return true;
      connection.input().consume(frame.size());
    } else {
      return false;
    }
  }
  return true;
}

bool IoThread::forward(Connection& connection, std::span<const std::byte> payload) {
  if (refuses_requests()) {
    if (gather_.full()) send_touched();
    append_error(connection, draining_ ? Refusal::shutting_down : Refusal::worker_unavailable);
    return true;
  }
  if (!requester_.post(payload, &connection).ok()) return false;
  connection.add_request();
  return true;
}

void IoThread::refuse(Connection& connection, Refusal reason) {
  ++refused_;
  if (refusal_log_.allow(engine_.now())) {
    core::log_warning("a client is disconnected: {} ({} more like this were not logged)",
                      protocol::describe(reason), refusal_log_.suppressed());
  }
  connection.refuse(reason);
}

// ---- Responses come

void IoThread::on_response(channel::PostRecvTask& task) {
  received_.push_back(&task);
  if (task.user_data == nullptr) return;  // given up: its client has had an error
  auto& connection = *static_cast<Connection*>(task.user_data);
  connection.remove_request();
  ++answered_;
  if (gather_.full()) send_touched();
  if (task.response_status() != kernels::Status::ok) {
    return append_error(connection, Refusal::worker_failed);
  }

  const std::span<std::byte> payload = task.payload();
  std::byte* const frame = gather_.room();
  protocol::store_header(frame, MessageId::client_response,
                         static_cast<std::uint32_t>(payload.size()));
  touch(connection);
  if (payload.size() <= kShortPayload) {
    std::copy(payload.begin(), payload.end(), frame + protocol::kFrameHeaderSize);
    gather_.commit(connection.chain(), protocol::kFrameHeaderSize + payload.size());
  } else {
    gather_.commit(connection.chain(), protocol::kFrameHeaderSize);
    gather_.refer(connection.chain(), payload);
  }
}

/// Sends what was received and releases the slots: only now, as long payloads are sent from where
/// they lie.
bool IoThread::finish_batch() {
  if (received_.empty()) return false;
  send_touched();
  for (channel::PostRecvTask* const task : received_) {
    [[maybe_unused]] const core::Status released = requester_.release(*task);
    assert(released.ok());
  }
  (void)requester_.flush();
  received_.clear();
  return true;
}

void IoThread::append_error(Connection& connection, Refusal reason) {
  ++refused_;
  const auto frame = protocol::make_error_frame(reason, protocol::describe(reason));
  std::copy(frame.begin(), frame.end(), gather_.room());
  touch(connection);
  gather_.commit(connection.chain(), frame.size());
}

void IoThread::touch(Connection& connection) {
  if (connection.chain().empty()) touched_.push_back(&connection);
}

void IoThread::send_touched() {
  for (Connection* connection : touched_) {
    connection->send(gather_);
    // More to read now that it was answered, an end to come to, or nothing at all.
    on_ready(*connection);
  }
  touched_.clear();
  gather_.reset();
}

// ---- Clients go

void IoThread::close_lingering() {
  while (Connection* const first = lingering_.front()) {
    if (first->linger_deadline() > engine_.now()) return;
    lingering_.pop_front();
    first->close();
    on_ready(*first);
  }
}

void IoThread::erase(Connection& connection) {
  const std::size_t index = connection.index;
  std::swap(connections_[index], connections_.back());
  connections_[index]->index = index;
  connections_.pop_back();
  count_gone();
}

void IoThread::count_gone() noexcept {
  // Nobody else writes it.
  gone_.store(gone_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

}  // namespace offload::server
