#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "apps/server/client_table.hpp"
#include "tests/server/fixtures/client_fixture.hpp"
#include "tests/support/eventually.hpp"

namespace offload::server {
namespace {

/// A path that takes nothing: what comes is the front of a frame.
struct Nothing {
  bool has_room() const { return room; }
  bool take_frames(Client&) { return true; }
  void finish(Client& client) { client.connection().finish(gather); }
  bool room = true;
  net::OutputBatch gather{8, 512};
};

class HoldingClientsTest : public testing::Test {
 protected:
  void open(const ClientLimits& limits, std::uint64_t budget = std::uint64_t{1} << 30) {
    memory_.emplace(budget, 1);
    table_.emplace(engine_, 1 << 20, limits, *memory_, metrics_);
  }
  Client& add() {
    auto [client, server] = test::connected_sockets();
    sockets_.push_back(std::move(client));
    Client& added = table_->add(std::move(server));
    turn();
    return added;
  }
  void turn() {
    engine_.run_once(core::TimePoint{});
    table_->serve_round(path_);
    table_->close_overdue();
  }
  /// The beginning of a frame of 1 MiB, `length` bytes of it.
  static support::Bytes front(std::size_t length) {
    support::Bytes bytes(length, std::byte{0});
    protocol::store_big_endian<std::uint32_t>(bytes.data(), (1 << 20) + 12);
    return bytes;
  }
  void begin(std::size_t client, std::size_t length) {
    const support::Bytes bytes = front(length);
    for (std::size_t sent = 0; sent < length;) {
      const auto count = ::send(sockets_[client].get(), bytes.data() + sent, length - sent, 0);
      if (count > 0) sent += static_cast<std::size_t>(count);
      turn();
    }
    turn();
  }
  /// Answers of so many bytes, of which its socket takes a few.
  void answer(Client& client, std::size_t length) {
    support::Bytes bytes(length, std::byte{0});
    path_.gather.refer(client.connection().chain(), bytes);
    EXPECT_EQ(client.connection().send(path_.gather), length);
    path_.gather.reset();
    ASSERT_FALSE(client.connection().backlog().empty());
    table_->make_ready(client);
    turn();
  }
  /// Takes the turn that comes after the next deadline.
  void let_the_deadline_pass() {
    const auto due = table_->next_deadline();
    ASSERT_LT(due, core::RunTime::max());
    ASSERT_TRUE(
        support::eventually([&] { return engine_.run_once({}), engine_.run_time() >= due; }));
    turn();
  }
  /// The code of the error frame that a client gets; 0: none.
  std::uint32_t refusal(std::size_t client) {
    test::Received received;
    support::eventually([&] { return turn(), received.read(sockets_[client]), received.ended; });
    const auto frame = received.take();
    return frame ? static_cast<std::uint32_t>(protocol::parse_error(frame->payload).code) : 0;
  }

  progress::Engine engine_;
  Nothing path_;
  std::optional<ClientMemory> memory_;
  ThreadMetrics metrics_;
  std::optional<ClientTable> table_;
  std::vector<core::Fd> sockets_;
};

TEST_F(HoldingClientsTest, AFewBytesHoldAFew) {
  open({});
  Client& client = add();
  begin(0, 13);
  EXPECT_EQ(client.connection().input().bytes().size(), 13U);
  EXPECT_LE(client.connection().input().held(), 64U);
}

TEST_F(HoldingClientsTest, AFrameThatDoesNotComeWholeEndsItsClient) {
  ClientLimits limits;
  limits.frame_timeout = std::chrono::milliseconds(50);
  open(limits);
  add();
  add();
  begin(1, 13);
  EXPECT_EQ(refusal(1), static_cast<std::uint32_t>(protocol::Refusal::frame_timed_out));
  test::Received quiet;
  quiet.read(sockets_[0]);
  EXPECT_FALSE(quiet.ended);
}

TEST_F(HoldingClientsTest, AnIdleClientIsEnded) {
  ClientLimits limits;
  limits.idle_timeout = std::chrono::milliseconds(50);
  open(limits);
  add();
  Client& busy = add();
  busy.connection().add_request();
  EXPECT_EQ(refusal(0), static_cast<std::uint32_t>(protocol::Refusal::idle_timed_out));
  EXPECT_EQ(busy.connection().state(), ConnectionState::open);
  busy.connection().remove_requests(1);
}

TEST_F(HoldingClientsTest, BeyondTheBudgetTheLargestAreEnded) {
  open({}, 2 << 20);
  for (int i = 0; i < 5; ++i) add();
  begin(0, 1000);
  for (std::size_t i = 1; i < 5; ++i) begin(i, 700'000);
  EXPECT_GT(table_->size(), 0U);
  int ended = 0;
  for (std::size_t i = 1; i < 5; ++i) {
    test::Received received;
    received.read(sockets_[i]);
    if (!received.ended) continue;
    ++ended;
    EXPECT_EQ(refusal(i), 0U);  // it was read above
    const auto frame = received.take();
    ASSERT_TRUE(frame);
    EXPECT_EQ(protocol::parse_error(frame->payload).code, protocol::Refusal::out_of_memory);
  }
  EXPECT_GE(ended, 2);
  EXPECT_LE(ended, 4);
  test::Received small;
  small.read(sockets_[0]);
  EXPECT_FALSE(small.ended);
}

// The rest of its frame is there, and waits in the kernel for room in the channel.
TEST_F(HoldingClientsTest, AFrameThatIsNotReadYetIsNotLate) {
  ClientLimits limits;
  limits.frame_timeout = std::chrono::milliseconds(50);
  open(limits);
  Client& client = add();
  test::send_all(sockets_[0], front(13));
  engine_.run_once(core::TimePoint{});
  table_->serve_round(path_);  // however long that takes, its time is not looked at
  path_.room = false;
  test::send_all(sockets_[0], support::Bytes(1));
  turn();
  let_the_deadline_pass();
  EXPECT_EQ(client.connection().state(), ConnectionState::open);
}

TEST_F(HoldingClientsTest, OneThatTakesNothingIsEndedAtItsFirstDeadline) {
  ClientLimits limits;
  limits.output_timeout = std::chrono::milliseconds(50);
  open(limits);
  Client& client = add();
  answer(client, 4 << 20);
  let_the_deadline_pass();
  EXPECT_EQ(client.connection().state(), ConnectionState::closed);
  EXPECT_EQ(client.connection().end(), ConnectionEnd::timeout);
}

// It would not read why, either: its memory would stay with it.
TEST_F(HoldingClientsTest, BeyondTheBudgetOneThatTakesNothingIsEndedAtOnce) {
  open({}, 2 << 20);
  answer(add(), 4 << 20);
  add();
  begin(1, 13);
  EXPECT_TRUE(support::eventually([&] { return turn(), table_->size() == 1; }));
  test::Received small;
  small.read(sockets_[1]);
  EXPECT_FALSE(small.ended);
}

}  // namespace
}  // namespace offload::server
