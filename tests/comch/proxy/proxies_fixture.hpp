#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "comch/proxy/server_proxy.hpp"
#include "comch/proxy/worker_proxy.hpp"
#include "comch/transport/tcp/data.hpp"
#include "net/socket.hpp"
#include "protocol/data.hpp"
#include "tests/channel/channel_fixture.hpp"
#include "tests/support/eventually.hpp"

/// A channel whose worker is at the other end of a connection.
namespace offload::comch::test {

using protocol::DataHeader;
using protocol::kDataHeaderSize;
using support::Bytes;

inline constexpr std::uint32_t kSlots = 8;
inline constexpr std::uint32_t kLongest = 100'000;

inline std::unique_ptr<DataEndpoint> line_over(core::Fd connection) {
  return std::make_unique<TcpDataEndpoint>(TcpStream(std::move(connection)));
}

/// Two ends of a TCP connection.
inline std::pair<core::Fd, core::Fd> connection() {
  const auto address = net::resolve("127.0.0.1", 0).front();
  const core::Fd listener = net::listen_tcp(address, 1);
  core::Fd one = net::start_connect(net::local_address(listener.get()));
  core::Fd other;
  EXPECT_TRUE(support::eventually([&] {
    other = core::Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    return other.valid();
  }));
  return {std::move(one), std::move(other)};
}

inline Bytes on_wire(const DataHeader& header, const Bytes& bytes = {}) {
  Bytes all(kDataHeaderSize);
  header.store(all.data());
  all.insert(all.end(), bytes.begin(), bytes.end());
  return all;
}
/// A request or response as long as it says. `count`: of a batch's messages.
inline Bytes on_wire(std::uint64_t sequence, const Bytes& bytes, std::uint16_t count = 0) {
  return on_wire({sequence, static_cast<std::uint32_t>(bytes.size()), count, 0}, bytes);
}

/// The server's side, with the worker's end of the connection in hand.
class RemoteTest : public testing::Test {
 protected:
  explicit RemoteTest(std::uint32_t longest = kLongest) : longest_(longest) {
    auto [here, there] = connection();
    peer_ = std::move(there);
    attach(std::move(here));
    server_.requester.set_wakeup(channel::Wakeup::engine);
  }
  void attach(core::Fd fd) {
    remote_worker_.reset();
    remote_worker_.emplace(server_.requester, memory_->endpoint(), line_over(std::move(fd)));
  }
  /// Moves to the next worker, which has another memory.
  void move_on(core::Fd fd) {
    auto next = std::make_unique<channel::ChannelMemory>(3, kSlots, longest_, -1);
    const auto former = std::exchange(memory_, std::move(next));
    attach(std::move(fd));
    server_.requester.move_to(memory_->endpoint(), channel::Wakeup::engine);
  }

