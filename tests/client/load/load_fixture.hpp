#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "apps/client/load/load_connection.hpp"
#include "apps/client/load/load_thread.hpp"
#include "protocol/frame.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/eventually.hpp"

/// A load thread and, at the other end of its connection, the test as a server.
namespace offload::client {

using namespace std::chrono_literals;
using protocol::MessageId;
using support::Bytes;
using support::kBound;
using support::reversed;

inline RequestPool hello_pool() {
  return RequestPool::same(std::as_bytes(std::span("hello", 5)),
                           std::as_bytes(std::span("olleh", 5)));
}

/// Returns different random requests of one size.
inline RequestPool random_pool(std::uint32_t size, Service service) {
  return RequestPool::of_sizes({{size, 1}}, {}, service);
}

inline LoadPlan plan_of(std::uint64_t requests, std::uint32_t max_in_flight) {
  LoadPlan plan;
  plan.requests = requests;
  plan.max_in_flight = max_in_flight;
  plan.connect_timeout = kBound;
  plan.response_timeout = kBound;
  return plan;
}

/// An open loop.
inline LoadPlan open_plan(double per_second, std::uint64_t requests, std::uint32_t max_in_flight) {
  LoadPlan plan = plan_of(requests, max_in_flight);
  plan.arrivals = Arrivals::constant(per_second, 0);
  plan.lag_tolerance = kBound;
  return plan;
}

/// The observations of a load thread, after it has ended.
struct Seen {
  Interval total;
  std::string fault;
};

/// Takes the observations of a load thread.
inline std::unique_ptr<Seen> seen_by(LoadThread& load) {
  auto seen = std::make_unique<Seen>();
  load.recorder().take_rest([&](const Interval& interval) { seen->total.merge(interval); });
  seen->fault = load.fault();
  return seen;
}

/// Expects that the integral of requests in flight is the sum of the service times, as it is if all
/// requests had right responses.
inline void expect_in_flight_as_served(const Interval& total) {
  const double served = static_cast<double>(total.service.count()) * total.service.mean().count();
  EXPECT_NEAR(total.in_flight_ns / served, 1, 0.01);
}

/// The state of a load thread without its thread: the test calls the flows and runs the engine.
struct DrivenLoad {
  DrivenLoad(const LoadPlan& plan, const RequestPool& pool, Target its_target = {})
      : target(std::move(its_target)), share(plan, {pool, target, control}) {
    share.interval = interval.get();
  }
  DrivenLoad(const DrivenLoad&) = delete;
  DrivenLoad& operator=(const DrivenLoad&) = delete;

  /// Makes it an open loop, of which what is intended for the last second is due.
  void open() {
    const core::TimePoint now = core::Clock::now();
    share.pacer.emplace(*share.plan.arrivals, PacerTimes{.start = now - 1s}, UINT64_MAX);
    share.pacer->notice(now, *interval);
  }
  /// Runs turns of the engine until `condition` holds; the test fails if it does not in time.
  template <class Condition>
  void run_until(Condition condition) {
    EXPECT_TRUE(share.engine.run_until(condition, kBound));
  }

  /// Returns whether no event is left, nor comes soon.
  bool is_quiet() { return !share.engine.run_once(core::Clock::now() + 20ms); }

  RunControl control;
  Target target;
  std::unique_ptr<Interval> interval = std::make_unique<Interval>();
  LoadShare share;
};

/// The server's end of a connection, which the test controls.
class FakeServer {
 public:
  explicit FakeServer(core::Fd socket) : socket_(std::move(socket)) {}

  /// Returns the payload of the next request; empty after the end of the stream.
  Bytes read_request() {
    for (;;) {
      const auto frame = protocol::parse_frame(received_, std::uint32_t{16} << 20);
      EXPECT_NE(frame.state, protocol::FrameView::State::bad);
      if (frame.state == protocol::FrameView::State::complete) {
        EXPECT_EQ(frame.id, MessageId::client_request);
        Bytes payload(frame.payload.begin(), frame.payload.end());
        received_.erase(received_.begin(),
                        received_.begin() + static_cast<std::ptrdiff_t>(frame.size()));
        return payload;
      }
      if (!read_more(kBound)) return {};
    }
  }

  /// Writes all of it; returns whether the client took it.
  bool write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    return true;
  }

  void respond(const Bytes& payload) {
    ASSERT_TRUE(write(protocol::make_frame(MessageId::client_response, payload)));
  }

