#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/server/admission/client_counts.hpp"
#include "apps/server/admission/client_limits.hpp"
#include "apps/server/admission/client_memory.hpp"
#include "apps/server/admission/deadline_list.hpp"
#include "apps/server/admission/waiting_addresses.hpp"
#include "apps/server/client_connection.hpp"
#include "apps/server/fair_queue.hpp"
#include "apps/server/view/thread_metrics.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "memory/block_cache.hpp"
#include "net/peer_address.hpp"
#include "net/stream.hpp"
#include "progress/engine.hpp"
#include "protocol/frame.hpp"

namespace offload::server {

class ClientTable;
// The deadlines that a client can have, each the tag of a DeadlineList.
struct Lingering;
struct UnfinishedFrame;
struct UnsentOutput;
struct Idle;

/// How a client was admitted.
struct Admission {
  net::PeerAddress address;
  ClientCounts::Place place;
  /// In the order in which they came, from 1 on: the log's lines about it carry it.
  std::uint64_t number = 0;
};

/// A connection in a ClientTable, with its places there.
class Client final : public FairQueueEntry,
                     public Deadline<Lingering>,
                     public Deadline<UnfinishedFrame>,
                     public Deadline<UnsentOutput>,
                     public Deadline<Idle>,
                     ConnectionOwner {
 public:
  Client(net::Stream stream, Admission admission, progress::Engine& engine,
         memory::BlockCache& buffers, std::size_t block_size, ClientTable& table)
      : table_(&table),
        admission_(std::move(admission)),
        counts_for_tls_(stream.is_tls()),
        connection_(std::move(stream), engine, buffers, block_size, *this) {}

  [[nodiscard]] ClientConnection& connection() noexcept { return connection_; }
  [[nodiscard]] const ClientConnection& connection() const noexcept { return connection_; }
  [[nodiscard]] const Admission& admission() const noexcept { return admission_; }

  /// Returns whether the client lacks only room for requests. A client that has hung up is read
  /// without room: an end of file does not wait for it.
  [[nodiscard]] bool waits_for_room() const noexcept {
    return connection_.takes_frames() &&
           (holds_frames_ || (connection_.wants_to_read() && !connection_.hung_up()));
  }
  /// Returns whether its frames must wait for its next turn, because other clients wait.
  [[nodiscard]] bool turn_is_over() const noexcept {
    return connection_.input().consumed() >= turn_end_;
  }
  /// In which turn the last bytes were read that came from it.
  [[nodiscard]] core::TimePoint read_at() const noexcept { return read_at_; }
  /// When these bytes came to this machine, and the first ones of the frame that its input begins
  /// with; {}: not known.
  [[nodiscard]] net::WallTime came_at() const noexcept { return came_at_; }
  [[nodiscard]] net::WallTime frame_came() const noexcept { return frame_came_; }
  /// In which turn those first ones were read.
  [[nodiscard]] core::TimePoint frame_read() const noexcept { return frame_read_; }
  /// Returns since when bytes of that frame were there to be read, as far as the thread knows.
  /// Later than frame_read() if its last bytes came later.
  [[nodiscard]] core::TimePoint frame_seen() const noexcept { return frame_seen_; }

 private:
  friend ClientTable;
  void on_ready(ClientConnection& connection) override;
  /// Records that its input begins with the bytes that came last.
  void note_frame() noexcept {
    frame_read_ = frame_seen_ = read_at_;
    frame_came_ = came_at_;
  }
  /// Returns whether all its requests are answered and it has read the responses: there is no work
  /// for it until it sends more.
  [[nodiscard]] bool is_quiet() const noexcept {
    return connection_.in_flight() == 0 && !connection_.readable() && !holds_frames_ &&
           connection_.backlog().empty();
  }
  /// Memory that waits for the client alone: for the rest of a frame, or for it to read.
  [[nodiscard]] std::size_t holds() const noexcept {
    return connection_.backlog().held() + (holds_frames_ ? 0 : connection_.input().held());
  }

  ClientTable* table_;
  Admission admission_;
  std::size_t index_ = 0;       ///< in the table
  bool holds_frames_ = false;   ///< whole ones, for which there was no room
  std::uint64_t turn_end_ = 0;  ///< in bytes consumed of its input
  std::size_t charged_ = 0;     ///< bytes of its input that its turns have paid for
  core::TimePoint read_at_{};
  core::TimePoint frame_read_{};
  core::TimePoint frame_seen_{};
  /// Since when it waits for room with unread bytes and nothing else; max(): it does not.
  core::TimePoint waits_since_ = core::TimePoint::max();
  net::WallTime came_at_{};
  net::WallTime frame_came_{};
  std::uint64_t unsent_until_ = 0;  ///< what is to be sent within the time: Backlog::appended()
  bool counts_for_tls_;             ///< in ClientTable::tls_clients_
  ClientConnection connection_;
};

/// The clients of one I/O thread: which of them are served in a round, which wait for room in the
/// channel, which have held the server's memory for too long, and that memory. One thread.
class ClientTable {
 public:
  /// `engine`, `memory` and `metrics` outlive it. A frame's payload may have `max_message_length`
  /// bytes.
  ClientTable(progress::Engine& engine, std::uint32_t max_message_length,
              const ClientLimits& limits, ClientMemory& memory, ThreadMetrics& metrics);

