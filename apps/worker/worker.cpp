#include "apps/worker/worker.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "kernels/channel_layout.hpp"

namespace offload::worker {
namespace {

using core::Error;
using core::ErrorCode;

constexpr std::uint32_t kMostChannels = 1024;
constexpr core::Duration kFirstRetry = std::chrono::milliseconds(10);
constexpr core::Duration kLongestRetry = std::chrono::seconds(1);
/// The interval of checks of the back end.
constexpr core::Duration kWatchInterval = std::chrono::milliseconds(250);
/// The time for the back end to stop; a GPU's warps read the stop word within microseconds.
constexpr core::Duration kStopTime = std::chrono::seconds(2);

std::unique_ptr<backend::Backend> open_backend(const Options& options) {
  if (options.backend == "graph") {
    return backend::make_graph_backend({options.gpu_pci_address, options.spin});
  }
  if (options.backend != "cpu") {
    try {
      return backend::make_cuda_backend(
          {options.gpu_pci_address, options.warps_per_channel, options.idle_sleep});
    } catch (const Error& error) {
      if (options.backend == "cuda" || !options.gpu_pci_address.empty()) throw;
      core::log_info("no CUDA back end ({}): serving on the CPU", error.what());
    }
  }
  return backend::make_cpu_backend(options.spin);
}

/// Whether another attempt may succeed: the server is not up yet, or too busy to accept, or another
/// than it has answered (connection_aborted).
bool may_come(const Error& error) {
  return error.code() == ErrorCode::not_connected || error.code() == ErrorCode::not_found ||
         error.code() == ErrorCode::connection_reset || error.code() == ErrorCode::again ||
         error.code() == ErrorCode::timed_out || error.code() == ErrorCode::connection_aborted;
}

}  // namespace

Worker::Worker(const Options& options, core::ShutdownSignals& signals)
    : options_(options),
      signals_(&signals),
      server_(comch::make_address(options.comch, options.comch_security)),
      backend_(open_backend(options)) {
  engine_.watch(signals_->fd(), EPOLLIN, *this);
  core::log_info("back end: {}", backend_->name());
}

Worker::~Worker() {
  link_.reset();
  engine_.unwatch(signals_->fd(), *this);
}

void Worker::run() {
  while (!finished_ && !leave_by_) {
    if (!connect()) return;
    serve();
    detach();
  }
}

/// Retries until a server has sent its channels (true), or a signal arrives (false).
bool Worker::connect() {
  const auto deadline = core::Clock::now() + options_.connect_timeout;
  for (core::Duration wait = kFirstRetry; !leave_by_; wait = std::min(2 * wait, kLongestRetry)) {
    try {
      lost_ = false;
      link_.emplace(engine_, server_, hello(), static_cast<comch::WorkerSession::Observer&>(*this));
      // Until the channels are there, a loss is one more reason to try again.
      while (!lost_ && !watchdog_ && !leave_by_ && core::Clock::now() < deadline) {
        engine_.run_once(std::min(deadline, link_->next_tick()));
        link_->tick(core::Clock::now());
      }
      if (failure_) std::rethrow_exception(failure_);
      if (watchdog_) return true;
    } catch (const Error& error) {
      if (failure_ || !may_come(error)) throw;
      const bool unproven = error.code() == ErrorCode::connection_aborted;
      const bool is_new = unproven && std::exchange(last_refusal_, error.what()) != error.what();
      core::log(is_new ? core::LogLevel::warning : core::LogLevel::debug, "{}", error.what());
    }
    link_.reset();
    const auto now = core::Clock::now();
    if (now >= deadline) {
      throw Error(ErrorCode::timed_out,
                  fmt::format("no server let this worker in on {} for {} s", options_.comch,
                              core::to_seconds(options_.connect_timeout)));
    }
    const auto retry_at = std::min(deadline, now + wait);
    while (!leave_by_ && core::Clock::now() < retry_at) engine_.run_once(retry_at);
  }
  return false;
}

void Worker::serve() {
  auto next_watch = core::Clock::now() + kWatchInterval;
  while (!lost_ && !finished_) {
    const auto deadline = leave_by_ ? std::min(*leave_by_, next_watch) : next_watch;
    engine_.run_once(std::min(deadline, link_->next_tick()));
    if (failure_) std::rethrow_exception(failure_);
    check_connections();
    const auto now = core::Clock::now();
    if (now >= link_->next_tick()) link_->tick(now);
    if (now >= next_watch) {
      watch_over();
      next_watch = now + kWatchInterval;
    }
    if (leave_by_ && now >= *leave_by_) {
      core::log_warning("the server did not let this worker go in time");
      return;
    }
  }
}

void Worker::watch_over() {
  for (const backend::Fault& fault : backend_->check()) {
    core::log_error("channel {} slot {}: refused a request of {} bytes, over the channel's limit",
                    fault.channel, fault.slot, fault.length);
  }
  watchdog_->look(core::Clock::now(), backend_->heartbeats());
}

/// A proxy's data connection ends on the proxy's thread, which has woken this one.
void Worker::check_connections() {
  for (const auto& attached : channels_) {
    if (lost_ || !attached.proxy) continue;
    if (const std::string* const reason = attached.proxy->failure()) on_lost(*reason, {});
  }
}

void Worker::detach() {
  if (!backend_->stop(kStopTime)) {
    throw Error(ErrorCode::timed_out, "the back end did not stop in time");
  }
  if (finished_) link_->complete();
  link_.reset();
  watchdog_.reset();
  channels_.clear();
}

protocol::Hello Worker::hello() const {
  protocol::Hello hello;
  hello.capabilities =
      backend_->wakeup() == channel::Wakeup::doorbell ? protocol::kRingsDoorbell : 0U;
  hello.max_channels = kMostChannels;
  hello.max_message_length = kernels::kMaxMessageLength;
  hello.backend = backend_->name();
  return hello;
}

void Worker::on_channels(const std::string& service, std::vector<comch::AttachedChannel> channels) {
  try {
    channels_ = std::move(channels);
    std::vector<channel::SharedChannel> served;
    std::vector<kernels::ChannelView> watched;
    for (const auto& attached : channels_) {
      served.push_back(attached.channel);
      watched.push_back(attached.channel->view());
    }
    backend_->start(std::move(served), service);
    for (const auto& attached : channels_) {
      if (attached.proxy) attached.proxy->start(backend_->wakeup(), [this] { engine_.notify(); });
    }
    watchdog_.emplace(std::move(watched), options_.stuck_after);
    core::log_info("serving {} channels, service {}", channels_.size(), service);
  } catch (...) {
    failure_ = std::current_exception();
    throw;
  }
}

void Worker::on_attached() {
  core::log_info("attached to {}", options_.comch);
}

void Worker::on_start_shutdown() {
  core::log_info("the server is done: shutting down");
  finished_ = true;
}

void Worker::on_lost(const std::string& reason, std::optional<protocol::Refusal> refused) {
  lost_ = true;
  if (failure_) return;  // the back end's; the server has been told
  if (refused == protocol::Refusal::busy || refused == protocol::Refusal::shutting_down) {
    if (reason != last_refusal_)
      core::log_info("the server cannot take this worker yet: {}", reason);
    last_refusal_ = reason;
  } else if (refused) {
    failure_ = std::make_exception_ptr(
        Error(ErrorCode::not_permitted, "this worker cannot attach: " + reason));
  } else {
    // A data connection that broke says more than the end of the control connection that follows.
    const auto broken = std::find_if(channels_.begin(), channels_.end(), [](const auto& attached) {
      return attached.proxy && attached.proxy->failure() != nullptr;
    });
    core::log_warning("the server is gone: {}",
                      broken != channels_.end() ? *broken->proxy->failure() : reason);
  }
}

void Worker::on_events(std::uint32_t) {
  const int signal = signals_->take();
  if (signal == 0) return;
  core::log_info("{}: asking the server to end; a second signal ends the worker at once",
                 signal == SIGINT ? "SIGINT" : "SIGTERM");
  leave_by_ = core::Clock::now() + options_.shutdown_timeout;
  if (watchdog_) link_->request_shutdown();
}

}  // namespace offload::worker
