#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/fd.hpp"
#include "core/log.hpp"
#include "net/socket.hpp"

/// bench-tcp-echo: the bare ceiling that offload-server is measured against. It does what any
/// server of the frames in docs/wire-protocol.md must do, and nothing else: receive, find and check
/// the frames, send. No message is copied or changed, so a request comes back as a request (msg_id
/// 4), which offload-client takes:
///
///   bench-tcp-echo -p 9000 --threads 1
///   offload-client -s 127.0.0.1 -p 9000 -t 1 --service echo --size 64 --duration 5
///
/// As fast as plain epoll gets: each thread has its own listener and epoll set and shares nothing;
/// a batch costs one epoll_wait, one recv and one send, whatever the number of frames in it; an
/// idle thread sleeps in epoll_wait and uses no CPU. The kernel spreads the connections over the
/// listeners by hash, so a few of them may well meet on one thread.
namespace offload::bench {

class Connection;

/// One thread's share of the server: a listener, an epoll set and the connections it accepted.
class EchoLoop {
 public:
  /// Listens on `address` beside other loops; takes payloads of up to `max_message_length` bytes.
  /// run() ends once `stop` is readable. Throws Error.
  EchoLoop(const net::SocketAddress& address, std::uint32_t max_message_length, int stop);
  ~EchoLoop();

  /// Where it listens: the port that was chosen if it was asked for port 0.
  [[nodiscard]] net::SocketAddress address() const { return net::local_address(listener_.get()); }

  /// Serves until it is told to stop. One thread, once.
  void run();

 private:
  void watch(int operation, int fd, std::uint32_t events);
  void accept_all();
  void serve(int fd);

  std::uint32_t max_message_length_;
  int stop_;
  core::Fd epoll_;
  core::Fd listener_;
  std::vector<std::unique_ptr<Connection>> connections_;  ///< by file descriptor
  core::RateLimit failed_accepts_;
};

}  // namespace offload::bench