  /// `stream`: connected, its handshake done. Throws Error; the socket is closed then.
  Client& add(net::Stream stream, Admission admission = {});
  [[nodiscard]] std::size_t size() const noexcept { return clients_.size(); }

  /// It is served in the next round, unless it waits for room: it keeps its place among those.
  void make_ready(Client& client) noexcept {
    if (!queue_.is_waiting(client) || !client.waits_for_room()) queue_.make_ready(client);
  }

  /// One round: reads from clients, has `path` take the frames, ends and erases those that are
  /// done. In a turn each client is read from at most once, and none for which there is no room:
  /// what those sent stays in the kernel. Returns whether there was work. `path` has
  ///   bool has_room()            whether a request would be taken, or refused
  ///   bool take_frames(Client&)  takes the whole frames of its input; false: some are left, as
  ///                              there is no room or Client::turn_is_over()
  ///   void finish(Client&)       calls ClientConnection::finish()
  template <class Path>
  bool serve_round(Path& path) {
    const bool worked = queue_.run_round([&path] { return path.has_room(); },
                                         [&](Client& client) { return tend(client, path); },
                                         [&](Client& client) { return serve(client, path); });
    if (worked) check_memory();
    return worked;
  }

  /// Pauses those whose address waits, and lets the others go on. Returns when the first of them
  /// need not wait any longer; TimePoint::max(): none waits.
  core::TimePoint pause(const WaitingAddresses& waiting) noexcept;
  /// The same for one client.
  core::TimePoint pause(Client& client, const WaitingAddresses& waiting) noexcept;
  /// Stops reading from all. Refuses those that a pause keeps from being read.
  void drain();
  /// Ends those whose time is over. Returns whether there were any.
  bool close_overdue();
  /// Returns when close_overdue() is due; RunTime::max(): there is no client to close.
  [[nodiscard]] core::RunTime next_deadline() noexcept;
  void clear() noexcept { clients_.clear(); }
  /// Counts what clients hold that are not here yet: those whose handshake is under way, bytes.
  void set_held_by_handshakes(std::size_t bytes) noexcept {
    if (std::exchange(held_by_handshakes_, bytes) != bytes) check_memory();
  }

  /// Says in the log, for at most one client a second, why it is.
  void log_disconnected(const Client& client, std::string_view reason) noexcept;

