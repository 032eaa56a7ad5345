#include "apps/worker/worker.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
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
/// The interval at which the log says why this worker cannot attach, while the reason is the same.
constexpr core::Duration kReasonInterval = std::chrono::seconds(10);
/// The interval of checks of the back end.
constexpr core::Duration kWatchInterval = std::chrono::milliseconds(250);
/// The time for the back end to stop; a GPU's warps read the stop word within microseconds.
constexpr core::Duration kStopTime = std::chrono::seconds(2);
/// Includes the time to unregister and free memory.
constexpr core::Duration kDetachTime = kStopTime + std::chrono::seconds(2);
/// The time to open a GPU, and to register the channels with it and start a kernel. A driver that
/// is not kept in memory is loaded first, which takes some ten seconds on large machines.
constexpr core::Duration kStartTime = std::chrono::seconds(60);
/// The waits within one attempt to reach a server: to make a connection, and to prove the key.
constexpr core::Duration kAttemptTime = 2 * comch::kHandshakeTime;
/// A turn of serving: a sleep of kWatchInterval, and calls that do not wait.
constexpr core::Duration kTurnTime = std::chrono::seconds(10);

std::unique_ptr<backend::Backend> open_backend(const Options& options,
                                               const backend::Services& services,
                                               const std::string& gpu) {
  if (options.backend == "graph") return backend::make_graph_backend({gpu, options.spin}, services);
  if (options.backend != "cpu") {
    try {
      return backend::make_cuda_backend({gpu, options.warps_per_channel, options.idle_sleep},
                                        services);
    } catch (const Error& error) {
      if (options.backend == "cuda" || !gpu.empty()) throw;
      core::log_info("no CUDA back end ({}): processing requests on the CPU", error.what());
    }
  }
  return backend::make_cpu_backend(options.spin, services);
}

/// Whether another attempt may succeed: the server is not up yet, or too busy to accept, or another
/// than it has answered (connection_aborted).
bool may_come(const Error& error) {
  return error.code() == ErrorCode::not_connected || error.code() == ErrorCode::not_found ||
         error.code() == ErrorCode::connection_reset || error.code() == ErrorCode::again ||
         error.code() == ErrorCode::timed_out || error.code() == ErrorCode::connection_aborted;
}

/// Returns whether there is no server at the address. (A name that is unknown has its own advice.)
bool is_absent(const Error& error) {
  return error.code() == ErrorCode::not_connected || error.system_errno() == ENOENT ||
         error.system_errno() == ETIMEDOUT;
}

/// Whether an RDMA device that worked before may work again: it is being reset, or was removed and
/// may come back.
bool may_recover(const comch::Address& address, const Error& error) {
  return address.scheme == "rdma" &&
         (error.code() == ErrorCode::io_failed || error.code() == ErrorCode::not_supported ||
          error.system_errno() == ENODEV || error.system_errno() == ENXIO);
}

}  // namespace

Worker::Worker(const Options& options, const backend::Services& services, std::string gpu,
               const std::string& name, std::uint64_t most_memory)
    : options_(options),
      services_(services),
      gpu_(std::move(gpu)),
      prefix_(name.empty() ? "" : name + ": "),
      session_(prefix_),
      most_memory_(most_memory),
      settings_{comch::make_address(options.comch, options.comch_security, options.comch_path),
                options.connect_timeout, options.shutdown_timeout},
      replaces_(options.replaces) {}

void Worker::set(WorkerSettings settings) {
  const std::lock_guard lock(mutex_);
  new_settings_ = std::move(settings);
}

void Worker::leave() noexcept {
  leave_.store(true, std::memory_order_release);
  engine_.notify();
}

WorkerEnd Worker::run() {
  WorkerEnd end = WorkerEnd::done;
  std::exception_ptr failure;
  try {
    hang_.enter(kStartTime);
    backend_ = open_backend(options_, services_, gpu_);
    core::log_info("{}back end: {}", prefix_, backend_->name());
    counts_->describe({backend_->name(), ""});
    end = attach_and_serve();
  } catch (...) {
    failure = std::current_exception();
  }
  close();
  if (failure) std::rethrow_exception(failure);
  return end;
}