  /// Returns whether a request, or part of one, arrives within `time`.
  bool read_more(std::chrono::milliseconds time) {
    pollfd watched{socket_.get(), POLLIN, 0};
    if (::poll(&watched, 1, static_cast<int>(time.count())) <= 0) return false;
    const std::size_t before = received_.size();
    received_.resize(before + (1U << 20));
    const ssize_t count = ::recv(socket_.get(), received_.data() + before, 1U << 20, 0);
    received_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    return count > 0;
  }

  [[nodiscard]] bool has_unread() const { return !received_.empty(); }
  void close() { socket_.reset(); }

 private:
  core::Fd socket_;
  Bytes received_;
};

inline std::pair<core::Fd, core::Fd> make_sockets() {
  int fds[2];
  core::check_errno(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), "socketpair");
  std::pair<core::Fd, core::Fd> sockets{core::Fd(fds[0]), core::Fd(fds[1])};
  core::check_errno(::fcntl(fds[0], F_SETFL, O_NONBLOCK), "O_NONBLOCK");
  return sockets;
}

/// A connection without a load thread, to a FakeServer. The pool must outlive it.
struct DrivenConnection : DrivenLoad {
  /// `target`: the address to reconnect to.
  DrivenConnection(const LoadPlan& plan, const RequestPool& pool, Target its_target = {})
      : DrivenConnection(plan, pool, std::move(its_target), make_sockets()) {}

  void answer(int count) {
    for (int i = 0; i < count; ++i) server.respond(reversed(server.read_request()));
  }

  int fd;  ///< of the connection, until it is lost
  FakeServer server;
  LoadConnection connection;

 private:
  DrivenConnection(const LoadPlan& plan, const RequestPool& pool, Target its_target,
                   std::pair<core::Fd, core::Fd> sockets)
      : DrivenLoad(plan, pool, std::move(its_target)),
        fd(sockets.first.get()),
        server(std::move(sockets.second)),
        connection("connection", 0, std::move(sockets.first), share) {}
};

/// Accepts the next connection of the client.
inline FakeServer accept_from(const core::Fd& listener) {
  pollfd watched{listener.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&watched, 1, static_cast<int>(kBound / 1ms)), 1);
  core::Fd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_TRUE(socket.valid());
  return FakeServer(std::move(socket));
}

/// A load thread that runs, with one connection to a FakeServer. The pool must outlive it.
class RunningLoad {
 public:
  /// `target`: the address to reconnect to.
  RunningLoad(const LoadPlan& plan, const RequestPool& pool, const Target& target = {},
              RequestLog* log = nullptr)
      : RunningLoad(plan, pool, make_sockets(), target, log) {}
  RunningLoad(const RunningLoad&) = delete;
  RunningLoad& operator=(const RunningLoad&) = delete;
  ~RunningLoad() { finish(); }

  FakeServer& server() { return server_; }
  RunControl& control() { return control_; }

  /// Answers each request with its bytes reversed until the load thread ends.
  void answer_until_ended() {
    while (!ended_) {
      if (server_.has_unread() || server_.read_more(10ms)) {
        server_.respond(reversed(server_.read_request()));
      }
    }
  }

  /// Answers `count` requests. Returns how many of them have `size` bytes.
  int answer(int count, std::size_t size) {
    int of_size = 0;
    for (int i = 0; i < count; ++i) {
      const Bytes request = server_.read_request();
      if (request.size() == size) ++of_size;
      server_.respond(reversed(request));
    }
    return of_size;
  }

  const Interval& finish() {
    join();
    return seen_->total;
  }
  const std::string& fault() {
    join();
    return seen_->fault;
  }

 private:
  RunningLoad(const LoadPlan& plan, const RequestPool& pool, std::pair<core::Fd, core::Fd> sockets,
              const Target& target, RequestLog* log)
      : target_(target),
        server_(std::move(sockets.second)),
        load_(std::make_unique<LoadThread>(7, 7, only(std::move(sockets.first)), plan,
                                           LoadRunContext{pool, target_, control_, log, 0})),
        thread_([this] {
          load_->run(core::Clock::now());
          ended_ = true;
        }) {}

  void join() {
    if (thread_.joinable()) thread_.join();
    if (!seen_) seen_ = seen_by(*load_);
  }

  static std::vector<net::Stream> only(core::Fd socket) {
    std::vector<net::Stream> streams;
    streams.emplace_back(std::move(socket));
    return streams;
  }

  RunControl control_;
  Target target_;
  FakeServer server_;
  std::unique_ptr<LoadThread> load_;
  std::unique_ptr<Seen> seen_;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

}  // namespace offload::client
