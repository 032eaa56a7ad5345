#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "apps/server/client_table.hpp"
#include "apps/server/view/thread_metrics.hpp"
#include "core/clock.hpp"
#include "core/intrusive_list.hpp"
#include "core/log.hpp"
#include "net/source/source_queue.hpp"
#include "net/stream.hpp"
#include "progress/engine.hpp"

namespace offload::server {

/// The clients of an I/O thread whose TLS handshake is under way. A step of a handshake takes the
/// processor for up to a millisecond, so one is done a turn: the other clients are served in
/// between, however many come. Sources take turns, so a client waits for one step of each source
/// that has some ready, not for all that a flood has sent. If there are too many, the source that
/// has the most loses its own. A handshake that fails or takes too long costs its client alone. One
/// thread.
class Handshakes {
 public:
  /// Takes the connection of a client whose handshake is done.
  using OnDone = std::function<void(net::Stream, Admission)>;

  static constexpr core::Duration kTime = std::chrono::seconds(10);
  /// Memory of a client here, bytes: a connection of OpenSSL 3.0 in the midst of a handshake took
  /// 45.7 KiB of resident memory, measured over 1,000 of them.
  static constexpr std::size_t kMemory = std::size_t{48} * 1024;

  /// `engine` and `metrics` outlive it. A client whose handshake takes longer than `time` is
  /// closed. `most`: clients at a time.
  Handshakes(progress::Engine& engine, ThreadMetrics& metrics, OnDone on_done,
             core::Duration time = kTime,
             std::size_t most = std::numeric_limits<std::size_t>::max());

  /// For clients that come from now on.
  void set_context(net::TlsContext context) { context_.emplace(std::move(context)); }
  /// Returns whether clients speak TLS.
  [[nodiscard]] bool wanted() const noexcept { return context_.has_value(); }

  /// Precondition: wanted(). Throws Error; the socket is closed then.
  void add(core::Fd socket, Admission admission = {});
  /// Goes on with one client, and closes those that are late. Returns whether there was work.
  bool turn() { return !clients_.empty() && (close_late() || step()); }
  /// When turn() is due though no client is ready; RunTime::max(): at no time.
  [[nodiscard]] core::RunTime deadline() noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return clients_.size(); }
  /// Memory that they take, bytes.
  [[nodiscard]] std::size_t held() const noexcept { return clients_.size() * kMemory; }
  void clear() noexcept { clients_.clear(); }

 private:
  struct Ready;
  struct Due;
  /// A client here: its handshake is under way, or it failed and the client is given time to read
  /// why.
  struct Client final : progress::EventHandler, core::ListNode<Ready>, core::ListNode<Due> {
    Client(core::Fd socket, Admission admission, Handshakes& owner);
    ~Client();
    void on_events(std::uint32_t epoll_events) override;

    Handshakes* owner;
    net::Stream stream;
    Admission admission;
    core::RunTime deadline;
    bool failed = false;
    std::size_t index = 0;  ///< in clients_
  };

  bool close_late();
  bool step();
  void go_on(Client& client);
  void make_ready(Client& client) noexcept;
  void make_room();
  void give_up(Client& client, core::Duration time) noexcept;
  void note_failure(const Client& client, HandshakeFailure kind, const std::string& reason);
  std::unique_ptr<Client> remove(Client& client);

  progress::Engine* engine_;
  ThreadMetrics* metrics_;
  OnDone on_done_;
  core::Duration time_;
  std::size_t most_;
  std::optional<net::TlsContext> context_;
  net::SourceQueue<Client, Ready> ready_;
  core::IntrusiveList<Client, Due> under_way_;  ///< the first to be late in front
  core::IntrusiveList<Client, Due> failed_;     ///< the same
  std::vector<std::unique_ptr<Client>> clients_;
  core::RateLimit failure_log_;
  core::RateLimit limit_log_;
};

}  // namespace offload::server
