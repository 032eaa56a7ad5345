#include "comch/transport/tcp/data.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <climits>
#include <memory>

#include "channel/channel_memory.hpp"
#include "tests/comch/transport/recording_handler.hpp"
#include "tests/support/bytes.hpp"

namespace offload::comch {
namespace {

using protocol::DataHeader;
using protocol::kDataHeaderSize;
using support::Bytes;
using support::random_bytes;

constexpr std::uint32_t kTcpDepth = 4;
constexpr std::uint32_t kTcpLongest = 300'000;

/// A data connection, and the peer's socket.
class TcpData : public testing::Test {
 protected:
  void start(std::uint32_t initial_credits) { start(initial_credits, channel_); }
  void start(std::uint32_t initial_credits, channel::ChannelMemory& channel) {
    connection_.reset();
    std::array<int, 2> fds{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()), 0);
    peer_ = core::Fd(fds[1]);
    TcpDataEndpoint endpoint{TcpStream(core::Fd(fds[0]))};
    connection_ = endpoint.start(engine_, channel.endpoint().view, handler_, initial_credits);
  }
  static Bytes message(std::uint64_t sequence, const Bytes& payload, std::uint16_t count = 0) {
    Bytes bytes(kDataHeaderSize);
    DataHeader{sequence, static_cast<std::uint32_t>(payload.size()), count}.store(bytes.data());
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    return bytes;
  }
  /// Writes all of it, with turns of the engine when there is no room.
  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty() && !connection_->failed()) {
      const auto sent = ::send(peer_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent > 0) bytes = bytes.subspan(static_cast<std::size_t>(sent));
      turn();
    }
    turn();
  }
  Bytes read_all(std::size_t size) {
    Bytes all(size);
    std::size_t at = 0;
    for (int turns = 0; at != size && turns < 10'000; ++turns) {
      turn();
      const auto received = ::recv(peer_.get(), all.data() + at, size - at, 0);
      if (received > 0) at += static_cast<std::size_t>(received);
    }
    EXPECT_EQ(at, size);
    return all;
  }
  void turn() {
    engine_.run_once(core::Clock::now());
    while (engine_.progress()) continue;
  }
  void expect_failed(const std::string& reason) {
    turn();
    ASSERT_TRUE(connection_->failed());
    EXPECT_NE(connection_->failure()->find(reason), std::string::npos) << *connection_->failure();
  }

  progress::Engine engine_;
  channel::ChannelMemory channel_{0, kTcpDepth, kTcpLongest, -1};
  test::RecordingHandler handler_{channel_.endpoint().view};
  core::Fd peer_;
  std::unique_ptr<DataConnection> connection_;
};