  /// Posts a request in a slot with others until the next flush; returns false if the channel is
  /// full.
  bool gather(const Bytes& request) {
    return server_.requester.post(request, channel::test::Server::somebody()).ok();
  }
  template <class Condition>
  bool run_until(Condition condition) {
    return support::eventually(condition, [&] {
      server_.engine.run_once(core::Clock::now() + std::chrono::milliseconds(1));
    });
  }
  std::optional<Bytes> next_response() {
    std::optional<Bytes> response;
    run_until([&] { return (response = server_.take()).has_value(); });
    return response;
  }
  void expect_failed(const std::string& slot) {
    ASSERT_TRUE(run_until([&] { return remote_worker_->failure() != nullptr; }));
    EXPECT_NE(remote_worker_->failure()->find(slot), std::string::npos)
        << *remote_worker_->failure();
    EXPECT_EQ(server_.take(), std::nullopt);
  }
  /// Reads `count` bytes from the worker's end.
  Bytes read(std::size_t count) {
    Bytes bytes(count);
    std::size_t at = 0;
    EXPECT_TRUE(run_until([&] {
      const auto slot = ::recv(peer_.get(), bytes.data() + at, count - at, MSG_DONTWAIT);
      if (slot > 0) at += static_cast<std::size_t>(slot);
      return at == count;
    }));
    return bytes;
  }
  void write(const Bytes& bytes) {
    std::size_t at = 0;
    ASSERT_TRUE(run_until([&] {
      const auto slot = ::send(peer_.get(), bytes.data() + at, bytes.size() - at, MSG_DONTWAIT);
      if (slot > 0) at += static_cast<std::size_t>(slot);
      return at == bytes.size();
    }));
  }
  std::uint32_t longest_;
  std::unique_ptr<channel::ChannelMemory> memory_ =
      std::make_unique<channel::ChannelMemory>(3, kSlots, longest_, -1);
  channel::test::Server server_{memory_->endpoint()};
  std::optional<WorkerProxy> remote_worker_;
  core::Fd peer_;
};

/// A back end of one thread that reverses.
class Reverser {
 public:
  explicit Reverser(channel::SharedChannel channel)
      : channel_(std::move(channel)), thread_([this] { run(); }) {}
  Reverser(const Reverser&) = delete;
  Reverser& operator=(const Reverser&) = delete;
  ~Reverser() {
    stop_.store(true, std::memory_order_relaxed);
    thread_.join();
  }

 private:
  void run() {
    std::uint64_t sequence = 0;
    while (!stop_.load(std::memory_order_relaxed)) {
      if (kernels::serve(kernels::SingleLane{}, channel_->view(), sequence, kernels::Reverse{},
                         staging_) == kernels::Outcome::nothing) {
        std::this_thread::yield();
      } else {
        ++sequence;
        channel::Ringer(channel_->ringer()).ring();
      }
    }
  }

  channel::SharedChannel channel_;
  kernels::Staging staging_{};
  std::atomic<bool> stop_{false};  ///< relaxed: nothing goes with it
  std::thread thread_;
};

/// Both sides, and a back end.
class RemotePair : public RemoteTest {
 protected:
  explicit RemotePair(std::uint32_t longest = kLongest)
      : RemoteTest(longest), remote_(memory_->descriptor(), line_over(std::move(peer_))) {
    remote_.start(channel::Wakeup::doorbell, [] {});
  }

  ServerProxy remote_;
  Reverser backend_{remote_.channel()};
};

/// The worker's side, with the server's end of the connection in hand.
class RemoteServerTest : public testing::Test {
 protected:
  RemoteServerTest() {
    auto [here, there] = connection();
    server_ = std::move(there);
    remote_.emplace(channel::ChannelMemory(0, kSlots, kLongest, -1).descriptor(),
                    line_over(std::move(here)));
    remote_->start(channel::Wakeup::doorbell,
                   [this] { told_.store(true, std::memory_order_release); });
  }
  void send(const DataHeader& header, std::size_t length) { send(on_wire(header, Bytes(length))); }
  void send(const Bytes& bytes) {
    ASSERT_EQ(::send(server_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  /// Reads `count` bytes from the worker.
  Bytes read(std::size_t count) {
    Bytes bytes(count);
    std::size_t at = 0;
    EXPECT_TRUE(support::eventually([&] {
      const auto got = ::recv(server_.get(), bytes.data() + at, count - at, MSG_DONTWAIT);
      if (got > 0) at += static_cast<std::size_t>(got);
      return at == count;
    }));
    return bytes;
  }
  void expect_failed(const std::string& slot) {
    // Acquire: pairs with the release above.
    ASSERT_TRUE(support::eventually([&] { return told_.load(std::memory_order_acquire); }));
    ASSERT_NE(remote_->failure(), nullptr);
    EXPECT_NE(remote_->failure()->find(slot), std::string::npos) << *remote_->failure();
  }

  core::Fd server_;
  std::atomic<bool> told_{false};
  std::optional<ServerProxy> remote_;
};

}  // namespace offload::comch::test
