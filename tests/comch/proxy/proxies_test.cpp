#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comch/proxy/server_proxy.hpp"
#include "comch/proxy/worker_proxy.hpp"
#include "comch/transport/tcp/data.hpp"
#include "net/socket.hpp"
#include "protocol/data.hpp"
#include "tests/channel/channel_fixture.hpp"
#include "tests/support/eventually.hpp"

/// A channel whose worker is at the other end of a connection.
namespace offload::comch {
namespace {

using protocol::DataHeader;
using protocol::kDataHeaderSize;
using support::Bytes;
using support::random_bytes;

constexpr std::uint32_t kSlots = 4;
constexpr std::uint32_t kLongest = 100'000;

std::unique_ptr<DataEndpoint> line_over(core::Fd connection) {
  return std::make_unique<TcpDataEndpoint>(Stream(std::move(connection)));
}

/// Two ends of a TCP connection.
std::pair<core::Fd, core::Fd> connection() {
  const auto address = net::resolve("127.0.0.1", 0, true).front();
  const core::Fd listener = net::listen_tcp(address, 1);
  core::Fd one = net::start_connect(net::local_address(listener.get()));
  core::Fd other;
  EXPECT_TRUE(support::eventually([&] {
    other = core::Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    return other.valid();
  }));
  return {std::move(one), std::move(other)};
}

/// The server's side, with the worker's end of the connection in hand.
class RemoteTest : public testing::Test {
 protected:
  RemoteTest() {
    auto [here, there] = connection();
    peer_ = std::move(there);
    attach(std::move(here));
    server_.requester.set_wakeup(channel::Wakeup::engine);
  }
  void attach(core::Fd fd) {
    remote_worker_.reset();
    remote_worker_.emplace(server_.requester, memory_->endpoint(), line_over(std::move(fd)));
  }
  /// To the next worker, whose memory is another.
  void move_on(core::Fd fd) {
    auto next = std::make_unique<channel::ChannelMemory>(3, kSlots, kLongest, -1);
    const auto former = std::exchange(memory_, std::move(next));
    attach(std::move(fd));
    server_.requester.move_to(memory_->endpoint(), channel::Wakeup::engine);
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
  /// As many bytes as are asked for, from the worker's end.
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
  static Bytes message(const DataHeader& header, const Bytes& payload = {}) {
    Bytes bytes(kDataHeaderSize);
    header.store(bytes.data());
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    return bytes;
  }
  /// A response as long as it says.
  static Bytes response(std::uint64_t sequence, const Bytes& payload) {
    return message({sequence, static_cast<std::uint32_t>(payload.size()), 0}, payload);
  }

  std::unique_ptr<channel::ChannelMemory> memory_ =
      std::make_unique<channel::ChannelMemory>(3, kSlots, kLongest, -1);
  channel::test::Server server_{memory_->endpoint()};
  std::optional<WorkerProxy> remote_worker_;
  core::Fd peer_;
};

TEST_F(RemoteTest, ARequestLooksLikeThisOnTheWire) {
  ASSERT_TRUE(server_.post(random_bytes(5, 1)));
  ASSERT_TRUE(server_.post(random_bytes(1000, 2)));
  EXPECT_EQ(read(kDataHeaderSize + 5), response(0, random_bytes(5, 1)));
  EXPECT_EQ(read(kDataHeaderSize + 1000), response(1, random_bytes(1000, 2)));
}

TEST_F(RemoteTest, AResponseComesInAnyPieces) {
  ASSERT_TRUE(server_.post(random_bytes(5, 1)));
  ASSERT_TRUE(server_.post(random_bytes(3000, 2)));
  read(2 * kDataHeaderSize + 3005);
  Bytes both = response(0, random_bytes(7, 3));
  const Bytes second = response(1, random_bytes(2000, 4));
  both.insert(both.end(), second.begin(), second.end());
  for (std::size_t at = 0; at < both.size(); at += 13) {
    write(Bytes(both.begin() + static_cast<std::ptrdiff_t>(at),
                both.begin() + static_cast<std::ptrdiff_t>(std::min(at + 13, both.size()))));
  }
  EXPECT_EQ(next_response(), random_bytes(7, 3));
  EXPECT_EQ(next_response(), random_bytes(2000, 4));
}

TEST_F(RemoteTest, AStatusIsPassedOn) {
  ASSERT_TRUE(server_.post(random_bytes(5, 1)));
  read(kDataHeaderSize + 5);
  write(message({0, 0, 1}));
  EXPECT_EQ(next_response(), Bytes{});
  EXPECT_EQ(server_.last_status, kernels::Status::bad_length);
}

TEST_F(RemoteTest, NothingWasAsked) {
  write(response(0, random_bytes(5, 1)));
  expect_failed("not due");
}

TEST_F(RemoteTest, AnotherResponseIsDue) {
  ASSERT_TRUE(server_.post(random_bytes(5, 1)));
  ASSERT_TRUE(server_.post(random_bytes(5, 2)));
  read(2 * (kDataHeaderSize + 5));
  write(response(1, random_bytes(5, 2)));
  expect_failed("not due");
}

TEST_F(RemoteTest, OneResponseTwice) {
  ASSERT_TRUE(server_.post(random_bytes(5, 1)));
  read(kDataHeaderSize + 5);
  write(response(0, random_bytes(5, 1)));
  EXPECT_EQ(next_response(), random_bytes(5, 1));
  write(response(0, random_bytes(500, 1)));
  expect_failed("not due");
}

TEST_F(RemoteTest, AResponseLongerThanTheChannels) {
  ASSERT_TRUE(server_.post(random_bytes(5, 1)));
  read(kDataHeaderSize + 5);
  write(message({0, kLongest + 1, 0}));
  expect_failed("over the 100000 of the channel");
}

TEST_F(RemoteTest, TheLongestLengthThatCanBeSaid) {
  ASSERT_TRUE(server_.post(random_bytes(5, 1)));
  read(kDataHeaderSize + 5);
  write(message({0, ~0U, 0}));
  expect_failed("over the 100000 of the channel");
}

TEST_F(RemoteTest, AWorkerThatGoes) {
  peer_.reset();
  expect_failed("closed the connection");
}

// What one worker has not answered whole is the next one's, from the first byte.
TEST_F(RemoteTest, TheNextWorkerGetsWhatIsNotAnswered) {
  for (std::uint32_t i = 0; i < kSlots; ++i) ASSERT_TRUE(server_.post(random_bytes(500, i)));
  read(kSlots * (kDataHeaderSize + 500));
  write(response(0, random_bytes(5, 10)));
  Bytes half = response(1, random_bytes(600, 11));
  half.resize(half.size() / 2);
  write(half);
  EXPECT_EQ(next_response(), random_bytes(5, 10));

  auto [here, there] = connection();
  peer_ = std::move(there);
  move_on(std::move(here));
  for (std::uint32_t i = 1; i < kSlots; ++i) {
    EXPECT_EQ(read(kDataHeaderSize + 500), response(i - 1, random_bytes(500, i)));
  }
  for (std::uint32_t i = 1; i < kSlots; ++i) write(response(i - 1, random_bytes(600, i)));
  for (std::uint32_t i = 1; i < kSlots; ++i) EXPECT_EQ(next_response(), random_bytes(600, i));
}

// A worker that stands by has a proxy too: it sends nothing while the requester is with another.
TEST_F(RemoteTest, WaitsWhileTheRequesterIsWithAnotherWorker) {
  channel::ChannelMemory other(3, kSlots, kLongest, -1);
  server_.requester.move_to(other.endpoint(), channel::Wakeup::doorbell);
  ASSERT_TRUE(server_.post(random_bytes(5, 1)));
  for (int turn = 0; turn < 100; ++turn) server_.engine.progress();
  std::byte any{};
  EXPECT_EQ(::recv(peer_.get(), &any, 1, MSG_DONTWAIT), -1);
  server_.requester.move_to(memory_->endpoint(), channel::Wakeup::engine);
  EXPECT_EQ(read(kDataHeaderSize + 5), response(0, random_bytes(5, 1)));
  write(response(0, random_bytes(7, 2)));
  EXPECT_EQ(next_response(), random_bytes(7, 2));
}

/// Both sides, and a back end of one thread that reverses.
class RemotePair : public RemoteTest {
 protected:
  RemotePair() : remote_(memory_->descriptor(), line_over(std::move(peer_))) {
    remote_.start(channel::Wakeup::doorbell, [] {});
    backend_ = std::thread([this] {
      std::uint64_t sequence = 0;
      while (!stop_.load(std::memory_order_relaxed)) {
        if (kernels::serve(kernels::SingleLane{}, remote_.channel()->view(), sequence,
                           kernels::Reverse{}, staging_) == kernels::Outcome::nothing) {
          std::this_thread::yield();
        } else {
          ++sequence;
          channel::Ringer(remote_.channel()->ringer()).ring();
        }
      }
    });
  }
  ~RemotePair() override {
    stop_.store(true, std::memory_order_relaxed);
    backend_.join();
  }

