#include "apps/server/server.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <utility>

#include "core/cpu.hpp"
#include "core/fd.hpp"
#include "core/log.hpp"
#include "net/socket.hpp"

namespace offload::server {
namespace {

/// Connections that wait to be accepted; the kernel's own limit may be lower.
constexpr int kListenBacklog = 4096;
constexpr core::Duration kKeepAlive = std::chrono::seconds(1);
/// How often the control thread looks whether the I/O threads are drained.
constexpr core::Duration kDrainPoll = std::chrono::milliseconds(5);
/// What of the shutdown's time is kept for the worker to stop, at most; at most half of it, too.
constexpr core::Duration kWorkerShutdownTime = std::chrono::seconds(3);

/// Descriptors that clients cannot take up: a worker that attaches needs some, and over a network
/// some for each channel (a connection over RDMA has as many).
constexpr int kReservedDescriptors = 16;
constexpr int kReservedAChannel = 4;

std::optional<net::TlsContext> make_tls(const Options& options) {
  if (options.tls_certificate.empty()) return std::nullopt;
  return net::TlsContext::server({options.tls_certificate, options.tls_key}, options.tls_client_ca);
}

/// Of `limit`; clients have half of them at least.
int reserved_descriptors(int limit, bool local, std::size_t channels) {
  const int wanted =
      kReservedDescriptors + (local ? 0 : kReservedAChannel * static_cast<int>(channels));
  return std::min(wanted, limit / 2);
}

}  // namespace

Server::Server(const Options& options, core::ShutdownSignals& signals)
    : options_(options), signals_(&signals), cpus_(options.cpus), tls_(make_tls(options)) {
  if (cpus_.empty()) cpus_.assign(options_.threads, -1);
  const int limit = core::raise_descriptor_limit();
  engine_.watch(signals_->fd(), EPOLLIN, *this);
  comch::ServerSession::Offer offer{{}, options_.max_message_length, options_.service, kKeepAlive};
  for (std::size_t i = 0; i < cpus_.size(); ++i) {
    const int node = cpus_[i] < 0 ? -1 : core::numa_node_of(cpus_[i]);
    channels_.push_back(std::make_unique<channel::ChannelMemory>(
        static_cast<std::uint32_t>(i), options_.max_concurrent_messages,
        options_.max_message_length, node));
    offer.channels.push_back(channels_.back().get());
  }
  // Bound now, so that a wrong address or a taken port shows at once, and listening later.
  listener_ =
      net::bind_tcp(net::resolve(options_.listen_address, options_.listen_port, true).front());
  net::set_dead_peer_timeout(listener_.get(), options_.clients.output_timeout);
  link_.emplace(engine_, comch::parse_with_key(options_.comch, options_.comch_key_file),
                std::move(offer), static_cast<comch::ServerSession::Observer&>(*this));
  first_reserved_fd_ =
      limit - reserved_descriptors(limit, link_->address().local(), channels_.size());
}

Server::~Server() {
  engine_.unwatch(signals_->fd(), *this);
}

void Server::run() {
  core::log_info("waiting for a worker on {}", link_->address().to_string());
  while (!shutdown_requested_ && !worker_.attached()) turn(core::TimePoint::max());
  if (!shutdown_requested_) open_for_clients();
  while (!shutdown_requested_) turn(worker_deadline_);
  shut_down();
}

void Server::turn(core::TimePoint deadline) {
  deadline = std::min(deadline, link_->next_tick());
  if (acceptor_) deadline = std::min(deadline, acceptor_->next_tick());
  engine_.run_once(deadline);
  if (const auto loss = loss_.take(); loss && worker_.attached()) link_->drop_worker(*loss);
  const auto now = core::Clock::now();
  if (acceptor_) acceptor_->tick(now);
  if (now >= link_->next_tick()) link_->tick(now);
  if (now >= worker_deadline_ && !worker_.attached() && !worker_.expired) {
    core::log_warning("no worker for {} s: requests are refused until one attaches",
                      core::to_seconds(options_.worker_timeout));
    tell_threads({channel::Wakeup::none, true});
    worker_deadline_ = core::TimePoint::max();
  }
}

void Server::open_for_clients() {
  const auto address = net::local_address(listener_.get());
  // Fails where another has come to listen there while this one waited for its worker.
  net::start_listening(listener_.get(), kListenBacklog);
  const auto client_memory = std::make_shared<ClientMemory>(
      options_.clients.memory != 0 ? options_.clients.memory : suitable_client_memory(),
      static_cast<std::uint32_t>(channels_.size()));
  for (std::uint32_t i = 0; i < channels_.size(); ++i) {
    const IoThread::Config config{i,
                                  cpus_[i],
                                  options_.max_message_length,
                                  options_.spin,
                                  [this](const std::string& reason) { on_connection_lost(reason); },
                                  options_.clients,
                                  client_memory};
    threads_.push_back(std::make_unique<IoThread>(config, *channels_[i]));
    if (tls_) threads_.back()->set_tls(*tls_);
    threads_.back()->start();
  }
  tell_threads(worker_);
  acceptor_.emplace(engine_,
                    Acceptor::Config{std::move(listener_), first_reserved_fd_, options_.clients},
                    threads_);
  core::log_info("listening on {} with {} threads, service {}{}", address.to_string(),
                 threads_.size(), options_.service, tls_ ? ", TLS" : "");
}

void Server::reload_tls() {
  try {
    tls_ = make_tls(options_);
  } catch (const core::Error& error) {
    return core::log_error("the files for TLS stay as they were: {}", error.what());
  }
  if (!tls_) return;
  for (const auto& thread : threads_) thread->set_tls(*tls_);
  core::log_info("the certificate and its key were read again");
}

void Server::tell_threads(WorkerState state) {
  worker_ = state;
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    threads_[i]->set_worker(state, endpoints_.empty() ? nullptr : std::move(endpoints_[i]));
  }
  if (!threads_.empty()) endpoints_.clear();
}