WorkerEnd Worker::attach_and_serve() {
  while (!finished_ && !leaving() && connect()) {
    serve();
    if (!detach()) return WorkerEnd::hung;
  }
  return WorkerEnd::done;
}

/// Takes what set() has left since the last call.
void Worker::take_settings() {
  const std::lock_guard lock(mutex_);
  if (new_settings_) settings_ = *std::exchange(new_settings_, std::nullopt);
}

/// Retries until a server has sent its channels (true), or this worker must end (false).
bool Worker::connect() {
  hang_.enter(HangDetector::kNoLimit);  // the waits here have separate limits
  data_path_ = choose_data_path(options_.data_path, options_.comch, *backend_);
  const auto begin = engine_.run_time();
  logged_reason_.clear();
  for (core::Duration wait = kFirstRetry; !finished_ && !leaving();
       wait = std::min(2 * wait, kLongestRetry)) {
    take_settings();  // for each attempt: the server may come back with another key
    const auto deadline = begin + settings_.connect_timeout;
    core::LogLevel level = core::LogLevel::info;
    try {
      reason_ = "the server sent no channels: is this the address of its --comch?";
      server_is_absent_ = false;
      if (await_channels(deadline)) return true;
    } catch (const Error& error) {
      const bool had_device = sessions_ != 0 && may_recover(settings_.server, error);
      if (failure_ || (!may_come(error) && !had_device)) throw;
      reason_ = error.what();
      server_is_absent_ = is_absent(error);
      if (error.code() == ErrorCode::connection_aborted) level = core::LogLevel::warning;
    }
    link_.reset();
    engine_.note_wait(kAttemptTime);
    if (engine_.run_time() >= deadline) {
      const bool had_another = !logged_reason_.empty() && logged_reason_ != reason_;
      throw Error(ErrorCode::timed_out,
                  fmt::format("no server at {} accepted this worker within {} s: {}{}{}{}",
                              options_.comch, core::to_seconds(settings_.connect_timeout), reason_,
                              server_is_absent_ ? "; start it, or correct --comch" : "",
                              had_another ? "; before: " : "", had_another ? logged_reason_ : ""));
    }
    if (!leaving() && !told_to_stop_) log_reason(level);
    const auto retry_at = std::min(deadline, engine_.run_time() + wait);
    while (!finished_ && !leaving() && engine_.run_time() < retry_at) {
      engine_.run_once(engine_.when(retry_at));
    }
  }
  return false;
}

/// Logs reason_ at `level` if it is new, or was logged kReasonInterval ago; else for debugging.
void Worker::log_reason(core::LogLevel level) {
  const bool is_due = reason_ != logged_reason_ || engine_.run_time() >= log_reason_at_;
  core::log(is_due ? level : core::LogLevel::debug, "{}{}", prefix_, reason_);
  if (!is_due) return;
  logged_reason_ = reason_;
  log_reason_at_ = engine_.run_time() + kReasonInterval;
}

/// One attempt: whether the channels are there. Until then a loss is one more reason to try again.
bool Worker::await_channels(core::RunTime deadline) {
  lost_ = told_to_stop_ = false;
  link_.emplace(engine_, settings_.server, hello(), most_memory_,
                static_cast<comch::WorkerSession::Observer&>(*this));
  while (!lost_ && !watchdog_ && !told_to_stop_ && !leaving() && engine_.run_time() < deadline) {
    engine_.run_once(std::min(engine_.when(deadline), link_->next_tick()));
    link_->tick(engine_.run_time());
  }
  if (failure_) std::rethrow_exception(failure_);
  if (!watchdog_ && told_to_stop_ && !lost_) link_->complete();
  return watchdog_.has_value();
}

