#pragma once

#include <deque>
#include <optional>

#include "comch/session/worker_session.hpp"
#include "tests/fuzz/state/link/control_peer.hpp"
#include "tests/fuzz/state/link/fake_network.hpp"
#include "tests/fuzz/state/virtual_time.hpp"

namespace offload::fuzz {

/// The worker's session, whose server the script plays, with its data connections over a network.
/// The steps are in link_run.hpp.
class WorkerSessionBench final : comch::WorkerSession::Observer {
 public:
  WorkerSessionBench(Script& script, const comch::Address& address, VirtualTime& time);
  ~WorkerSessionBench();
  /// Prepares the state that all runs share: the listener, if the address is a Unix socket.
  static void prepare(const comch::Address& address);
  WorkerSessionBench(const WorkerSessionBench&) = delete;
  WorkerSessionBench& operator=(const WorkerSessionBench&) = delete;

  void run();

 private:
  enum class Stage { greeted, serving, attached, lost };

  void on_channels(std::vector<comch::AttachedChannel> channels) override;
  void on_attached() override;
  void on_assignment(std::uint32_t channels) override;
  void on_user_message(std::span<const std::byte> bytes) override;
  void on_start_shutdown(protocol::ShutdownReason reason) override;
  void on_lost(const std::string& reason, std::optional<protocol::Refusal> refused) override;

  void step(bool waits);
  [[nodiscard]] ControlPeer* peer(std::size_t index);
  void read(ControlPeer& peer);
  void do_right(ControlPeer& peer, std::uint32_t step);
  void send_channel(ControlPeer& peer, std::uint32_t index, std::span<const int> fds);
  void call();
  void turn();
  void check_rest();

  Script* script_;
  VirtualTime* time_;
  bool packets_;
  progress::Engine engine_;
  std::deque<ControlPeer> peers_;  ///< the control connection, and behind it those of channels
  std::vector<comch::AttachedChannel> channels_;
  Stage stage_ = Stage::greeted;
  std::uint32_t assigned_ = 0;
  std::uint32_t steps_done_ = 0;  ///< of a good server
  bool hello_seen_ = false;
  bool misaligned_ = false;
  std::optional<comch::WorkerSession> session_;
};

}  // namespace offload::fuzz
