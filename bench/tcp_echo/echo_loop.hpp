#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/cpu.hpp"
#include "core/fd.hpp"

/// bench-tcp-echo: the bare ceiling that offload-server is measured against. It does what any
/// server of the frames in docs/wire-protocol.md must do, and nothing else: receive, find and check
/// the frames, send. No message is copied or changed, so a request comes back as a request (msg_id
/// 4), which offload-client takes:
///
///   bench-tcp-echo -p 9000 --threads 1
///   offload-client -s 127.0.0.1 -p 9000 -t 1 --service echo --size 64 --duration 5
///
/// As fast as plain epoll gets: each thread has its own epoll set and shares nothing; a batch costs
/// one epoll_wait, one recv and one send, whatever the number of frames in it; an idle thread
/// sleeps in epoll_wait and uses no CPU. As in offload-server, the main thread accepts and gives
/// each client to the thread with the fewest.
namespace offload::bench {

class Connection;

/// One thread's share of the server: an epoll set and the connections it was given.
class EchoLoop {
 public:
  /// Takes payloads of up to `max_message_length` bytes. run() ends once `stop` is readable. Throws
  /// Error.
  EchoLoop(std::uint32_t max_message_length, int stop);
  ~EchoLoop();

  /// Serves until it is told to stop. One thread, once.
  void run();

  // For the thread that accepts:

  /// A connected, non-blocking socket. Throws Error.
  void give(core::Fd socket);
  /// Connections that it was given and that are not gone.
  [[nodiscard]] std::uint64_t connection_count() const noexcept {
    return given_ - gone_.load(std::memory_order_relaxed);
  }

 private:
  void watch(int operation, int fd, std::uint32_t events);
  void take_given();
  void serve(int fd);

  std::uint32_t max_message_length_;
  int stop_;
  core::Fd epoll_;
  core::Fd given_sockets_;  ///< a pipe of descriptors: who reads one owns it
  core::Fd give_;           ///< its other end
  std::vector<std::unique_ptr<Connection>> connections_;              ///< by file descriptor
  std::uint64_t given_ = 0;                                           ///< the accepting thread's
  alignas(core::kCacheLinePair) std::atomic<std::uint64_t> gone_{0};  ///< written by the loop alone
};

}  // namespace offload::bench