void Worker::serve() {
  auto next_watch = engine_.run_time() + kWatchInterval;
  while (!lost_ && !told_to_stop_) {
    hang_.enter(kTurnTime);
    if (leaving() && !leave_by_) begin_to_leave();
    const auto deadline = leave_by_ ? std::min(*leave_by_, next_watch) : next_watch;
    engine_.run_once(std::min(engine_.when(deadline), link_->next_tick()));
    if (failure_) std::rethrow_exception(failure_);
    check_connections();
    const auto now = engine_.run_time();
    if (engine_.now() >= link_->next_tick()) link_->tick(now);
    if (now >= next_watch) {
      watch_over();
      next_watch = now + kWatchInterval;
    }
    if (leave_by_ && now >= *leave_by_) {
      core::log_warning("{}the server did not detach this worker in time", session_);
      return;
    }
  }
}

void Worker::begin_to_leave() {
  take_settings();
  leave_by_ = engine_.run_time() + settings_.shutdown_timeout;
  if (options_.shutdown_together) {
    link_->request_shutdown();
  } else {
    link_->request_detach();
  }
}

void Worker::watch_over() {
  for (const backend::Fault& fault : backend_->check()) {
    core::log_error("{}channel {} slot {}: refused {} bytes: over the channel's limit, or no batch",
                    session_, fault.channel, fault.slot, fault.length);
    counts_->faults.add();
  }
  counts_->stuck.set(watchdog_->look(engine_.run_time(), backend_->heartbeats()));
}

/// A link ends on its own thread, which has woken this one.
void Worker::check_connections() {
  for (const auto& attached : channels_) {
    if (lost_ || !attached.link) continue;
    if (const std::string* const reason = attached.link->failure()) on_lost(*reason, {});
  }
}

/// False: the back end does not stop.
bool Worker::detach() {
  hang_.enter(kDetachTime);
  if (!backend_->stop(kStopTime)) {
    core::log_error("{}the back end did not stop within {} s", session_,
                    core::to_seconds(kStopTime));
    return false;
  }
  if (told_to_stop_ && !lost_) link_->complete();
  link_.reset();
  watchdog_.reset();
  note_detached();
  counts_->describe({backend_->name(), ""});
  return true;
}

/// Destroys the rest, on the thread that made it.
void Worker::close() {
  hang_.enter(kDetachTime);
  link_.reset();
  watchdog_.reset();
  backend_.reset();
  note_detached();
}

void Worker::note_detached() {
  channels_.clear();
  serves_.store(false, std::memory_order_release);
  for (core::Counter* const gauge : {&counts_->attached, &counts_->channels, &counts_->stuck}) {
    gauge->set(0);
  }
  session_ = prefix_;
}

protocol::Hello Worker::hello() const {
  protocol::Hello hello;
  if (backend_->wakeup() == channel::Wakeup::doorbell) {
    hello.capabilities |= protocol::kRingsDoorbell;
  }
  if (options_.stands_by) hello.capabilities |= protocol::kStandsBy;
  if (replaces_) hello.capabilities |= protocol::kReplaces;
  if (data_path_.by_backend) hello.capabilities |= protocol::kWritesSlots;
  hello.max_channels = kMostChannels;
  hello.max_message_length = kernels::kMaxMessageLength;
  hello.backend = backend_->name();
  hello.services = services_.names();
  return hello;
}

