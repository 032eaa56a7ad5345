#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/server/options.hpp"
#include "tests/simulation/client.hpp"
#include "tests/simulation/fleet.hpp"
#include "tests/simulation/peer.hpp"

namespace offload::simulation {

/// A bound of the server that a seed makes tight, so that clients can exceed it.
enum class Tight : std::uint8_t {
  nothing,
  memory,         ///< --client-memory, with short messages
  long_memory,    ///< the same, with long ones
  idle_time,      ///< --idle-timeout
  output_time,    ///< --client-timeout
  clients,        ///< --max-clients
  of_an_address,  ///< --max-clients-per-address
  descriptors     ///< of the server's process, over tcp
};

/// A server, workers and their known state: drawn from the kernel's numbers.
class Scene {
 public:
  Scene(Kernel& world, unsigned faults);

  void start_server();
  /// Freezes the server for that long, alone or with the workers that run.
  void pause(Time time, bool with_workers);
  /// Kills the server, as kill -9 does.
  void kill_server();
  /// Ends the server, as SIGTERM does; returns whether it has ended within `limit`.
  bool end_server(Time limit);
  /// Reloads the server's configuration, as SIGHUP does, with these time limits in its file.
  void reload(Time worker_timeout, const std::string& request_timeout);
  [[nodiscard]] bool serves() const;
  bool await_service();
  bool await(const std::function<bool()>& holds, Time limit);

  /// Reduces the workers to one, which serves and is not disturbed.
  Fleet::Worker& one_worker();
  /// Adds a worker, which has attached on return.
  Fleet::Worker& one_more(bool stands_by, bool replaces = false);
  /// Waits until all clients may connect again after a request that was alone with lost workers.
  void await_address() {
    if (fleet.may_end(fleet.now())) kernel.sleep(Fleet::kAddressWaits);
  }
  /// Returns whether a new connection's requests are all answered within `limit`.
  bool answers(Time limit, std::uint64_t count = 3);

  [[nodiscard]] std::uint64_t length() { return kernel.random.below(std::min(load.longest, 40U)); }
  void fail(const std::string& what) { kernel.fail(what); }

  Kernel& kernel;
  unsigned faults;
  Tight tight = Tight::nothing;
  server::Options server{};
  Process* process = nullptr;  ///< the server's
  Fleet fleet;
  Load load{};
  std::string clients{};
  Time down_since = 0;  ///< 0: the server is not down on purpose

 private:
  void draw_tight();
  void set_arguments(Time worker_timeout, const std::string& request_timeout);

  std::vector<std::string> arguments_{};
  std::vector<const char*> pointers_{};
};

/// Returns the options of the fleet's workers.
worker::Options worker_options(const server::Options& server);

}  // namespace offload::simulation