  ServerProxy remote_;
  kernels::Staging staging_{};
  std::atomic<bool> stop_{false};  ///< relaxed: nothing goes with it
  std::thread backend_;
};

TEST_F(RemotePair, EverySizeInOrder) {
  std::vector<std::uint32_t> sizes;
  for (std::uint32_t size = 0; size < 400; size += 7) sizes.push_back(size);
  for (const std::uint32_t size : {371U, 372U, 373U, 4096U, 65'535U, 65'536U, kLongest}) {
    sizes.push_back(size);
  }
  std::deque<Bytes> expected;
  for (std::size_t i = 0; i < sizes.size() || !expected.empty();) {
    if (i < sizes.size()) {
      auto request = random_bytes(sizes[i], static_cast<std::uint32_t>(i));
      if (server_.post(request)) {
        (void)server_.requester.flush();
        std::reverse(request.begin(), request.end());
        expected.push_back(std::move(request));
        ++i;
        continue;
      }
    }
    ASSERT_EQ(next_response(), expected.front());
    expected.pop_front();
  }
}

TEST_F(RemotePair, TheServerGoes) {
  remote_worker_.reset();
  EXPECT_TRUE(support::eventually([&] { return remote_.failure() != nullptr; }));
  EXPECT_NE(remote_.failure()->find("closed the connection"), std::string::npos);
}

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
  void send(const DataHeader& header, std::size_t payload) {
    Bytes bytes(kDataHeaderSize + payload);
    header.store(bytes.data());
    ASSERT_EQ(::send(server_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
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

TEST_F(RemoteServerTest, MoreRequestsThanSlots) {
  for (std::uint64_t i = 0; i < kSlots; ++i) send({i, 10, 0}, 10);
  EXPECT_EQ(remote_->failure(), nullptr);
  send({kSlots, 10, 0}, 10);
  expect_failed("not due");
}

TEST_F(RemoteServerTest, AnotherRequestIsDue) {
  send({1, 10, 0}, 10);
  expect_failed("not due");
}

TEST_F(RemoteServerTest, ALongOneThatIsNotDue) {
  send({7, 5000, 0}, 100);
  expect_failed("not due");
}

TEST_F(RemoteServerTest, ARequestLongerThanTheChannels) {
  send({0, kLongest + 1, 0}, 0);
  expect_failed("over the 100000 of the channel");
}

TEST(ServerProxy, AnImpossibleShape) {
  auto [here, there] = connection();
  const protocol::ChannelDescriptor shape{0, 3, 100, {}, {}};
  EXPECT_THROW(ServerProxy(shape, line_over(std::move(here))), core::Error);
}

}  // namespace
}  // namespace offload::comch
