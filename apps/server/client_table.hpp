#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "apps/server/connection.hpp"
#include "apps/server/fair_queue.hpp"
#include "core/clock.hpp"
#include "core/intrusive_list.hpp"
#include "memory/block_cache.hpp"
#include "net/stream.hpp"
#include "progress/engine.hpp"

namespace offload::server {

class ClientTable;
/// Tells the list of lingering clients from the queues of the others.
struct Lingering;

/// A connection in a ClientTable, with its places there.
class Client final : public FairQueueEntry, public core::ListNode<Lingering>, ConnectionOwner {
 public:
  Client(net::Stream stream, progress::Engine& engine, memory::BlockCache& buffers,
         ClientTable& table)
      : table_(&table), connection_(std::move(stream), engine, buffers, *this) {}

  [[nodiscard]] Connection& connection() noexcept { return connection_; }

  /// Whether room for requests is all that it needs to go on. A client that has hung up is read
  /// without: an end of file does not wait for room.
  [[nodiscard]] bool waits_for_room() const noexcept {
    return connection_.takes_frames() &&
           (holds_frames_ || (connection_.wants_to_read() && !connection_.hung_up()));
  }

 private:
  friend ClientTable;
  void on_ready(Connection& connection) override;

  ClientTable* table_;
  std::size_t index_ = 0;      ///< in the table
  bool holds_frames_ = false;  ///< whole ones, for which there was no room
  Connection connection_;
};

/// The clients of one I/O thread: which of them are served in a round, which wait for room in the
/// channel, which linger, and the memory that they receive into. One thread.
class ClientTable {
 public:
  /// `engine` outlives it. A frame's payload may have `max_message_length` bytes.
  ClientTable(progress::Engine& engine, std::uint32_t max_message_length);

  /// `stream`: connected, its handshake done. Throws Error; the socket is closed then.
  Client& add(net::Stream stream);
  [[nodiscard]] std::size_t size() const noexcept { return clients_.size(); }

  /// It is served in the next round, unless it waits for room: it keeps its place among those.
  void make_ready(Client& client) noexcept {
    if (!queue_.is_waiting(client) || !client.waits_for_room()) queue_.make_ready(client);
  }

  /// One round: reads from clients, has `path` take the frames, ends and erases those that are
  /// done. Each client is read from at most once, and none for which there is no room: what those
  /// sent stays in the kernel. Returns whether there was work. `path` has
  ///   bool has_room()            whether a request would be taken, or refused
  ///   bool take_frames(Client&)  takes the whole frames of its input; false: no room for the rest
  ///   void finish(Client&)       calls Connection::finish()
  template <class Path>
  bool serve_round(Path& path) {
    return queue_.run_round([&path] { return path.has_room(); },
                            [&](Client& client) { return tend(client, path); },
                            [&](Client& client) { return serve(client, path); });
  }

  /// Stops reading from all.
  void drain();
  /// Closes those that have lingered long enough. Returns whether there were any.
  bool close_lingering();
  /// When close_lingering() is due; TimePoint::max(): there is nobody to close.
  [[nodiscard]] core::TimePoint linger_deadline() noexcept;
  void clear() noexcept { clients_.clear(); }

 private:
  template <class Path>
  bool tend(Client& client, Path& path);
  template <class Path>
  bool serve(Client& client, Path& path);
  void erase(Client& client);

  progress::Engine* engine_;
  memory::BlockCache buffers_;
  FairQueue<Client> queue_;
  core::IntrusiveList<Client, Lingering> lingering_;  ///< the first to be closed in front
  std::vector<std::unique_ptr<Client>> clients_;
};

/// Does for a client what needs no room in the channel.
template <class Path>
bool ClientTable::tend(Client& client, Path& path) {
  if (client.connection().disposable()) {
    erase(client);
    return true;
  }
  if (!client.waits_for_room()) return serve(client, path);
  queue_.make_waiting(client);
  return false;
}

template <class Path>
bool ClientTable::serve(Client& client, Path& path) {
  Connection& connection = client.connection();
  const std::size_t before = connection.input().bytes().size();
  bool took_all = path.take_frames(client);
  bool worked = connection.input().bytes().size() != before;
  if (took_all && connection.wants_to_read()) {
    connection.receive();
    took_all = path.take_frames(client);
    worked = true;
  }
  connection.input().release_if_empty();
  client.holds_frames_ = !took_all;
  if (client.waits_for_room()) {
    queue_.make_waiting(client);
  } else if (connection.wants_to_read()) {
    make_ready(client);
  } else if (connection.finishing()) {
    path.finish(client);
    if (connection.state() == Connection::State::lingering) lingering_.push_back(client);
    worked = true;
  }
  if (connection.disposable()) make_ready(client);
  return worked;
}

}  // namespace offload::server