 private:
  template <class Path>
  bool tend(Client& client, Path& path);
  template <class Path>
  bool serve(Client& client, Path& path);
  template <class Path>
  void end_turn(Client& client, Path& path);
  void make_waiting(Client& client) noexcept {
    client.waits_since_ = client.holds_frames_ ? core::TimePoint::max() : engine_->now();
    queue_.make_waiting(client, /*sparse=*/client.connection().in_flight() == 0);
  }
  void spend(Client& client, std::size_t consumed) noexcept;
  void set_deadlines(Client& client, bool consumed) noexcept;
  void disconnect(Client& client, protocol::Refusal reason) noexcept;
  void drop(Client& client, ConnectionEnd end, std::string_view reason) noexcept;
  void check_memory() noexcept {
    if (!memory_.set_held(held())) shed();
  }
  /// Returns the bytes that TLS holds beside the buffers.
  [[nodiscard]] std::uint64_t held_by_tls() const noexcept {
    return tls_clients_ * kTlsMemory + held_by_handshakes_;
  }
  [[nodiscard]] std::uint64_t held() const noexcept { return buffers_.lent() + held_by_tls(); }
  void shed() noexcept;
  bool end_quiet(std::size_t count) noexcept;
  void uncount_tls(Client& client) noexcept {
    if (std::exchange(client.counts_for_tls_, false)) --tls_clients_;
  }
  void erase(Client& client);

  progress::Engine* engine_;
  ThreadMetrics* metrics_;
  memory::BlockCache buffers_;
  std::size_t block_size_;
  ThreadMemory memory_;
  std::size_t tls_clients_ = 0;
  std::size_t held_by_handshakes_ = 0;
  core::TimePoint next_shed_{};
  FairQueue<Client> queue_;
  DeadlineList<Client, Lingering> lingering_;
  DeadlineList<Client, UnfinishedFrame> unfinished_;
  DeadlineList<Client, UnsentOutput> unsent_;
  DeadlineList<Client, Idle> idle_;
  core::RateLimit disconnected_log_;
  std::vector<std::unique_ptr<Client>> clients_;
};

/// Does for a client what needs no room in the channel.
template <class Path>
bool ClientTable::tend(Client& client, Path& path) {
  if (client.connection().take_out_of_memory()) {
    log_disconnected(client, protocol::describe(protocol::Refusal::out_of_memory));
  }
  if (client.connection().disposable()) {
    erase(client);
    return true;
  }
  if (!client.waits_for_room()) return serve(client, path);
  make_waiting(client);
  return false;
}

template <class Path>
bool ClientTable::serve(Client& client, Path& path) {
  ClientConnection& connection = client.connection();
  const std::uint64_t before = connection.input().consumed();
  client.turn_end_ =
      before + static_cast<std::uint64_t>(std::max<std::int64_t>(queue_.allowance(client), 0));
  bool took_all = path.take_frames(client);
  bool worked = connection.input().consumed() != before;
  if (took_all && connection.wants_to_read()) {
    const bool begins = connection.input().bytes().empty();
    client.read_at_ = engine_->now();
    metrics_->received.add(connection.receive(metrics_->is_shown ? &client.came_at_ : nullptr));
    if (begins) client.note_frame();
    client.frame_seen_ =
        std::min(client.read_at_, std::exchange(client.waits_since_, core::TimePoint::max()));
    const std::uint64_t taken_before = connection.input().consumed();
    took_all = path.take_frames(client);
    if (connection.input().consumed() != taken_before) client.note_frame();
    worked = true;
  }
  client.holds_frames_ = !took_all;
  const auto consumed = static_cast<std::size_t>(connection.input().consumed() - before);
  spend(client, consumed);
  set_deadlines(client, consumed != 0);
  end_turn(client, path);
  return worked || connection.state() == ClientConnection::State::lingering;
}

template <class Path>
void ClientTable::end_turn(Client& client, Path& path) {
  ClientConnection& connection = client.connection();
  if (connection.takes_frames() && !client.holds_frames_) connection.settle();
  if (client.waits_for_room()) {
    make_waiting(client);
  } else if (connection.wants_to_read()) {
    make_ready(client);
  } else if (connection.finishing()) {
    path.finish(client);
    if (!connection.is_tls()) uncount_tls(client);
    if (connection.state() == ClientConnection::State::lingering)
      lingering_.start(client, engine_->run_time());
  }
  if (connection.disposable()) make_ready(client);
}

}  // namespace offload::server
