#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "clients/cpp/src/inbox.hpp"
#include "core/clock.hpp"
#include "protocol/frame.hpp"

namespace offload::clients {

/// How a request ended: an offload_status, with a text unless it is OFFLOAD_OK.
struct Outcome {
  std::uint64_t tag = 0;
  int status = 0;
  std::span<const std::byte> data;  ///< valid until the exchange's next call
  std::string text;
};

/// Why nothing more will come on a connection.
struct Ending {
  int status;
  std::string text;
  bool may_retry;  ///< the next connection may be better
};

/// Matches responses to the requests of one connection, in the order of the requests. It does no
/// I/O. A request that timed out keeps its place until its response has come,
/// which is dropped, so no request gets another one's response. One thread.
class Exchange {
 public:
  /// Requests whose frames are held have about this many bytes at most, and one request more.
  static constexpr std::size_t kMostHeld = std::size_t{16} << 20;

  struct Limits {
    std::size_t requests;           ///< in flight, also those that timed out
    std::uint32_t response_length;  ///< bytes
    bool retries;                   ///< keeps idempotent requests for the next connection
  };
  explicit Exchange(const Limits& limits) : limits_(limits) {}
  Exchange& operator=(Exchange&&) = delete;

  [[nodiscard]] bool is_full() const noexcept {
    return requests_.size() >= limits_.requests || held_ >= kMostHeld;
  }
  /// Returns whether every request was returned by next().
  [[nodiscard]] bool is_idle() const noexcept { return open_ == 0; }
  /// Precondition: !is_full().
  void submit(std::span<const std::byte> payload, std::uint64_t tag, core::TimePoint deadline,
              bool idempotent);

  [[nodiscard]] bool has_unsent() const noexcept { return unsent_ != requests_.end(); }
  /// Fills `pieces` with bytes to be sent; returns how many pieces.
  std::size_t gather(std::span<iovec> pieces) noexcept;
  /// The first `bytes` of them were sent.
  void add_sent(std::size_t bytes) noexcept;

  /// Room for a receive. To be called only when next() has returned nothing.
  std::span<std::byte> room() { return inbox_.room(); }
  void add_received(std::size_t bytes) noexcept { inbox_.append(bytes); }
  [[nodiscard]] bool is_inside_frame() const noexcept { return !inbox_.bytes().empty(); }

  /// Returns the next request that has ended; nothing if more must be received first.
  std::optional<Outcome> next();
  /// Why the connection must be closed now, if the server has said so or broke the protocol.
  [[nodiscard]] const std::optional<Ending>& ending() const noexcept { return ending_; }
  /// Returns whether a request was answered, or refused by itself, since the last lose().
  [[nodiscard]] bool was_answered() const noexcept { return answered_; }

  /// Ends the requests whose time is over. Returns whether there were any.
  bool expire(core::TimePoint now);
  /// The next call of expire() that may find one.
  [[nodiscard]] core::TimePoint next_expiry() const noexcept { return next_expiry_; }

  /// The connection has ended. With `retry` the requests that were not sent whole, and those that
  /// are idempotent, remain for the next connection; the others end with `status` and `text`.
  void lose(int status, std::string text, bool retry);
  /// Forgets the requests that next() has not returned; their responses are dropped.
  void abandon() noexcept;

 private:
  struct Request {
    std::vector<std::byte> frame;  ///< until it was sent, or while it may be sent again
    std::uint64_t tag;
    core::TimePoint deadline;
    bool idempotent;
    bool offered = false;   ///< TLS may have put it into a record that is under way
    bool given_up = false;  ///< returned; its response is dropped
    int status = 0;
    std::shared_ptr<const std::string> text = nullptr;
  };
  using Place = std::list<Request>::iterator;

  std::optional<Outcome> take(const protocol::FrameView& frame);
  std::optional<Outcome> take_error(std::span<const std::byte> payload);
  std::optional<Outcome> pop_answered(int status, std::span<const std::byte> data,
                                      std::string text);
  void break_off(std::string text);
  void release_frame(Request& request) noexcept;

  Limits limits_;
  std::list<Request> requests_;     ///< in flight, the oldest first
  Place unsent_ = requests_.end();  ///< the first that was not sent whole
  std::size_t offset_ = 0;          ///< bytes of it that were sent
  std::list<Request> ended_;        ///< without a response, to be returned by next()
  std::size_t open_ = 0;            ///< requests that next() has not returned
  std::size_t held_ = 0;            ///< bytes of frames
  core::TimePoint next_expiry_ = core::TimePoint::max();
  Inbox inbox_;
  std::size_t delivered_ = 0;  ///< bytes of the frame at the front, whose payload was returned
  std::optional<Ending> ending_;
  bool answered_ = false;
};

}  // namespace offload::clients
