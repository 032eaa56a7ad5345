#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/server/client_table.hpp"
#include "net/socket.hpp"
#include "net/source/source.hpp"
#include "tests/net/tls/tls_pair.hpp"
#include "tests/server/fixtures/client_fixture.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/log_capture.hpp"

namespace offload::server {
namespace {

/// A path that takes no whole frame: a client sends the front of one.
struct Nothing {
  bool has_room() const { return room; }
  bool take_frames(Client& client) {
    client.connection().input().consume(std::exchange(takes, 0));
    return true;
  }
  void finish(Client& client) {
    client.connection().finish(gather);
    gather.reset();
  }
  bool room = true;
  std::size_t takes = 0;  ///< bytes, once, as of frames that are whole
  net::OutputBatch gather{8, 512};
};

/// Returns the number of OpenSSL's connections that exist, of those made since the first call.
std::ptrdiff_t count_ssl() {
  static std::ptrdiff_t count = 0;
  [[maybe_unused]] static const int index = SSL_get_ex_new_index(
      0, nullptr, [](void*, void*, CRYPTO_EX_DATA*, int, long, void*) { ++count; }, nullptr,
      [](void*, void*, CRYPTO_EX_DATA*, int, long, void*) { --count; });
  return count;
}

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
  /// Adds a TLS client of that address, whose handshake is done.
  std::unique_ptr<net::TlsStream> add_tls(const std::string& address) {
    auto [client, server] = net::TlsPair::make_sockets();
    sockets_.push_back(std::move(client));
    last_tls_ = server.get();
    net::Stream stream(std::move(server), net::TlsContext::psk_server({key_}));
    auto peer =
        std::make_unique<net::TlsStream>(net::TlsContext::psk_client(key_), sockets_.back().get());
    for (int step = 0; step < 4; ++step) {
      (void)peer->handshake();
      (void)stream.handshake();
    }
    Admission admission;
    admission.address = net::PeerAddress(net::resolve(address, 1).front().storage);
    table_->add(std::move(stream), std::move(admission));
    turn();
    return peer;
  }
  void turn() {
    engine_.run_once(core::TimePoint{});
    table_->serve_round(path_);
    table_->close_overdue();
  }
  /// Returns the first `length` bytes of a frame of 1 MiB.
  static support::Bytes front(std::size_t length) {
    support::Bytes bytes(std::max<std::size_t>(length, 4), std::byte{0});
    protocol::store_big_endian<std::uint32_t>(bytes.data(), (1 << 20) + 12);
    bytes.resize(length);
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
  /// Answers with `length` bytes, of which the client's socket takes a few.
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
  /// Returns the code of the error frame that a client gets; 0: none.
  std::uint32_t refusal(std::size_t client) {
    test::Received received;
    support::eventually([&] { return turn(), received.read(sockets_[client]), received.ended; });
    const auto frame = received.take();
    return frame ? static_cast<std::uint32_t>(protocol::parse_error(frame->payload).code) : 0;
  }

  const net::PreSharedKey key_{"key", support::random_bytes(32, 1)};
  progress::Engine engine_;
  Nothing path_;
  std::optional<ClientMemory> memory_;
  ThreadMetrics metrics_;
  std::optional<ClientTable> table_;
  std::vector<core::Fd> sockets_;
  int last_tls_ = -1;  ///< the server's socket of the last client in TLS
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
  const support::LogCapture log;
  EXPECT_EQ(refusal(1), static_cast<std::uint32_t>(protocol::Refusal::frame_timed_out));
  EXPECT_TRUE(log.has("is disconnected: " +
                      std::string(protocol::describe(protocol::Refusal::frame_timed_out))))
      << log.text();
  test::Received quiet;
  quiet.read(sockets_[0]);
  EXPECT_FALSE(quiet.ended);
}

// A busy client has a part of its next frame here at nearly any time.
TEST_F(HoldingClientsTest, EachFrameHasTheWholeTime) {
  ClientLimits limits;
  limits.frame_timeout = std::chrono::hours(1);
  open(limits);
  add();
  begin(0, 13);
  const core::RunTime first = table_->next_deadline();
  begin(0, 5);  // more of the same frame
  EXPECT_EQ(table_->next_deadline(), first);
  path_.takes = 18;
  begin(0, 13);
  EXPECT_GT(table_->next_deadline(), first);
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
  EXPECT_EQ(refusal(1), static_cast<std::uint32_t>(protocol::Refusal::idle_timed_out));
}

TEST_F(HoldingClientsTest, APauseIsNotTheClientsFault) {
  ClientLimits limits;
  limits.frame_timeout = limits.idle_timeout = std::chrono::hours(1);
  open(limits);
  add();
  begin(0, 13);
  WaitingAddresses waiting;
  waiting.add({}, engine_.now());
  EXPECT_EQ(table_->pause(waiting), engine_.now() + WaitingAddresses::kTime);
  turn();
  begin(0, 1);
  EXPECT_EQ(table_->next_deadline(), core::RunTime::max());
  const auto resumed = engine_.run_time();
  EXPECT_EQ(table_->pause(WaitingAddresses()), core::TimePoint::max());
  turn();
  EXPECT_GE(table_->next_deadline(), resumed + std::chrono::hours(1));
  EXPECT_LT(table_->next_deadline(), core::RunTime::max());
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

// A connection in TLS holds memory although it says nothing.
TEST_F(HoldingClientsTest, BeyondTheBudgetQuietOnesInTlsOfTheSourceThatHasTheMostAreEnded) {
  constexpr std::size_t kBudget = 1 << 20;
  open({}, kBudget);
  Client& plain = add();
  begin(0, 1000);
  std::vector<std::unique_ptr<net::TlsStream>> few;
  std::vector<std::unique_ptr<net::TlsStream>> many;
  for (int i = 0; i < 3; ++i) few.push_back(add_tls("10.0.0.2"));
  std::array<std::byte, 1000> room;
  const auto has_ended = [&](auto& peer) { return peer->receive(room) > 0; };
  while (many.size() < 2 * kBudget / kTlsMemory &&
         (many.empty() || !(turn(), has_ended(many.front())))) {
    many.push_back(add_tls("10.0.0.1"));
  }
  EXPECT_LE((many.size() + few.size() - 1) * kTlsMemory, kBudget);
  EXPECT_EQ(protocol::parse_error(std::span(room).subspan(protocol::kFrameHeaderSize)).code,
            protocol::Refusal::out_of_memory);
  turn();
  const auto ended = std::ranges::count_if(many, has_ended) + 1;
  EXPECT_GE(ended, static_cast<std::ptrdiff_t>(kBudget / 8 / kTlsMemory));
  EXPECT_LT(ended, static_cast<std::ptrdiff_t>(many.size() / 2));
  EXPECT_EQ(std::ranges::count_if(few, has_ended), 0);
  EXPECT_EQ(plain.connection().state(), ConnectionState::open);
}

// Every second one reads nothing, so that it cannot receive the reason for its end.
TEST_F(HoldingClientsTest, ClientsInTlsThatWereEndedHoldNoMoreOfIt) {
  constexpr std::size_t kBudget = 1 << 20;
  open({}, kBudget);
  const auto before = count_ssl();
  std::vector<std::unique_ptr<net::TlsStream>> peers;
  while (peers.size() < 3 * kBudget / kTlsMemory) {
    peers.push_back(add_tls("10.0.0.1"));
    const std::array<std::byte, 4096> words{};
    while (peers.size() % 2 == 0 &&
           ::send(last_tls_, words.data(), words.size(), MSG_NOSIGNAL) > 0) {
    }
    for (int i = 0; i < 3; ++i) turn();
    const auto at_server = static_cast<std::size_t>(count_ssl() - before) - peers.size();
    ASSERT_LE(at_server * kTlsMemory, kBudget) << peers.size();
  }
}

// The memory of those that have left is free for others.
TEST_F(HoldingClientsTest, ClientsInTlsThatHaveLeftCountNoMore) {
  constexpr std::size_t kBudget = 1 << 20;
  open({}, kBudget);
  const std::uint64_t limited = net::limited_sources.count(net::Door::clients);
  for (std::size_t i = 0; i < 3 * kBudget / kTlsMemory; ++i) {
    add_tls("10.0.0.1").reset();
    sockets_.back().reset();
    for (int turns = 0; turns < 3; ++turns) turn();
    ASSERT_EQ(table_->size(), 0U) << i;
  }
  EXPECT_EQ(net::limited_sources.count(net::Door::clients), limited);
}

// Each search for clients that hold too much finds some TLS clients to end.
TEST_F(HoldingClientsTest, NewcomersInTlsDoNotKeepTheLargestHolder) {
  constexpr std::size_t kBudget = 2 << 20;
  constexpr std::size_t kPiece = 256 << 10;
  open({}, kBudget);
  Client& holder = add();
  holder.connection().add_request();  // it stays in the table when it is closed
  std::vector<std::unique_ptr<net::TlsStream>> peers;
  while (peers.size() * kTlsMemory <= kBudget / 2) peers.push_back(add_tls("10.0.0.1"));
  const auto is_open = [&] { return holder.connection().state() == ConnectionState::open; };
  for (std::size_t held = 0; held < 4 * kBudget && is_open(); held += kPiece) {
    answer(holder, kPiece);
    peers.push_back(add_tls("10.0.0.1"));
  }
  EXPECT_FALSE(is_open());
  holder.connection().remove_requests(1);
}

// Messages that hold less than their half are kept while there are TLS clients to end.
TEST_F(HoldingClientsTest, TlsBeyondItsHalfMakesRoomByItself) {
  constexpr std::size_t kBudget = 1 << 20;
  open({}, kBudget);
  Client& holder = add();
  begin(0, 250'000);
  std::vector<std::unique_ptr<net::TlsStream>> peers;
  while (peers.size() < 3 * kBudget / kTlsMemory) peers.push_back(add_tls("10.0.0.1"));
  EXPECT_EQ(holder.connection().state(), ConnectionState::open);
}

TEST_F(HoldingClientsTest, HandshakesAloneMayBeBeyondTheBudget) {
  open({}, 1 << 20);
  table_->set_held_by_handshakes(2 << 20);
  turn();
  EXPECT_EQ(table_->size(), 0U);
}

TEST_F(HoldingClientsTest, HandshakesCountAsHeld) {
  open({}, 1 << 20);
  for (int i = 0; i < 4; ++i) add();
  for (std::size_t i = 0; i < 4; ++i) begin(i, 100'000);
  table_->set_held_by_handshakes(400'000);
  EXPECT_EQ(metrics_.closed[static_cast<std::size_t>(ConnectionEnd::memory)].value(), 0U);
  table_->set_held_by_handshakes(1'000'000);
  turn();
  test::Received first;
  first.read(sockets_[0]);
  EXPECT_TRUE(first.ended);
}

// The rest of its frame is there, and waits in the kernel for room in the channel.
TEST_F(HoldingClientsTest, AFrameThatIsNotReadYetIsNotLate) {
  ClientLimits limits;
  limits.frame_timeout = std::chrono::milliseconds(50);
  open(limits);
  Client& client = add();
  test::send_all(sockets_[0], front(13));
  engine_.run_once(core::TimePoint{});
  table_->serve_round(path_);  // its time is not checked, however long that takes
  path_.room = false;
  test::send_all(sockets_[0], support::Bytes(1));
  turn();
  let_the_deadline_pass();
  EXPECT_EQ(client.connection().state(), ConnectionState::open);
  path_.room = true;  // it is read: what is still missing is late at the next deadline
  EXPECT_EQ(refusal(0), static_cast<std::uint32_t>(protocol::Refusal::frame_timed_out));
}

// It has the whole time again for the frame, as often as there are responses that it has to take.
TEST_F(HoldingClientsTest, AFrameIsNotLateWhileResponsesArePending) {
  ClientLimits limits;
  limits.frame_timeout = std::chrono::milliseconds(50);
  open(limits);
  Client& client = add();
  begin(0, 13);
  answer(client, 1 << 20);
  for (int i = 0; i < 2; ++i) let_the_deadline_pass();
  EXPECT_EQ(client.connection().state(), ConnectionState::open);
  support::Bytes room(1 << 16);
  while (!client.connection().backlog().empty()) {
    ASSERT_GT(::recv(sockets_[0].get(), room.data(), room.size(), 0), 0);
    turn();
  }
  let_the_deadline_pass();
  EXPECT_NE(client.connection().state(), ConnectionState::open);
  EXPECT_EQ(client.connection().end(), ConnectionEnd::timeout);
}

TEST_F(HoldingClientsTest, OneThatTakesNothingIsEndedAtItsFirstDeadline) {
  ClientLimits limits;
  limits.output_timeout = std::chrono::milliseconds(50);
  open(limits);
  Client& client = add();
  answer(client, 4 << 20);
  const support::LogCapture log;
  let_the_deadline_pass();
  EXPECT_EQ(client.connection().state(), ConnectionState::closed);
  EXPECT_EQ(client.connection().end(), ConnectionEnd::timeout);
  EXPECT_TRUE(log.has("is disconnected: it reads its responses too slowly")) << log.text();
}

// It has taken all that was pending as the first interval began, and nothing in the second.
TEST_F(HoldingClientsTest, OneThatTakesLittleAfterItsFirstDeadlineIsEndedAtItsSecond) {
  ClientLimits limits;
  limits.output_timeout = std::chrono::milliseconds(300);
  open(limits);
  Client& client = add();
  const net::Backlog& backlog = client.connection().backlog();
  answer(client, 1 << 20);
  const std::uint64_t pending = backlog.appended();
  answer(client, 1 << 20);
  support::Bytes room(1 << 16);
  while (backlog.consumed() < pending && client.connection().state() == ConnectionState::open) {
    ASSERT_GT(::recv(sockets_[0].get(), room.data(), room.size(), 0), 0);
    turn();
  }
  let_the_deadline_pass();
  ASSERT_EQ(client.connection().state(), ConnectionState::open);
  ASSERT_FALSE(backlog.empty());
  let_the_deadline_pass();
  EXPECT_EQ(client.connection().state(), ConnectionState::closed);
  EXPECT_EQ(client.connection().end(), ConnectionEnd::timeout);
}

// It would not read the reason, either: its memory would stay with it.
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
