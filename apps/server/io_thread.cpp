#include "apps/server/io_thread.hpp"

#include <algorithm>
#include <exception>
#include <future>
#include <utility>

#include "core/error.hpp"

namespace offload::server {

using protocol::Refusal;

/// How long the thread sleeps at most; orders and events wake it.
constexpr core::Duration kLongestSleep = std::chrono::hours(1);

IoThread::IoThread(const Config& config, channel::ChannelMemory& memory)
    : config_(config),
      engine_(config.spin),
      clients_(engine_, config.max_message_length, config.client_limits, *config_.client_memory),
      handshakes_(engine_,
                  [this](net::Stream stream, Admission admission) {
                    add_client(std::move(stream), std::move(admission));
                  }),
      path_(engine_, clients_, memory.endpoint(), config.max_message_length) {
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
      path_.requester().open(engine_);
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

void IoThread::set_worker(WorkerState state, std::unique_ptr<comch::DataEndpoint> endpoint) {
  give_order([&](Orders& orders) {
    orders.worker = state;
    orders.endpoint = std::move(endpoint);
  });
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
  while (!stop_order_.load(std::memory_order_relaxed)) {
    engine_.run_once(std::min(
        {clients_.next_deadline(), handshakes_.deadline(), engine_.now() + kLongestSleep}));
  }
  handshakes_.clear();
  clients_.clear();
  path_.requester().stop();
}

bool IoThread::poll() {
  bool worked = apply_orders();
  report_connection_loss();
  worked = path_.deliver() || worked;
  worked = handshakes_.turn() || worked;
  if (clients_.serve_round(path_)) {
    path_.end_round();
    worked = true;
  }
  worked = clients_.close_overdue() || worked;
  gone_.store(taken_ - clients_.size() - handshakes_.size(), std::memory_order_relaxed);
  // Release: pairs with drained().
  if (draining_ && clients_.size() == 0) drained_.store(true, std::memory_order_release);
  return worked;
}

bool IoThread::apply_orders() {
  std::optional<Orders> orders = orders_.take();
  if (!orders) return false;
  if (orders->worker) set_worker_state(*orders->worker, std::move(orders->endpoint));
  if (orders->tls) handshakes_.set_context(std::move(*orders->tls));
  for (auto& [socket, admission] : orders->sockets) {
    take_in(std::move(socket), std::move(admission));
  }
  if (orders->drain) {
    draining_ = true;
    handshakes_.clear();  // they were promised nothing yet
    clients_.drain();     // the newcomers as well
  }
  path_.set_refusal(refusal());
  return true;
}

void IoThread::set_worker_state(WorkerState state, std::unique_ptr<comch::DataEndpoint> endpoint) {
  worker_ = state;
  path_.requester().set_wakeup(worker_.wakeup);
  worker_proxy_.reset();
  if (worker_.wakeup != channel::Wakeup::engine) return;
  try {
    worker_proxy_.emplace(path_.requester(), std::move(endpoint));
  } catch (const core::Error& error) {
    config_.on_connection_lost(error.what());
  }
}

void IoThread::take_in(core::Fd socket, Admission admission) {
  ++taken_;
  if (!handshakes_.wanted()) return add_client(std::move(socket), std::move(admission));
  const auto address = admission.address.text();
  try {
    handshakes_.add(std::move(socket), std::move(admission));
  } catch (const std::exception& error) {
    log_turned_away(address, error.what());
  }
}

void IoThread::add_client(net::Stream stream, Admission admission) {
  const auto address = admission.address.text();
  try {
    clients_.add(std::move(stream), std::move(admission));
    ++accepted_;
  } catch (const std::exception& error) {
    log_turned_away(address, error.what());
  }
}

void IoThread::log_turned_away(std::string_view address, std::string_view reason) {
  if (!turned_away_log_.allow(engine_.now())) return;
  core::log_warning("client {} is turned away: {} ({} more were not logged)", address, reason,
                    turned_away_log_.suppressed());
}

/// Why requests are refused now, if they are. Without a worker they wait for one, but not for ever.
std::optional<Refusal> IoThread::refusal() const noexcept {
  if (worker_.attached()) return std::nullopt;
  if (draining_) return Refusal::shutting_down;
  if (worker_.expired) return Refusal::worker_unavailable;
  return std::nullopt;
}

/// Says once that the data connection to the worker has ended; the control thread says what
/// follows.
void IoThread::report_connection_loss() {
  if (!worker_proxy_ || worker_proxy_->failure() == nullptr) return;
  const std::string reason = *worker_proxy_->failure();
  worker_proxy_.reset();
  config_.on_connection_lost(reason);
}

}  // namespace offload::server
