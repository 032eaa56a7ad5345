#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "core/status.hpp"
#include "doca/comch/fifo.hpp"
#include "doca/comch/link.hpp"
#include "doca/include/doca_types.h"
#include "progress/engine.hpp"
#include "progress/task.hpp"

namespace offload::doca {

class ControlContext;

/// The most consumers that a side of a connection has for its peer.
inline constexpr std::size_t kMostConsumers = 256;

/// A consumer of the peer, and the stream to it, which all producers of this side share. Any
/// thread.
class RemoteConsumer {
 public:
  /// The state of a send.
  enum class Progress : std::uint8_t { none, sending, sent, failed };

  explicit RemoteConsumer(std::unique_ptr<Link> link) : link_(std::move(link)) {}

  /// Begins to send `pieces`, whose first has room for the head of a frame. `progress`: set once
  /// all is sent; it and the pieces' bytes must live until then. Errors: again if no buffer is
  /// posted or another message is being sent, invalid_value if the posted buffer is too small,
  /// not_connected if the consumer has stopped.
  core::Status send(std::span<iovec> pieces, std::uint32_t producer, std::uint32_t immediate,
                    std::atomic<Progress>& progress) noexcept;
  /// Continues the message that is being sent. Returns whether there was progress.
  bool flush() noexcept;
  /// Ends the stream: the message that is being sent fails.
  void close() noexcept;

 private:
  void read_posted();
  bool send_rest();
  void fail() noexcept;

  std::mutex mutex_;
  std::unique_ptr<Link> link_;  ///< null: closed
  Fifo<std::uint64_t> posted_;  ///< lengths of the posted buffers
  std::vector<iovec> rest_;     ///< of the message that is being sent
  std::atomic<Progress>* sending_ = nullptr;
  FrameHead head_;
};

/// The data that a consumer of this side shares with its connection, which may be on another
/// thread.
struct OwnConsumer {
  std::uint32_t id = 0;
  progress::Engine* engine = nullptr;  ///< the consumer's
  bool is_servers = false;
  std::unique_ptr<Link> link;  ///< once there is a stream, until the consumer takes it
  bool has_failed = false;     ///< there will be no stream
};

/// A client's connection to a server, on either side. The contexts of its consumers and producers
/// may be on other threads than its owner.
class ComchConnection final : public std::enable_shared_from_this<ComchConnection>,
                              progress::EventHandler {
 public:
  /// `peer`: its limits. `is_server`: this side is. Throws Error.
  ComchConnection(ControlContext& owner, std::unique_ptr<Link> link, std::uint64_t token,
                  const Introduction& peer, bool is_server);
  ComchConnection& operator=(ComchConnection&&) = delete;
  ~ComchConnection() = default;

  // Any thread.

  [[nodiscard]] ControlContext& owner() const noexcept { return *owner_; }
  /// The most bytes of a message to the peer.
  [[nodiscard]] std::uint32_t longest_message() const noexcept { return longest_message_; }
  [[nodiscard]] bool is_server() const noexcept { return is_server_; }
  [[nodiscard]] bool is_open() const noexcept {
    return open_.load(std::memory_order_acquire);  // pairs with close()
  }
  /// Returns the peer's consumer of that id; null if there is none.
  std::shared_ptr<RemoteConsumer> find_consumer(std::uint32_t id);
  /// Adds a consumer of this side. Throws Error (not_connected).
  std::shared_ptr<OwnConsumer> add_consumer(progress::Engine& engine);
  /// Takes the link of a consumer; null if there is none yet. Throws Error (not_connected) once
  /// fail_own() was called for it.
  std::unique_ptr<Link> take_link(OwnConsumer& consumer);
  /// Removes a consumer of this side, and tells the peer.
  void remove_consumer(const OwnConsumer& consumer) noexcept;
  std::uint32_t next_producer() noexcept {
    return last_producer_.fetch_add(1, std::memory_order_relaxed) + 1;  // only unique
  }

  doca_data user_data{};

 private:
  friend class ControlContext;
  friend class ServerContext;
  friend class ClientContext;

  /// A change of this side's consumers, for the owner's thread.
  struct Notice {
    std::uint32_t consumer;
    bool is_new;
  };

  void on_events(std::uint32_t) override { is_readable_ = true; }
  /// Closes it. The bytes of its last frame stay valid until drop_closed().
  void close() noexcept;
  void drop_closed() noexcept { closed_link_.reset(); }
  [[nodiscard]] bool has_notices() const noexcept {
    return has_notices_.load(std::memory_order_acquire);  // pairs with the stores
  }
  std::vector<Notice> take_notices();
  /// Hands a consumer of this side its link. Returns whether there is such a consumer.
  bool attach_own(std::uint32_t id, std::unique_ptr<Link> link);
  /// Tells a consumer of this side that the peer cannot reach it.
  void fail_own(std::uint32_t id);
  /// Returns whether the peer may have one more consumer, beside those to which `opening` streams
  /// are being opened.
  bool has_room(std::size_t opening);
  /// Adds a consumer of the peer. Returns false if it was removed already.
  bool add_remote(std::uint32_t id, std::unique_ptr<Link> link);
  /// Removes a consumer of the peer. Returns false if there is none.
  bool remove_remote(std::uint32_t id);

  ControlContext* owner_;
  std::unique_ptr<Link> link_;  ///< null: closed
  std::unique_ptr<Link> closed_link_;
  std::uint64_t token_;
  std::uint32_t longest_message_;
  std::uint32_t credit_;               ///< messages that the peer takes
  std::uint32_t taken_ = 0;            ///< messages to give credit for
  std::uint64_t arrivals_ = 0;         ///< of the link, for which streams were taken
  Fifo<progress::Task*> waiting_;      ///< sends, for credit and for room in the system
  progress::Task* sending_ = nullptr;  ///< the system does not have all of its bytes yet
  bool is_server_;
  bool is_readable_ = true;
  bool has_ended_output_ = false;
  std::atomic<bool> open_{true};
  std::atomic<std::uint32_t> last_producer_{0};
  std::atomic<bool> has_notices_{false};

  std::mutex mutex_;  // of all members below
  std::uint32_t last_consumer_ = 0;
  std::map<std::uint32_t, std::shared_ptr<OwnConsumer>> own_;
  std::map<std::uint32_t, std::shared_ptr<RemoteConsumer>> remote_;
  std::set<std::uint32_t> gone_early_;  ///< the peer's consumers that stopped before they came
  std::vector<Notice> notices_;
};

}  // namespace offload::doca