TEST_F(TcpData, MessagesAreReceivedHoweverTheStreamCutsThem) {
  for (const std::uint32_t length : {0U, 100U, 372U, 373U, 70'000U, kTcpLongest}) {
    handler_.taken.clear();
    start(kTcpDepth);
    const Bytes first = random_bytes(length, 1);
    const Bytes second = random_bytes(10, 2);
    Bytes bytes = message(0, first);
    const Bytes next = message(1, second);
    bytes.insert(bytes.end(), next.begin(), next.end());
    const std::size_t cut = bytes.size() / 3;
    write(std::span(bytes).first(cut));
    write(std::span(bytes).subspan(cut, cut));
    write(std::span(bytes).subspan(2 * cut));
    EXPECT_EQ(handler_.taken, (std::vector<Bytes>{first, second})) << length;
    EXPECT_FALSE(connection_->failed());
  }
}

TEST_F(TcpData, AMessageWaitsForItsLastByte) {
  for (const std::uint32_t length : {1U, 372U, 373U, 70'000U, kTcpLongest}) {
    handler_.taken.clear();
    start(kTcpDepth);
    const Bytes payload = random_bytes(length, 1);
    const Bytes bytes = message(0, payload);
    write(std::span(bytes).first(bytes.size() - 1));
    EXPECT_TRUE(handler_.taken.empty()) << length;
    write(std::span(bytes).last(1));
    EXPECT_EQ(handler_.taken, std::vector<Bytes>{payload}) << length;
  }
}

TEST_F(TcpData, ABatchIsReceivedWithItsCount) {
  start(kTcpDepth);
  const Bytes batch = random_bytes(kernels::kMaxBatchContent, 1);
  write(message(0, batch, kernels::kMaxBatchCount));
  write(message(1, Bytes(4), 2));
  EXPECT_EQ(handler_.taken, (std::vector<Bytes>{batch, Bytes(4)}));
  EXPECT_EQ(handler_.counts, (std::vector<std::uint32_t>{kernels::kMaxBatchCount, 2}));
}

TEST_F(TcpData, SendsWaitForRoom) {
  start(0);
  std::vector<Bytes> payloads;
  Bytes expected;
  for (std::uint32_t i = 0; i < kTcpDepth; ++i) {
    payloads.push_back(random_bytes(kTcpLongest, i));
    const Bytes bytes = message(i, payloads.back());
    expected.insert(expected.end(), bytes.begin(), bytes.end());
  }
  for (std::uint32_t i = 0; i < kTcpDepth; ++i) {
    connection_->post_send({i, kTcpLongest, 0}, payloads[i].data());
  }
  turn();
  EXPECT_LT(handler_.sent, kTcpDepth) << "more than the socket has room for";
  EXPECT_EQ(read_all(expected.size()), expected);
  EXPECT_EQ(handler_.sent, kTcpDepth);
}

// Each message has two pieces, a header and a payload.
TEST_F(TcpData, MoreMessagesAreSentThanACallTakesPieces) {
  channel::ChannelMemory deep{0, IOV_MAX, 64, -1};
  start(0, deep);
  const Bytes payload = random_bytes(10, 1);
  for (std::uint32_t i = 0; i < IOV_MAX; ++i) connection_->post_send({i, 10, 0}, payload.data());
  const Bytes all = read_all(IOV_MAX * (kDataHeaderSize + 10));
  EXPECT_EQ(Bytes(all.end() - 10, all.end()), payload);
  EXPECT_EQ(handler_.sent, IOV_MAX);
  EXPECT_EQ(connection_->failure(), nullptr);
  connection_.reset();  // before its channel
}

TEST_F(TcpData, AnAnswerIsTakenOnceItsRequestIsSent) {
  start(0);
  const Bytes payload = random_bytes(10, 1);
  connection_->post_send({0, 10, 0}, payload.data());
  turn();
  write(message(0, payload));
  EXPECT_EQ(handler_.taken.size(), 1U);
  EXPECT_EQ(handler_.batches, 1U);
  write(message(1, payload));
  expect_failed("not due");
}

TEST_F(TcpData, HeadersThatLie) {
  start(kTcpDepth);
  Bytes header(kDataHeaderSize);
  DataHeader{0, kTcpLongest + 1, 0}.store(header.data());
  write(header);
  expect_failed("a message of 300001 bytes, over the 300000 of the channel");
  start(kTcpDepth);
  write(message(0, Bytes(3), 2));
  expect_failed("3 bytes, which are not a batch of 2 messages");
  start(kTcpDepth);
  write(message(1, {}));
  expect_failed("not due");
  EXPECT_TRUE(handler_.taken.empty());
}

// 8 receives. One takes 64 KiB of a message at most, and the next its last byte: so a turn takes
// four messages. The socket reports no event for the rest.
TEST_F(TcpData, ATurnTakesABoundedPartAndTheRestKeepsTheEngineAwake) {
  start(5);
  turn();
  const Bytes payload = random_bytes(64 * 1024 + 1 - kDataHeaderSize, 1);
  Bytes all;
  for (std::uint32_t i = 0; i < 5; ++i) {
    const auto next = message(i, i < 4 ? payload : Bytes());
    all.insert(all.end(), next.begin(), next.end());
  }
  const int room = static_cast<int>(all.size());  // of which the system gives twice as much
  ASSERT_EQ(::setsockopt(peer_.get(), SOL_SOCKET, SO_SNDBUF, &room, sizeof room), 0);
  ASSERT_EQ(::send(peer_.get(), all.data(), all.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(all.size()));
  for (int i = 0; i < 1000 && handler_.taken.empty(); ++i) engine_.run_once(core::Clock::now());
  EXPECT_EQ(handler_.taken, std::vector<Bytes>(4, payload));
  EXPECT_EQ(engine_.arm(), core::Duration{});
  engine_.disarm();
  EXPECT_TRUE(engine_.progress());
  EXPECT_EQ(handler_.taken.size(), 5U);
}

TEST_F(TcpData, ATurnTellsOfItsWork) {
  start(kTcpDepth);
  turn();
  const Bytes payload = random_bytes(10, 1);
  connection_->post_send({0, 10, 0}, payload.data());
  EXPECT_TRUE(engine_.progress());
  turn();
  const Bytes bytes = message(0, payload);
  ASSERT_EQ(::send(peer_.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  EXPECT_TRUE(engine_.run_once(core::Clock::now()));  // takes the event
  EXPECT_EQ(handler_.taken.size(), 0U);
  EXPECT_TRUE(engine_.progress());
  EXPECT_EQ(handler_.taken.size(), 1U);
}

TEST_F(TcpData, TheEngineSleepsWhileThereIsNothingToCarry) {
  start(kTcpDepth);
  const Bytes payload = random_bytes(kTcpLongest, 1);
  for (const bool full : {false, true}) {
    if (full) {
      for (std::uint32_t i = 0; i < kTcpDepth; ++i) {
        connection_->post_send({i, kTcpLongest, 0}, payload.data());
      }
    }
    turn();
    EXPECT_GT(engine_.arm(), core::Duration{}) << full;
    engine_.disarm();
  }
  EXPECT_LT(handler_.sent, kTcpDepth);
}

TEST_F(TcpData, ASendToAPeerThatIsGone) {
  start(0);
  peer_ = {};
  const Bytes payload = random_bytes(10, 1);
  connection_->post_send({0, 10, 0}, payload.data());
  expect_failed("the connection broke: ");
}

TEST_F(TcpData, APeerThatLeaves) {
  start(kTcpDepth);
  const Bytes bytes = message(0, Bytes(1000));
  write(std::span(bytes).first(500));
  peer_ = {};
  expect_failed("the peer closed the connection");
}

TEST_F(TcpData, AMessageThatTheHandlerDoesNotTake) {
  start(kTcpDepth);
  handler_.takes = false;
  write(message(0, Bytes(10)));
  expect_failed("is not acceptable");
}

}  // namespace
}  // namespace offload::comch
