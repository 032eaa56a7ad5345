#pragma once

#include <array>
#include <optional>
#include <set>
#include <vector>

#include "comch/session/server_session.hpp"
#include "tests/fuzz/state/link/control_peer.hpp"
#include "tests/fuzz/state/link/fake_network.hpp"
#include "tests/fuzz/state/virtual_time.hpp"

namespace offload::fuzz {

/// The server's session, and up to four connections to it that the script plays: workers, and over
/// a network their data connections. The steps are in link_run.hpp.
class ServerSessionBench final : comch::ServerSession::Observer {
 public:
  ServerSessionBench(Script& script, const comch::Address& address, VirtualTime& time);
  ~ServerSessionBench();
  ServerSessionBench(const ServerSessionBench&) = delete;
  ServerSessionBench& operator=(const ServerSessionBench&) = delete;

  void run();

 private:
  struct Worker {
    ControlPeer peer;
    std::uint32_t steps = 0;    ///< of a good worker, that it has done
    std::uint32_t offered = 0;  ///< channels
    bool welcomed = false;
    bool refused = false;
  };

  void on_worker_attached(comch::AttachedWorker worker) override;
  void on_worker_leaving(comch::WorkerId worker) override;
  void on_worker_lost(comch::WorkerId worker, comch::WorkerLoss loss) override;
  void on_shutdown_requested() override {}
  void on_user_message(comch::WorkerId worker, std::span<const std::byte> bytes) override;

  void step();
  void connect(std::optional<Worker>& worker);
  void read(std::optional<Worker>& worker);
  void take(Worker& worker, const comch::ControlMessage& message);
  void do_right(Worker& worker, std::uint32_t step);
  void call();
  void turn();
  void close_all();
  void check_next_worker();

  Script* script_;
  VirtualTime* time_;
  bool packets_;
  comch::Address address_;
  progress::Engine engine_;
  std::optional<comch::ServerSession> session_;
  std::array<std::optional<Worker>, 4> workers_;
  protocol::Token token_{};  ///< the last that was offered
  std::vector<protocol::Token> tokens_;
  std::set<comch::WorkerId> attached_;
  std::set<comch::WorkerId> ever_;  ///< attached
};

}  // namespace offload::fuzz
