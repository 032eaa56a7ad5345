#include "apps/server/server.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <csignal>
#include <span>
#include <string>
#include <utility>

#include "apps/server/admission/reserved_descriptors.hpp"
#include "core/cpu.hpp"
#include "core/error.hpp"
#include "core/escape.hpp"
#include "core/fd.hpp"
#include "core/log.hpp"
#include "net/every_address.hpp"

namespace offload::server {
namespace {

/// Connections that wait to be accepted; the kernel's own limit may be lower.
constexpr int kListenBacklog = 4096;
constexpr core::Duration kKeepAlive = std::chrono::seconds(1);
/// The interval at which the control thread checks whether the I/O threads are drained.
constexpr core::Duration kDrainPoll = std::chrono::milliseconds(5);
/// Each worker needs separate memory.
constexpr std::size_t kMostWorkers = 16;
/// The minimum time without a response after which a worker is taken for stuck: on a busy machine,
/// a shorter one proves nothing.
constexpr core::Duration kLeastStuckTime = std::chrono::seconds(1);
/// The part of the shutdown's time that is reserved for the worker to stop; at most half of it.
constexpr core::Duration kWorkerShutdownTime = std::chrono::seconds(3);

/// Options that SIGHUP changes.
const std::vector<std::string> kMayChange{"log-level",       "sdk-log-level",    "worker-timeout",
                                          "request-timeout", "shutdown-timeout", "slow-request"};

/// Returns whether connections must note when bytes arrived.
bool needs_arrivals(const Options& options) {
  return options.metrics || !options.admin.empty() || options.slow_request != core::Duration{};
}

std::optional<net::TlsContext> make_tls(const Options& options) {
  if (options.tls_certificate.empty()) return std::nullopt;
  return net::TlsContext::server({options.tls_certificate, options.tls_key}, options.tls_client_ca,
                                 options.tls_client_crl);
}

/// Returns the files that SIGHUP rereads, except that of --config.
std::vector<std::string> reread_files(const Options& options) {
  std::vector<std::string> files = options.comch_security.key_files;
  files.insert(files.end(), {options.tls_certificate, options.tls_key, options.tls_client_ca,
                             options.tls_client_crl});
  return files;
}

/// Each port has equally many threads, in the order of the ports.
std::vector<std::string> service_of_each_thread(const Options& options) {
  const std::size_t threads = io_thread_cpus(options).size();
  std::vector<std::string> services;
  for (std::size_t i = 0; i < threads; ++i) {
    services.push_back(options.listens[i * options.listens.size() / threads].service);
  }
  return services;
}

}  // namespace

Server::Server(const Options& options, core::Signals& signals)
    : options_(options),
      files_(cli::digests_of(reread_files(options))),
      signals_(&signals),
      cpus_(io_thread_cpus(options)),
      metrics_(service_of_each_thread(options), options.stall_limit, needs_arrivals(options)),
      tls_(make_tls(options)),
      scheduler_(cpus_.size()) {
  reload_.add([this] {
    return cli::reread(options_, parse_options, kMayChange, [this](const Options& now) {
      options_.worker_timeout = now.worker_timeout;
      options_.request_timeout = now.request_timeout;
      options_.shutdown_timeout = now.shutdown_timeout;
      options_.slow_request = now.slow_request;
    });
  });
  reload_.add([this] {
    const cli::FileDigests files = cli::digests_of(reread_files(options_));
    const comch::Keyring readable(options_.comch_security.key_files);
    const auto apply = [this, files, tls = make_tls(options_)] {
      files_ = files;
      tls_ = tls;
      link_->address().keys->reload();
      note_newest_key();
    };
    return cli::Reload::Change{apply, cli::changed_files(files_, files)};
  });
  const int limit = core::raise_descriptor_limit();
  engine_.watch(signals_->fd(), EPOLLIN, *this);
  comch::ServerSession::Offer offer{{},
                                    options_.max_concurrent_messages,
                                    options_.max_message_length,
                                    options_.max_response_length,
                                    services_of(options_),
                                    kKeepAlive,
                                    kMostWorkers};
  for (const int cpu : cpus_) {
    offer.numa_nodes.push_back(cpu < 0 ? -1 : core::numa_node_of(cpu));
  }
  // From the start, although clients are accepted once there is a worker: on a port that is bound
  // and does not listen, a program of another user may listen and take the clients' requests.
  for (const Listen& listen : options_.listens) {
    listeners_.push_back(net::listen_tcp_at_each(net::resolve(options_.listen_address, listen.port),
                                                 kListenBacklog));
    for (const core::Fd& listener : listeners_.back()) {
      net::set_dead_peer_timeout(listener.get(), options_.clients.output_timeout);
      if (needs_arrivals(options_)) net::tell_arrivals(listener.get());
    }
  }
  link_.emplace(engine_,
                comch::make_address(options_.comch, options_.comch_security, options_.comch_path),
                std::move(offer), static_cast<comch::ServerSession::Observer&>(*this));
  note_newest_key();
  first_reserved_fd_ =
      limit - reserved_descriptors(limit, link_->address().local(), cpus_.size(),
                                   (options_.metrics ? 1 : 0) + (options_.admin.empty() ? 0 : 1));
  if (options_.metrics) routes_.emplace(*options_.metrics, "offload-server", metrics_);
  if (!options_.admin.empty()) {
    admin_.emplace(options_.admin, "offload-server", metrics_, commands_);
  }
  // Now, as where there is too little for a worker there never is one.
  require_room_for_clients(first_reserved_fd_);
  link_->require_channel_memory();
}

Server::~Server() {
  engine_.unwatch(signals_->fd(), *this);
}

void Server::run() {
  core::log_info("waiting for a worker on {}", link_->address().to_string());
  manager_.ready("waiting for the first worker");
  while (!shutdown_requested_ && !scheduler_.served()) turn(core::RunTime::max());
  if (!shutdown_requested_) open_for_clients();
  while (!shutdown_requested_) turn(worker_deadline_);
  shut_down();
}

void Server::turn(core::RunTime deadline) {
  auto wake_up = std::min({engine_.when(deadline), link_->next_tick(), manager_.next_tick()});
  if (routes_ || admin_) wake_up = std::min(wake_up, core::Clock::now() + kKeepAlive);
  if (acceptor_) wake_up = std::min(wake_up, acceptor_->next_tick());
  engine_.run_once(wake_up);
  for (const auto& thread : threads_) thread->check();
  take_failures();
  commands_.carry_out([this](const auto& command) { return run_command(command); });
  const auto now = core::Clock::now();
  manager_.tick(now);
  if (acceptor_) acceptor_->tick(now);
  if (now >= link_->next_tick()) link_->tick(engine_.run_time());
  let_go();
  if (engine_.run_time() >= worker_deadline_) {
    core::log_warning("no worker is attached: requests are refused until one attaches");
    worker_deadline_ = core::RunTime::max();
    set_expired(true);
    manager_.status("no worker is attached: requests are refused");
  }
  metrics_.note_turn(now, !threads_.empty() && scheduler_.served(), shutdown_requested_);
  if (acceptor_) metrics_.note_room(acceptor_->has_room());
}

void Server::open_for_clients() {
  const std::uint64_t memory =
      options_.clients.memory != 0 ? options_.clients.memory : suitable_client_memory();
  core::log_info("clients may use {} MiB for unfinished requests and responses", memory >> 20U);
  const auto client_memory =
      std::make_shared<ClientMemory>(memory, static_cast<std::uint32_t>(cpus_.size()));
  const auto retries = std::make_shared<RetryState>(cpus_.size());
  auto& first = early_.at(scheduler_.owners().front());
  const std::size_t each = cpus_.size() / options_.listens.size();
  for (std::uint32_t i = 0; i < cpus_.size(); ++i) {
    const IoThread::Config config{
        i,
        cpus_[i],
        {options_.max_message_length,
         kernels::response_length_of(options_.listens[i / each].service),
         options_.listens[i / each].service, options_.slow_request},
        std::max(options_.worker_timeout, kLeastStuckTime),
        options_.request_timeout,
        options_.spin,
        [this](WorkerFailure failure) {
          if (failures_.put([&](auto& all) { all.push_back(std::move(failure)); })) {
            engine_.notify();
          }
        },
        [this] { engine_.notify(); },
        options_.clients,
        client_memory,
        metrics_.events(),
        metrics_.thread(i),
        retries,
        waiting_};
    metrics_.thread(i)->is_shown = needs_arrivals(options_);  // SIGHUP may have changed it
    threads_.push_back(std::make_unique<IoThread>(config, first.channels[i]));
    if (tls_) threads_.back()->set_tls(*tls_);
    threads_.back()->start();
  }
  for (auto& [id, worker] : early_) {
    for (std::size_t i = 0; i < threads_.size() && id != first.id; ++i) {
      threads_[i]->add_worker(std::move(worker.channels[i]));
    }
  }
  early_.clear();
  deal_channels();
  open_ports();
}

void Server::open_ports() {
  require_room_for_clients(first_reserved_fd_);
  const std::size_t each = threads_.size() / listeners_.size();
  std::vector<Acceptor::Port> ports;
  for (std::size_t i = 0; i < listeners_.size(); ++i) {
    for (core::Fd& listener : listeners_[i]) {
      if (needs_arrivals(options_)) net::tell_arrivals(listener.get());
      core::log_info("listening on {} with {} threads, service {}{}",
                     net::local_address(listener.get()).to_string(), each,
                     options_.listens[i].service, tls_ ? ", TLS" : "");
      ports.push_back({std::move(listener), std::span(threads_).subspan(i * each, each)});
    }
  }
  acceptor_.emplace(engine_,
                    Acceptor::Config{std::move(ports), first_reserved_fd_, options_.clients,
                                     tls_.has_value(), waiting_, options_.proxies});
}

// ---- Workers

/// Tells each I/O thread which worker to use, and the workers how many channels they serve.
void Server::deal_channels() {
  if (link_->shutting_down()) return;
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    threads_[i]->select_worker(scheduler_.owners()[i]);
  }
  for (const comch::WorkerId worker : scheduler_.workers()) {
    const std::uint32_t count = scheduler_.count_of(worker);
    const auto [told, is_new] = assigned_.try_emplace(worker, count);
    if (!is_new && std::exchange(told->second, count) == count) continue;
    core::log_info("worker {} serves {} of {} channels", link_->name_of(worker), count,
                   cpus_.size());
    link_->assign(worker, count);
    metrics_.note_serving(worker, count);
  }
}

