#pragma once

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "tests/simulation/kernel/kernel.hpp"

namespace offload::simulation {

struct EventFd final : Object {
  std::uint64_t count = 0;
  [[nodiscard]] std::uint32_t poll() const override {
    return EPOLLOUT | (count != 0 ? EPOLLIN : 0U);
  }
};

struct SignalFd final : Object {
  explicit SignalFd(Process& of) : process(&of) {}
  Process* process;
  [[nodiscard]] std::uint32_t poll() const override {
    return process->signals.empty() ? 0U : EPOLLIN;
  }
};

/// A memfd is a real file; it is mapped as in any process.
struct RealFile final : Object {
  explicit RealFile(int fd) : real(fd) {}
  RealFile(const RealFile&) = delete;
  RealFile& operator=(const RealFile&) = delete;
  ~RealFile() override;
  int real;
  [[nodiscard]] std::uint32_t poll() const override { return EPOLLIN | EPOLLOUT; }
};

struct PipeReader;
struct PipeWriter final : Object {
  std::weak_ptr<PipeReader> reader;
  [[nodiscard]] std::uint32_t poll() const override { return EPOLLOUT; }
  ~PipeWriter() override;
};
struct PipeReader final : Object {
  std::size_t bytes = 0;
  bool ended = false;
  [[nodiscard]] std::uint32_t poll() const override {
    return (bytes != 0 ? EPOLLIN : 0U) | (ended ? EPOLLHUP : 0U);
  }
};

/// One end of a connection, a stream of bytes or of packets with descriptors.
struct Socket final : Object, std::enable_shared_from_this<Socket> {
  struct Packet {
    std::string bytes;
    std::vector<File> files;
  };

  ~Socket() override;
  [[nodiscard]] std::uint32_t poll() const override;
  ssize_t send(std::span<const iovec> pieces, std::vector<File> files);
  /// Receives from a stream.
  ssize_t receive(std::span<const iovec> room);
  /// Breaks this end with error `why`, as a reset from the other end does: the connection is gone.
  void reset(int why);
  void end_sending();
  void fill_for_a_moment();
  static void join(const std::shared_ptr<Socket>& a, const std::shared_ptr<Socket>& b);

  bool is_local = false;  ///< packets, at once
  bool shares_port = false;
  bool connected = false;
  bool connecting = false;
  std::weak_ptr<Socket> peer{};
  int peer_pid = 0;
  std::uint16_t port = 0;
  std::uint16_t peer_port = 0;
  std::uint32_t peer_host = INADDR_LOOPBACK;
  std::deque<Packet> packets{};
  std::string input{};
  int error = 0;
  bool input_ended = false;
  bool output_ended = false;
  bool broken = false;
  bool cut = false;           ///< nothing of it arrives any more, and its end says nothing
  Time user_timeout = 0;      ///< TCP_USER_TIMEOUT; 0: none was set
  bool floods = false;        ///< its peer finds more whenever it reads
  std::size_t under_way = 0;  ///< bytes that the peer has not read
  std::uint64_t sent = 0;     ///< bytes, ever
  std::uint64_t marked = 0;   ///< bytes that the peer had read at some time
  Time marked_at = 0;
  void mark() {
    marked = sent - under_way;
    marked_at = kernel->now;
  }
  bool wants_room = false;
  Time last_arrival = 0;

 private:
  void arrive(const std::string& bytes);
  void arrive_end();
};

/// A socket before it is connected or listens, and a listener.
struct Listener final : Object {
  bool is_local = false;
  std::string name{};
  std::uint16_t port = 0;
  bool listens = false;
  bool shares_port = false;  ///< SO_REUSEPORT; all peers are one source, whose queue is the first's
  std::deque<std::shared_ptr<Socket>> waiting{};
  [[nodiscard]] std::uint32_t poll() const override { return waiting.empty() ? 0U : EPOLLIN; }
};

struct Epoll final : Object {
  struct Item {
    std::weak_ptr<Object> object;
    epoll_event event;
    std::uint64_t in_seen;
    std::uint64_t out_seen;
  };
  std::map<int, Item> items{};
  [[nodiscard]] std::uint64_t arrivals() const override;
  [[nodiscard]] static std::uint32_t ready(const Item& item, const Object& object);
  [[nodiscard]] std::uint32_t poll() const override;
  int take(epoll_event* events, int most);
};

}  // namespace offload::simulation
