#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "apps/server/acceptor.hpp"
#include "apps/server/channel_scheduler.hpp"
#include "apps/server/io_thread.hpp"
#include "apps/server/mailbox.hpp"
#include "apps/server/options.hpp"
#include "apps/server/view/server_metrics.hpp"
#include "cli/reload.hpp"
#include "comch/session/server_session.hpp"
#include "core/service_manager.hpp"
#include "core/signals.hpp"
#include "net/tls/context.hpp"
#include "progress/engine.hpp"
#include "telemetry/routes.hpp"

namespace offload::server {

/// The program: its control thread, which calls run(), and its I/O threads.
///
/// First the control phase, until a worker serves; then the TCP phase, in which workers may come
/// and go; then the shutdown: clients are drained, the workers are told.
class Server final : comch::ServerSession::Observer, progress::EventHandler {
 public:
  /// Makes the channels and listens for a worker. Throws Error.
  Server(const Options& options, core::Signals& signals);
  ~Server();

  /// Runs until a signal or the worker ends it. Throws Error.
  void run();

 private:
  void on_worker_attached(comch::AttachedWorker worker) override;
  void on_worker_leaving(comch::WorkerId worker) override;
  void on_worker_lost(comch::WorkerId worker, comch::WorkerLoss loss) override;
  void on_shutdown_requested() override { shutdown_requested_ = true; }
  void on_events(std::uint32_t epoll_events) override;

  void turn(core::RunTime deadline);
  void open_for_clients();
  void open_ports();
  void deal_channels();
  void note_newest_key();
  void start_waiting(core::Duration patience);
  void set_expired(bool expired);
  void take_failures();
  void let_go();
  bool reload();
  telemetry::CommandResult run_command(const telemetry::AdminCommand& command);
  telemetry::CommandResult detach(const std::string& worker);
  void shut_down();

  Options options_;
  cli::Reload reload_;      ///< at SIGHUP
  cli::FileDigests files_;  ///< that SIGHUP rereads
  core::Signals* signals_;
  core::ServiceManager manager_;
  std::vector<int> cpus_;  ///< of the I/O threads, those of a port side by side; -1: anywhere
  int first_reserved_fd_ = 0;
  ServerMetrics metrics_;
  progress::Engine engine_{{}, &metrics_.control()};
  std::optional<net::TlsContext> tls_;  ///< of the clients' port
  /// By port, one for each address; the acceptor's once that is there.
  std::vector<std::vector<core::Fd>> listeners_;
  ChannelScheduler scheduler_;
  std::map<comch::WorkerId, std::uint32_t> assigned_;  ///< channels, as each worker was told
  std::set<comch::WorkerId> released_;                 ///< were told to stop
  /// The workers that attached before there were I/O threads.
  std::map<comch::WorkerId, comch::AttachedWorker> early_;
  std::optional<comch::ServerSession> link_;
  std::vector<std::unique_ptr<IoThread>> threads_;
  std::shared_ptr<WaitingAddresses> waiting_ = std::make_shared<WaitingAddresses>();
  std::optional<Acceptor> acceptor_;              ///< in the TCP phase
  Mailbox<std::vector<WorkerFailure>> failures_;  ///< from the I/O threads
  bool expired_ = false;  ///< no worker for --worker-timeout: requests are refused
  core::RunTime worker_deadline_ = core::RunTime::max();
  bool shutdown_requested_ = false;
  telemetry::CommandQueue commands_{[this] { engine_.notify(); }};
  std::optional<telemetry::Routes> admin_;
  std::optional<telemetry::Routes> routes_;  ///< ends before the objects that it reads
};

/// Reads the files that the options name, and keeps nothing of them. Throws Error.
void check_files(const Options& options);

}  // namespace offload::server