/// The first key is the newest, docs/reference/security.md.
void Server::note_newest_key() {
  const comch::Address& address = link_->address();
  const bool has_key = address.takes_key() && !address.keys->empty();
  metrics_.note_newest_key(has_key ? comch::fingerprint(address.keys->keys().front()) : "");
}

void Server::on_worker_attached(comch::AttachedWorker worker) {
  scheduler_.add(worker.id, worker.stands_by, worker.replaces);
  metrics_.note_attached(worker, link_->name_of(worker.id));
  if (threads_.empty()) {
    early_.emplace(worker.id, std::move(worker));
  } else {
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      threads_[i]->add_worker(std::move(worker.channels[i]));
    }
  }
  deal_channels();
  if (!scheduler_.served()) return;
  worker_deadline_ = core::RunTime::max();
  set_expired(false);
  manager_.status("serving");
}

void Server::on_worker_leaving(comch::WorkerId worker) {
  if (options_.shutdown_together) {
    core::log_info("a worker is shutting down: shutting down with it");
    shutdown_requested_ = true;
    return;
  }
  scheduler_.retire(worker);
  deal_channels();
  if (!scheduler_.served()) start_waiting(options_.worker_timeout);
}

void Server::on_worker_lost(comch::WorkerId worker, comch::WorkerLoss loss) {
  assigned_.erase(worker);
  released_.erase(worker);
  early_.erase(worker);
  scheduler_.remove(worker);
  metrics_.note_lost(worker);
  for (const auto& thread : threads_) thread->remove_worker(worker, loss);
  deal_channels();
  if (!scheduler_.served()) start_waiting(options_.worker_timeout);
}