void Server::on_worker_attached(channel::Wakeup wakeup,
                                std::vector<std::unique_ptr<comch::DataEndpoint>> endpoints) {
  core::log_info("the worker serves all channels");
  worker_deadline_ = core::TimePoint::max();
  endpoints_ = std::move(endpoints);
  (void)loss_.take();  // of the worker before
  tell_threads({wakeup});
}

/// On an I/O thread.
void Server::on_connection_lost(const std::string& reason) {
  if (loss_.put([&](std::string& loss) { loss = reason; })) engine_.notify();
}

void Server::on_worker_lost() {
  endpoints_.clear();
  worker_deadline_ = core::Clock::now() + options_.worker_timeout;
  tell_threads({});
}

void Server::on_shutdown_requested() {
  shutdown_requested_ = true;
}

void Server::on_events(std::uint32_t) {
  const int signal = signals_->take();
  if (signal == 0) return;
  core::log_info("{}: shutting down; a second signal ends the server at once",
                 signal == SIGINT ? "SIGINT" : "SIGTERM");
  shutdown_requested_ = true;
}

void Server::shut_down() {
  const auto deadline = core::Clock::now() + options_.shutdown_timeout;
  const auto drain_deadline =
      deadline - std::min(kWorkerShutdownTime, options_.shutdown_timeout / 2);
  acceptor_.reset();  // before the threads are drained: they are given nobody after that
  for (const auto& thread : threads_) thread->drain();
  const auto drained = [&] {
    return std::all_of(threads_.begin(), threads_.end(),
                       [](const auto& thread) { return thread->drained(); });
  };
  while (!drained() && core::Clock::now() < drain_deadline) {
    turn(std::min(drain_deadline, core::Clock::now() + kDrainPoll));
  }
  if (!drained()) core::log_warning("not all clients could be answered in time");
  for (const auto& thread : threads_) thread->stop();

  link_->start_shutdown();
  while (!link_->done() && core::Clock::now() < deadline) turn(deadline);
  if (!link_->done()) core::log_warning("the worker did not say that it has stopped");
}

}  // namespace offload::server
