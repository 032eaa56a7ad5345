#include "apps/server/io_thread.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <future>
#include <new>
#include <utility>

#include "core/error.hpp"
#include "core/probe.hpp"
#include "core/process/out_of_memory.hpp"
#include "core/process/thread.hpp"

namespace offload::server {

using comch::WorkerId;
using protocol::Refusal;

constexpr core::Duration kLongestSleep = std::chrono::hours(1);

/// The interval at which a thread that waits for another one's retries checks for their end.
constexpr core::Duration kLookInterval = std::chrono::milliseconds(1);

/// The interval at which time limits are checked; an eighth of the shortest limit if that is less.
constexpr core::Duration kCheckInterval = std::chrono::seconds(1);

namespace {

/// Handshakes may have a quarter of the thread's share of memory, and go on with the least.
std::size_t most_handshakes(std::uint64_t share) {
  constexpr std::uint64_t kLeast = 4;
  return static_cast<std::size_t>(std::max(share / 4 / Handshakes::kMemory, kLeast));
}

}  // namespace

IoThread::IoThread(const Config& config, std::shared_ptr<comch::WorkerChannel> channel)
    : config_(config),
      engine_(config.spin, &config_.metrics->times),
      clients_(engine_, config.limits.max_message_length, config.client_limits,
               *config_.client_memory, *config_.metrics),
      handshakes_(
          engine_, *config_.metrics,
          [this](net::Stream stream, Admission admission) {
            add_client(std::move(stream), std::move(admission));
          },
          Handshakes::kTime, most_handshakes(config_.client_memory->share())),
      path_(engine_, clients_, channel->memory.endpoint(), config.limits, *config_.metrics),
      selector_(path_.requester(), std::move(channel)),
      retries_(config.retries, config.index) {
  engine_.attach(*this);
}

IoThread::~IoThread() {
  stop();
}

void IoThread::start() {
  std::promise<void> started;
  thread_ = core::start_thread("io-" + std::to_string(config_.index), [this, &started] {
    try {
      if (config_.cpu >= 0) core::pin_this_thread(config_.cpu);
      open();
      started.set_value();
    } catch (...) {
      started.set_exception(std::current_exception());
      return;
    }
    run();
  });
  started.get_future().get();
}

// ---- On the control thread

/// Wakes the thread, unless it has yet to take the orders before.
template <class Change>
void IoThread::give_order(Change change) {
  if (orders_.put(change)) engine_.notify();
}

void IoThread::add_worker(std::shared_ptr<comch::WorkerChannel> channel) {
  give_order([&](Orders& orders) { orders.added.push_back(std::move(channel)); });
}

void IoThread::remove_worker(WorkerId worker, comch::WorkerLoss loss) {
  give_order([&](Orders& orders) { orders.removed.emplace_back(worker, loss); });
}

void IoThread::select_worker(WorkerId worker) {
  give_order([&](Orders& orders) { orders.selected = worker; });
}

void IoThread::set_expired(bool expired) {
  give_order([&](Orders& orders) { orders.expired = expired; });
}

void IoThread::set_timeouts(core::Duration worker, core::Duration request) {
  give_order([&](Orders& orders) { orders.timeouts = {worker, request}; });
}

void IoThread::set_slow_request(core::Duration limit) {
  give_order([&](Orders& orders) { orders.slow_request = limit; });
}

void IoThread::set_tls(net::TlsContext context) {
  give_order([&](Orders& orders) { orders.tls = std::move(context); });
}

void IoThread::take(core::Fd socket, Admission admission) {
  give_order([&](Orders& orders) {
    orders.sockets.emplace_back(std::move(socket), std::move(admission));
  });
  ++given_;
}

void IoThread::check() const {
  // Acquire: pairs with run().
  if (has_failed_.load(std::memory_order_acquire)) std::rethrow_exception(failure_);
}

void IoThread::drain() noexcept {
  give_order([](Orders& orders) { orders.drain = true; });
}

void IoThread::stop() noexcept {
  if (!thread_.joinable()) return;
  stop_order_.store(true, std::memory_order_relaxed);
  engine_.notify();
  thread_.join();
  core::log_info("I/O thread {}: {} connections, {} responses, {} refusals", config_.index,
                 accepted_, path_.answered(), path_.refused());
}

// ---- On the thread

void IoThread::run() {
  try {
    while (!stop_order_.load(std::memory_order_relaxed)) {
      turn(core::TimePoint::max());
    }
  } catch (...) {
    // No other thread has its clients: their connections end, and so does the server.
    failure_ = std::current_exception();
    has_failed_.store(true, std::memory_order_release);  // pairs with check()
    config_.on_moved();
  }
  handshakes_.clear();
  clients_.clear();
  path_.requester().close();
}

bool IoThread::poll() {
  bool worked = path_.deliver();
  worked = apply_orders() || worked;
  look_after_worker();
  worked = handshakes_.turn() || worked;
  clients_.set_held_by_handshakes(handshakes_.held());
  if (clients_.serve_round(path_)) {
    path_.end_round();
    worked = true;
  }
  worked = clients_.close_overdue() || worked;
  gone_.store(taken_ - clients_.size() - handshakes_.size(), std::memory_order_relaxed);
  publish();
  // Release: pairs with drained().
  if (draining_ && clients_.size() == 0) drained_.store(true, std::memory_order_release);
  return worked;
}

/// Publishes once a turn the values that change with each message.
void IoThread::publish() {
  ThreadMetrics& metrics = *config_.metrics;
  const Work before = std::exchange(work_[1], work_[0]);
  work_[0] = {metrics.requests.value(), path_.answered(), metrics.received.value(),
              metrics.transmitted.value(), gone_.load(std::memory_order_relaxed)};
  if (metrics.times.stalls.value() != stalls_) report_stall(before);
  metrics.connections.set(clients_.size() + handshakes_.size());
  metrics.responses.set(path_.answered_well());
  const std::uint64_t awaited = path_.requester().awaited();
  metrics.in_flight.set(awaited);
  retries_.publish(awaited != 0 && selector_.serving() != 0);
  const core::TimePoint now = engine_.now();
  if (full_since_) {
    metrics.channel_full.add(static_cast<std::uint64_t>((now - *full_since_).count()));
  }
  full_since_ = path_.requester().full() ? std::optional(now) : std::nullopt;
}

/// Reports the work of the turn before this one, which the engine found too long.
void IoThread::report_stall(const Work& before) {
  const progress::EngineTimes& times = config_.metrics->times;
  stalls_ = times.stalls.value();
  OFFLOAD_PROBE2(stall, config_.index, times.last_stall.value());
  if (!stall_log_.allow(engine_.now())) return;
  const Work& after = work_[1];
  const std::string text = fmt::format(
      "I/O thread {}: a turn took {:.1f} ms, with {} requests, {} answers, {} bytes from clients, "
      "{} bytes to clients, {} clients gone",
      config_.index, static_cast<double>(times.last_stall.value()) / 1e6,
      after.requests - before.requests, after.answers - before.answers,
      after.received - before.received, after.transmitted - before.transmitted,
      after.gone - before.gone);
  core::log_warning("{} ({} more were not logged)", text, stall_log_.suppressed());
  if (config_.events) config_.events->add(text);
}

bool IoThread::apply_orders() {
  std::optional<Orders> orders = orders_.take();
  if (!orders) return false;
  for (auto& channel : orders->added) add_channel(std::move(channel));
  for (const auto& [worker, loss] : orders->removed) {
    if (worker == selector_.serving()) loss_ = loss;
    selector_.remove(worker);
    retries_.note_loss(engine_.run_time());
  }
  if (orders->selected) selector_.select(*orders->selected);
  if (orders->expired) expired_ = *orders->expired;
  if (orders->timeouts) {
    config_.worker_timeout = orders->timeouts->first;
    config_.request_timeout = orders->timeouts->second;
  }
  if (orders->slow_request) {
    path_.set_slow_request(*orders->slow_request);
    if (*orders->slow_request != core::Duration{}) config_.metrics->is_shown = true;
  }
  if (orders->tls) handshakes_.set_context(std::move(*orders->tls));
  for (auto& [socket, admission] : orders->sockets) {
    take_in(std::move(socket), std::move(admission));
  }
  if (orders->drain) {
    draining_ = true;
    handshakes_.clear();  // they were promised nothing yet
    drain_clients();      // the newcomers as well
  }
  next_check_ = {};
  return true;
}

/// Those that are paused are refused: the end does not wait for them.
void IoThread::drain_clients() {
  clients_.drain();
  path_.refuse_paused(Refusal::shutting_down);
}

/// Without memory for it, the worker counts as lost: it attaches again.
void IoThread::add_channel(std::shared_ptr<comch::WorkerChannel> channel) {
  const WorkerId worker = channel->worker;
  try {
    selector_.add(std::move(channel));
  } catch (const std::bad_alloc&) {
    config_.on_worker_failed({worker, "no memory for its channel", false});
  }
}

/// Moves the channel to the worker that the control thread chose, and says what became of workers.
/// With all responses delivered.
void IoThread::look_after_worker() {
  if (selector_.serving() == 0 && serving() != 0) note_loss();
  if (selector_.progress() || selector_.serving() != serving()) {
    serving_.store(selector_.serving(), std::memory_order_relaxed);
    path_.note_new_worker();
    retries_.note_move(engine_.run_time());
    next_check_ = {};
    config_.on_moved();
  }
  hold_waiting();
  path_.set_open(!retry_suspects() && selector_.ready());
  if (selector_.has_loss() || engine_.run_time() >= next_check_) check_times();
}

/// The worker that served is gone.
void IoThread::note_loss() {
  const bool blame = loss_ == comch::WorkerLoss::ended && retries_.was_alone();
  const Client* const culprit = path_.note_loss(selector_.channel(), blame);
  if (culprit == nullptr) return;
  config_.waiting->add(culprit->admission().address, engine_.now());
  config_.metrics->culprits.add();
  try {
    report_culprit(culprit->admission());
  } catch (const std::bad_alloc&) {
    core::log_warning("client {} is refused: three workers were lost with its request",
                      culprit->admission().number);
  }
}

void IoThread::report_culprit(const Admission& admission) {
  const auto address = admission.address.text();
  const std::string text = fmt::format(
      "client {}, {}: three workers were lost with its request, which was alone with the third. "
      "The request is refused. For {:.0f} s the server accepts no connections from this address, "
      "and does not read its open ones",
      admission.number, std::string_view(address), core::to_seconds(WaitingAddresses::kTime));
  core::log_warning("{}", text);
  if (config_.events) config_.events->add(text);
}

/// Pauses the clients whose address waits, and lets them go on when its time is over.
void IoThread::hold_waiting() {
  const std::uint64_t changes = config_.waiting->changes();
  if (changes == held_changes_ && engine_.now() < held_until_) return;
  held_changes_ = changes;
  held_until_ = clients_.pause(*config_.waiting);
  path_.hold_suspects();
  if (draining_) drain_clients();
}

/// Retries the requests with which a worker was lost. Returns whether others have to wait.
bool IoThread::retry_suspects() {
  using State = RetryCoordinator::State;
  const RetryCoordinator::Suspects suspects = path_.suspects();
  const State state = retries_.update(suspects, selector_.serving() != 0, engine_.run_time());
  if ((state == State::exclusive || state == State::shared) &&
      path_.retry(retries_.hurries(engine_.run_time()))) {
    retries_.note_retry();
  }
  return suspects != RetryCoordinator::Suspects::none || state == State::wait;
}

void IoThread::check_times() {
  if (const auto loss = selector_.take_loss()) {
    config_.on_worker_failed({loss->worker, loss->reason, false});
  }
  path_.set_refusal(refusal());
  path_.refuse_overdue(config_.request_timeout);
  core::Duration interval = std::min(kCheckInterval, config_.worker_timeout / 8);
  if (config_.request_timeout != core::Duration{}) {
    interval = std::min(interval, config_.request_timeout / 8);
  }
  next_check_ =
      engine_.run_time() + std::max<core::Duration>(interval, std::chrono::milliseconds(1));

  const WorkerId worker = selector_.serving();
  const auto silent_since = path_.silent_since();
  if (worker == 0 || worker == failed_ || !silent_since) return;
  const auto silence = engine_.run_time() - *silent_since;
  if (silence < config_.worker_timeout) return;
  failed_ = worker;
  config_.on_worker_failed({worker,
                            fmt::format("it has answered no request on channel {} for {:.1f} s",
                                        config_.index, core::to_seconds(silence)),
                            true});
}

/// Orders and events wake it before that.
core::Duration IoThread::arm() {
  auto deadline = std::min(clients_.next_deadline(), handshakes_.deadline());
  if (path_.requester().awaited() != 0 || path_.suspects() != RetryCoordinator::Suspects::none) {
    deadline = std::min(deadline, next_check_);
  }
  if (retries_.state() == RetryCoordinator::State::wait) {
    deadline = std::min(deadline, engine_.run_time() + kLookInterval);
  }
  if (held_until_ != core::TimePoint::max()) {
    deadline = std::min(deadline, engine_.run_time() + (held_until_ - engine_.now()));
  }
  if (deadline == core::RunTime::max()) return kLongestSleep;
  return std::clamp(deadline - engine_.run_time(), core::Duration{}, kCheckInterval);
}

void IoThread::take_in(core::Fd socket, Admission admission) {
  ++taken_;
  if (!handshakes_.wanted()) return add_client(std::move(socket), std::move(admission));
  const auto number = admission.number;
  const auto address = admission.address.text();
  try {
    handshakes_.add(std::move(socket), std::move(admission));
  } catch (const std::exception& error) {
    log_turned_away(number, address, core::what_of(error));
  }
}

void IoThread::add_client(net::Stream stream, Admission admission) {
  const auto number = admission.number;
  const auto address = admission.address.text();
  try {
    Client& client = clients_.add(std::move(stream), std::move(admission));
    held_until_ = std::min(held_until_, clients_.pause(client, *config_.waiting));
    ++accepted_;
    config_.metrics->accepted.add();
    OFFLOAD_PROBE1(accept, config_.index);
  } catch (const std::exception& error) {
    log_turned_away(number, address, core::what_of(error));
  }
}

void IoThread::log_turned_away(std::uint64_t number, std::string_view address,
                               std::string_view reason) {
  if (!turned_away_log_.allow(engine_.now())) return;
  core::log_warning("client {}, {}, is rejected: {} ({} more were not logged)", number, address,
                    reason, turned_away_log_.suppressed());
}

/// Why requests are refused now, if they are. Without a worker they wait for one, but not for ever.
std::optional<Refusal> IoThread::refusal() const noexcept {
  if (selector_.serving() != 0) return std::nullopt;
  if (draining_) return Refusal::shutting_down;
  if (expired_) return Refusal::worker_unavailable;
  return std::nullopt;
}

}  // namespace offload::server