/// There is no worker: requests wait for this time, and are refused after it.
void Server::start_waiting(core::Duration patience) {
  if (expired_) return;
  worker_deadline_ = std::min(worker_deadline_, engine_.run_time() + patience);
  manager_.status("no worker is attached: requests wait");
}

void Server::set_expired(bool expired) {
  expired_ = expired;
  for (const auto& thread : threads_) thread->set_expired(expired);
}

/// Handles the reports of I/O threads about workers.
void Server::take_failures() {
  const auto failures = failures_.take();
  if (!failures) return;
  for (const WorkerFailure& failure : *failures) {
    if (!failure.stuck) {
      link_->drop(failure.worker, failure.reason);
      continue;
    }
    if (!assigned_.contains(failure.worker)) continue;  // it has gone since: requests wait
    link_->refuse(failure.worker, protocol::Refusal::worker_stuck, failure.reason);
    // Requests have waited for --worker-timeout by now.
    if (!scheduler_.served()) start_waiting({});
  }
}

/// Workers that leave may stop once no I/O thread has requests with them.
void Server::let_go() {
  for (const comch::WorkerId worker : scheduler_.leaving()) {
    const bool busy = std::ranges::any_of(
        threads_, [&](const auto& thread) { return thread->serving() == worker; });
    if (!busy && released_.insert(worker).second) link_->release(worker);
  }
}

