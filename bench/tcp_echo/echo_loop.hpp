#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/clock.hpp"
#include "core/cpu.hpp"
#include "core/fd.hpp"

/// bench-tcp-echo: the upper limit that offload-server is compared with. It does only what every
/// server of the frames in docs/reference/wire-protocol.md must do: receive, check the frames,
/// send. Messages are not copied or changed, so a request comes back as a request (msg_id 4), which
/// offload-client accepts:
///
///   bench-tcp-echo -p 9000 --threads 1
///   offload-client -s 127.0.0.1 -p 9000 -t 1 --service echo --size 64 --duration 5
///
/// Each thread has its own epoll set and shares nothing; a batch costs one epoll_wait, one recv and
/// one send, whatever the number of frames in it; an idle thread sleeps in epoll_wait. As in
/// offload-server, the main thread accepts connections and gives each to the thread with the
/// fewest.
namespace offload::bench {

class Connection;

/// The event loop of one thread: an epoll set and the connections that the thread serves.
class EchoLoop {
 public:
  /// Accepts payloads of up to `max_message_length` bytes, and is busy for `work` with each. run()
  /// ends once `stop` is readable. Throws Error.
  EchoLoop(std::uint32_t max_message_length, core::Duration work, int stop);
  ~EchoLoop();

  /// Serves until `stop` is readable. To be called once, on the loop's own thread.
  void run();

  // The accepting thread calls these:

  /// Hands over a connected, non-blocking socket. Throws Error.
  void give(core::Fd socket);
  /// The number of open connections. Relaxed: only for balancing, it orders nothing.
  [[nodiscard]] std::uint64_t connection_count() const noexcept {
    return given_ - gone_.load(std::memory_order_relaxed);
  }

 private:
  void watch(int operation, int fd, std::uint32_t events);
  void take_given();
  void serve(int fd);

  std::uint32_t max_message_length_;
  core::Duration work_;
  int stop_;
  core::Fd epoll_;
  core::Fd given_sockets_;  ///< read end of a pipe of descriptors, whose reader owns them
  core::Fd give_;           ///< its write end
  std::vector<std::unique_ptr<Connection>> connections_;  ///< by file descriptor
  std::uint64_t given_ = 0;                               ///< used by the accepting thread
  alignas(core::kCacheLinePair) std::atomic<std::uint64_t> gone_{0};  ///< written by the loop alone
};

}  // namespace offload::bench