void Worker::on_channels(std::vector<comch::AttachedChannel> channels) {
  serves_.store(true, std::memory_order_release);
  hang_.enter(kStartTime);
  session_ = fmt::format("{}session {}: ", prefix_, ++sessions_);
  try {
    channels_ = std::move(channels);
    std::vector<backend::Backend::ServedChannel> served;
    std::vector<std::string> services;
    std::vector<kernels::ChannelView> watched;
    for (const auto& attached : channels_) {
      served.push_back({attached.channel, attached.service});
      if (services.empty() || services.back() != attached.service) {
        services.push_back(attached.service);
      }
      watched.push_back(attached.channel->view());
    }
    backend_->count_in(counts_->times_of(served.size()));
    backend_->start(std::move(served));
    for (const auto& attached : channels_) {
      if (attached.link) attached.link->start(backend_->wakeup(), [this] { engine_.notify(); });
    }
    watchdog_.emplace(std::move(watched), options_.stuck_after, engine_.run_time(), session_);
    core::log_info("{}serving {} channels, service {}", session_, channels_.size(),
                   fmt::join(services, ", "));
    const std::string path = described_data_path();
    core::log_info("{}data path: {}", session_, path);
    counts_->describe({backend_->name(), path});
  } catch (...) {
    failure_ = std::current_exception();
    throw;
  }
}

std::string Worker::described_data_path() const {
  if (channels_.empty() || !channels_.front().link) return "shared memory with a local server";
  const channel::ResponseWriter* const writer = channels_.front().channel->writer();
  if (writer == nullptr) return "a thread sends responses (" + data_path_.why + ")";
  return "the back end posts responses (" + data_path_.why + "), " + writer->carrier;
}

void Worker::on_attached() {
  replaces_ = false;
  counts_->attaches.add();
  counts_->events.add(session_ + "attached to a server");
  counts_->attached.set(1);
  counts_->channels.set(channels_.size());
  core::log_info("{}attached to {}", session_, options_.comch);
}

void Worker::on_assignment(std::uint32_t channels) {
  if (leaving()) return;
  if (channels == 0) {
    core::log_info("{}standing by: no channel is assigned", session_);
  } else {
    core::log_info("{}{} of {} channels are assigned", session_, channels, channels_.size());
  }
}

void Worker::on_start_shutdown(protocol::ShutdownReason reason) {
  told_to_stop_ = true;
  finished_ = true;
  if (reason == protocol::ShutdownReason::released) {
    core::log_info("{}the server has detached this worker", session_);
  } else if (reason == protocol::ShutdownReason::together || options_.shutdown_together) {
    core::log_info("{}the server has ended: shutting down", session_);
  } else {
    core::log_info("{}the server is shutting down: waiting for the next one", session_);
    finished_ = false;
  }
}

void Worker::on_lost(const std::string& reason, std::optional<protocol::Refusal> refused) {
  lost_ = true;
  if (counts_->attached.value() != 0 && !told_to_stop_) {
    counts_->losses.add();
    counts_->events.add(session_ + "the server is gone: " + reason);
  }
  counts_->attached.set(0);
  if (failure_) return;  // the back end's; the server has been told
  const bool takes_it_later =
      refused == protocol::Refusal::busy || refused == protocol::Refusal::shutting_down;
  if (refused == protocol::Refusal::worker_stuck) {
    core::log_error("{}the server has dropped this worker: {}", session_, reason);
  } else if (refused == protocol::Refusal::bad_hello && !watchdog_ &&
             fall_back(data_path_, options_.data_path, reason)) {
    reason_ = data_path_.why;
  } else if (refused && !takes_it_later) {
    const bool is_for_clients =
        refused == protocol::Refusal::misplaced_message && channels_.empty();
    failure_ = std::make_exception_ptr(
        Error(ErrorCode::not_permitted,
              "this worker cannot attach: " + reason +
                  (is_for_clients ? "; --comch is the address of a port for clients" : "")));
  } else {
    // A data connection that broke says more than the end of the control connection that follows.
    const auto broken = std::ranges::find_if(channels_, [](const auto& attached) {
      return attached.link && attached.link->failure() != nullptr;
    });
    reason_ =
        (takes_it_later ? "the server cannot accept this worker yet: " : "the server is gone: ") +
        (broken != channels_.end() ? *broken->link->failure() : reason);
    // Before it has offered its channels, this is one more attempt that failed: connect() logs it.
    if (watchdog_) core::log_warning("{}{}", session_, reason_);
  }
}

}  // namespace offload::worker
