#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/server/acceptor.hpp"
#include "apps/server/io_thread.hpp"
#include "apps/server/mailbox.hpp"
#include "apps/server/options.hpp"
#include "channel/channel_memory.hpp"
#include "comch/session/server_session.hpp"
#include "core/signals.hpp"
#include "net/tls/context.hpp"
#include "progress/engine.hpp"

namespace offload::server {

/// The program: its control thread, which calls run(), and its I/O threads.
///
/// First the control phase, until a worker serves all channels; then the TCP phase, in which
/// workers may go and come; then the shutdown: clients are drained, the worker is told.
class Server final : comch::ServerSession::Observer, progress::EventHandler {
 public:
  /// Makes the channels and listens for a worker. Throws Error.
  Server(const Options& options, core::ShutdownSignals& signals);
  ~Server();

  /// Runs until a signal or the worker ends it. Throws Error.
  void run();

  /// Reads the files of --tls-certificate, --tls-key and --tls-client-ca again, for clients that
  /// come from now on. Files that are wrong change nothing and are logged. run()'s thread.
  void reload_tls();

 private:
  void on_worker_attached(channel::Wakeup wakeup,
                          std::vector<std::unique_ptr<comch::DataEndpoint>> lines) override;
  void on_worker_lost() override;
  void on_shutdown_requested() override;
  void on_events(std::uint32_t epoll_events) override;

  void turn(core::TimePoint deadline);
  void open_for_clients();
  void tell_threads(WorkerState state);
  void on_connection_lost(const std::string& reason);
  void shut_down();

  Options options_;
  core::ShutdownSignals* signals_;
  std::vector<int> cpus_;  ///< of the I/O threads; -1: anywhere
  int first_reserved_fd_ = 0;
  progress::Engine engine_;
  std::optional<net::TlsContext> tls_;  ///< of the clients' port
  core::Fd listener_;                   ///< the acceptor's until that is there
  std::vector<std::unique_ptr<channel::ChannelMemory>> channels_;
  std::optional<comch::ServerSession> link_;
  std::vector<std::unique_ptr<IoThread>> threads_;
  std::optional<Acceptor> acceptor_;  ///< in the TCP phase
  /// To the worker, until the I/O threads have them.
  std::vector<std::unique_ptr<comch::DataEndpoint>> endpoints_;
  Mailbox<std::string>
      loss_;  ///< why a data connection to the worker has ended, from its I/O thread
  WorkerState worker_;
  core::TimePoint worker_deadline_ = core::TimePoint::max();
  bool shutdown_requested_ = false;
};

}  // namespace offload::server
