#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <optional>
#include <vector>

#include "apps/client/load/datagram_flow.hpp"
#include "net/socket.hpp"
#include "tests/client/load/load_fixture.hpp"

/// Requests over UDP; the test acts as the worker.
namespace offload::client {

struct Asked {
  std::uint64_t sequence = 0;
  Bytes payload;
};

class FakeDatagramWorker {
 public:
  FakeDatagramWorker()
      : socket_(core::check_errno(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket")) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    core::check_errno(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any),
                      "bind");
  }

  void close() { socket_.reset(); }
  /// Only takes datagrams of itself from now on: for others no program has the port.
  void refuse_others() {
    const net::SocketAddress own = address();
    core::check_errno(::connect(socket_.get(), own.get(), own.size), "connect");
  }
  [[nodiscard]] net::SocketAddress address() const { return net::local_address(socket_.get()); }

  /// Returns the next request; if none comes in time, the test fails.
  Asked read() {
    pollfd watched{socket_.get(), POLLIN, 0};
    std::byte room[2048];
    peer_size_ = sizeof peer_;
    if (::poll(&watched, 1, static_cast<int>(kBound / 1ms)) != 1) {
      ADD_FAILURE() << "no request came";
      return {};
    }
    const ssize_t count = ::recvfrom(socket_.get(), room, sizeof room, 0,
                                     reinterpret_cast<sockaddr*>(&peer_), &peer_size_);
    const auto frame = protocol::parse_frame(
        std::span(room).subspan(protocol::kSequenceSize,
                                static_cast<std::size_t>(count) - protocol::kSequenceSize),
        2048);
    EXPECT_EQ(frame.state, protocol::FrameView::State::complete);
    EXPECT_EQ(frame.id, MessageId::client_request);
    return {protocol::load_big_endian<std::uint64_t>(room),
            {frame.payload.begin(), frame.payload.end()}};
  }

  void send(std::uint64_t sequence, const std::vector<std::byte>& frame) {
    std::vector<std::byte> datagram(protocol::kSequenceSize);
    protocol::store_big_endian(datagram.data(), sequence);
    datagram.insert(datagram.end(), frame.begin(), frame.end());
    EXPECT_EQ(::sendto(socket_.get(), datagram.data(), datagram.size(), 0,
                       reinterpret_cast<const sockaddr*>(&peer_), peer_size_),
              static_cast<ssize_t>(datagram.size()));
  }
  void answer(const Asked& asked) {
    send(asked.sequence, protocol::make_frame(MessageId::client_response, reversed(asked.payload)));
  }

 private:
  core::Fd socket_;
  sockaddr_storage peer_{};
  socklen_t peer_size_ = 0;
};

/// A flow's socket, which has room for some datagrams only, and its worker's.
struct NarrowSockets {
  NarrowSockets() {
    int fds[2];
    constexpr int kType = SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
    core::check_errno(::socketpair(AF_UNIX, kType, 0, fds), "socketpair");
    flow.reset(fds[0]);
    worker.reset(fds[1]);
    const int room = 1;  // the least that there is
    core::check_errno(::setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room), "SO_SNDBUF");
  }

  core::Fd flow;
  core::Fd worker;
};

inline LoadPlan counting_plan(std::uint64_t requests, std::uint32_t in_flight,
                              core::Duration time_out) {
  LoadPlan plan = plan_of(requests, in_flight);
  plan.response_timeout = time_out;
  plan.stop_on_error = false;
  return plan;
}

/// A flow without a load thread, with one request in flight. It sends to `worker`.
struct DrivenDatagrams : DrivenLoad {
  DrivenDatagrams(const LoadPlan& plan, const RequestPool& pool, const FakeDatagramWorker& worker)
      : DrivenLoad(plan, pool) {
    share.datagrams.resize(DatagramFlow::receive_room(65'535));
    core::Fd socket = open_datagram_socket(worker.address(), 100, 1);
    fd = socket.get();
    flow.emplace("flow", 0, std::move(socket), share);
  }
  /// Returns whether the socket has one of `events` in time.
  [[nodiscard]] bool has(short events) const {
    return support::eventually([&] {
      pollfd watched{fd, POLLIN, 0};
      return ::poll(&watched, 1, 1) == 1 && (watched.revents & events) != 0;
    });
  }

  int fd = -1;
  std::optional<DatagramFlow> flow;
};

}  // namespace offload::client