void Server::on_events(std::uint32_t) {
  const int signal = signals_->take();
  if (signal == 0) return;
  if (signal == SIGHUP) return (void)reload();
  core::log_info("{}: shutting down; a second signal ends the server at once",
                 signal == SIGINT ? "SIGINT" : "SIGTERM");
  shutdown_requested_ = true;
}

/// Options that cannot be reread stay as they are; after an error, all do.
bool Server::reload() {
  metrics_.note_reload();
  const core::Duration before = options_.worker_timeout;
  const bool had_arrivals = needs_arrivals(options_);
  if (!reload_.run()) return false;
  if (!had_arrivals && needs_arrivals(options_) && acceptor_) acceptor_->tell_arrivals();
  // A wait for a worker that is under way takes the new limit, too.
  if (worker_deadline_ != core::RunTime::max()) {
    worker_deadline_ += options_.worker_timeout - before;
  }
  for (const auto& thread : threads_) {
    thread->set_timeouts(std::max(options_.worker_timeout, kLeastStuckTime),
                         options_.request_timeout);
    thread->set_slow_request(options_.slow_request);
    if (tls_) thread->set_tls(*tls_);
  }
  return true;
}

// ---- Commands

telemetry::CommandResult Server::run_command(const telemetry::AdminCommand& command) {
  using Status = telemetry::CommandResult::Status;
  metrics_.note_command();
  if (command.name == "log-level") return telemetry::set_log_level(command.argument);
  if (command.name == "reload") {
    if (reload()) return {Status::done, "settings and keys were reread"};
    return {Status::refused, "nothing was changed: the log has the reason"};
  }
  if (command.name == "drain" || command.name == "undrain") {
    const bool drained = command.name == "drain";
    metrics_.note_drained(drained);
    return {Status::done, drained ? "/readyz returns 503 until undrain; clients are still served"
                                  : "/readyz depends on the workers again"};
  }
  if (command.name == "detach") return detach(command.argument);
  return {Status::unknown, "the commands are: log-level, reload, drain, undrain, detach"};
}

/// Detaches the worker as if it had requested that.
telemetry::CommandResult Server::detach(const std::string& worker) {
  using Status = telemetry::CommandResult::Status;
  for (const comch::WorkerId id : scheduler_.workers()) {
    if (worker != std::to_string(id)) continue;
    scheduler_.retire(id);
    deal_channels();
    if (!scheduler_.served()) start_waiting(options_.worker_timeout);
    return {Status::done, "worker " + worker + " detaches when it has answered all"};
  }
  if (worker.empty()) return {Status::refused, "detach needs a worker's number (see status)"};
  return {Status::refused, "there is no worker '" + core::escaped(worker) + "'"};
}

void Server::shut_down() {
  metrics_.note_turn(core::Clock::now(), scheduler_.served(), /*draining=*/true);
  manager_.stopping("answering the requests that were read");
  const auto deadline = engine_.run_time() + options_.shutdown_timeout;
  const auto drain_deadline =
      deadline - std::min(kWorkerShutdownTime, options_.shutdown_timeout / 2);
  acceptor_.reset();  // before the threads are drained: they get no clients after that
  listeners_.clear();
  for (const auto& thread : threads_) thread->drain();
  const auto drained = [&] {
    return std::ranges::all_of(threads_, [](const auto& thread) { return thread->drained(); });
  };
  while (!drained() && engine_.run_time() < drain_deadline) {
    turn(std::min(drain_deadline, engine_.run_time() + kDrainPoll));
  }
  if (!drained()) core::log_warning("not all clients could be answered in time");
  for (const auto& thread : threads_) thread->stop();

  link_->start_shutdown(options_.shutdown_together ? protocol::ShutdownReason::together
                                                   : protocol::ShutdownReason::server_leaves);
  while (!link_->done() && engine_.run_time() < deadline) turn(deadline);
  if (!link_->done()) core::log_warning("not all workers confirmed that they have stopped");
  commands_.close();
}

void check_files(const Options& options) {
  (void)make_tls(options);
  (void)comch::Keyring(options.comch_security.key_files);
}

}  // namespace offload::server
