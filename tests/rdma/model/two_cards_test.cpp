#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <deque>
#include <utility>

#include "core/error.hpp"
#include "tests/rdma/model/card_fixture.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/thrown.hpp"

/// Tests of two cards between which datagrams go, and of queue pairs whose owner is a process.
namespace offload::rdma::model::test {
namespace {

using rdma::LocalBuffer;
using rdma::Opcode;
using rdma::Posted;
using rdma::SendWork;
using rdma::Syndrome;

constexpr std::uint32_t kNumber = 0x50;
constexpr std::uint32_t kPsn = 100;
constexpr std::uint32_t kBytes = 32 << 10;

/// Keeps the datagrams that a card sends.
class HeldWire : public Wire {
 public:
  void send(std::uint32_t /*address*/, std::span<const std::byte> datagram) override {
    held.emplace_back(datagram.begin(), datagram.end());
    ++sent;
  }

  std::deque<std::vector<std::byte>> held;
  std::uint64_t sent = 0;
};

/// A card with one queue pair, and memory that the peer may use.
struct Side {
  explicit Side(std::uint32_t own_address) : address(own_address) { card.set_wire(&wire); }

  void connect(std::uint32_t peer_address, PairChange change = {}) {
    change.state = State::sending;
    change.rights = RemoteRights{true, true, true};
    change.peer = kNumber;
    change.remote = peer_address;
    if (!change.send_psn) change.send_psn = kPsn;
    change.receive_psn = kPsn;
    card.change(kNumber, change);
  }
  void post(const SendWork& work) {
    ASSERT_EQ(owner.post(work), Posted::done);
    owner.publish();
    card.ring(kNumber);
    card.progress();
  }

  std::uint32_t address;
  HeldWire wire;
  Card card;
  Owner owner{card, Owner::Process{kNumber}, 16, 8};
  Memory memory{card, kBytes, {true, true, true}};
};

class TwoCardsTest : public testing::Test {
 protected:
  static SendWork work_of(Opcode opcode, const LocalBuffer& buffer) {
    SendWork work;
    work.opcode = opcode;
    work.flags = rdma::kSignaled;
    work.buffers = &buffer;
    work.buffer_count = 1;
    return work;
  }
  static void deliver(Side& from, Side& to) {
    for (; !from.wire.held.empty(); from.wire.held.pop_front()) {
      to.card.receive(from.address, from.wire.held.front());
    }
  }
  void turn() {
    deliver(here_, there_);
    there_.card.progress();
    deliver(there_, here_);
    here_.card.progress();
  }
  /// Returns the next completion of the requester; none after a while.
  std::optional<rdma::Completion> completion() {
    const auto deadline = Clock::now() + std::chrono::seconds(20);
    while (Clock::now() < deadline) {
      turn();
      if (const auto polled = here_.owner.poll()) return polled;
    }
    return std::nullopt;
  }
  /// Hands a datagram from here to the card there. Returns the number of its answers.
  std::size_t answers_to(const DatagramHeader& header, std::span<const std::byte> bytes) {
    std::vector<std::byte> datagram(sizeof header + bytes.size());
    std::memcpy(datagram.data(), &header, sizeof header);
    std::copy(bytes.begin(), bytes.end(), datagram.begin() + sizeof header);
    there_.wire.held.clear();
    there_.card.receive(here_.address, datagram);
    return there_.wire.held.size();
  }
  /// Returns the header of a request for the first word there.
  DatagramHeader request_of(Opcode opcode) {
    DatagramHeader header;
    header.to = header.from = kNumber;
    header.psn = kPsn;
    header.opcode = static_cast<std::uint8_t>(opcode);
    header.rkey = there_.memory.key();
    header.remote = there_.memory.address();
    header.total = header.length = sizeof(std::uint64_t);
    return header;
  }

  Side here_{1};
  Side there_{2};
};

TEST_F(TwoCardsTest, AMessageOfSeveralPartsArrives) {
  here_.connect(2);
  there_.connect(1);
  const auto data = support::random_bytes(kBytes, 1);
  std::copy(data.begin(), data.end(), here_.memory.bytes().begin());
  ASSERT_EQ(there_.owner.post_receive(there_.memory.local(0, kBytes)), Posted::done);
  here_.post(work_of(Opcode::send, here_.memory.local(0, kBytes)));
  const auto sent = completion();
  ASSERT_TRUE(sent.has_value());
  EXPECT_FALSE(sent->is_error());
  EXPECT_EQ(there_.owner.poll_receive().value().byte_count, kBytes);
  EXPECT_TRUE(std::equal(data.begin(), data.end(), there_.memory.bytes().begin()));
}

TEST_F(TwoCardsTest, ADatagramWithAnUnknownOperationIsDropped) {
  there_.connect(1);
  const auto bytes = support::random_bytes(8, 2);
  for (const unsigned opcode : {0x00U, 0x01U, 0x0bU + 1, 0x0fU, 0x13U, 0x23U, 0xffU}) {
    DatagramHeader header = request_of(Opcode::rdma_write);
    header.opcode = static_cast<std::uint8_t>(opcode);
    EXPECT_EQ(answers_to(header, bytes), 0U) << opcode;
    EXPECT_EQ(there_.memory.word(0), 0U) << opcode;
  }
  EXPECT_EQ(answers_to(request_of(Opcode::rdma_write), bytes), 1U);
  EXPECT_NE(there_.memory.word(0), 0U);
}

TEST_F(TwoCardsTest, AnAtomicDatagramOfAnotherLengthIsDropped) {
  there_.connect(1);
  for (const std::uint64_t length : {0U, 1U, 7U, 9U, 16U}) {
    DatagramHeader header = request_of(Opcode::fetch_add);
    header.compare_add = 1;
    header.total = header.length = length;
    EXPECT_EQ(answers_to(header, {}), 0U) << length;
    EXPECT_EQ(there_.memory.word(0), 0U) << length;
  }
  DatagramHeader header = request_of(Opcode::fetch_add);
  header.compare_add = 1;
  EXPECT_EQ(answers_to(header, {}), 1U);
  EXPECT_EQ(there_.memory.word(0), 1U);
}

TEST_F(TwoCardsTest, ADuplicateIsAnsweredAndNotCarriedOutAgain) {
  there_.connect(1);
  DatagramHeader header = request_of(Opcode::fetch_add);
  header.compare_add = 1;
  EXPECT_EQ(answers_to(header, {}), 1U);
  const auto first = there_.wire.held.front();
  EXPECT_EQ(answers_to(header, {}), 1U);
  EXPECT_EQ(there_.wire.held.front(), first);
  EXPECT_EQ(there_.memory.word(0), 1U);
}

/// Connects two queue pairs of one card, of which one sends with another number than is expected.
class SequenceTest : public testing::Test {
 protected:
  void connect(std::uint32_t first_psn) {
    PairChange change;
    change.state = State::sending;
    change.rights = RemoteRights{true, true, true};
    change.receive_psn = kPsn;
    change.send_psn = first_psn;
    change.timeout = 1;
    change.peer = kNumber + 1;
    card_.change(kNumber, change);
    change.peer = kNumber;
    card_.change(kNumber + 1, change);
  }
  std::optional<rdma::Completion> write(std::uint64_t value) {
    memory_.word(0) = value;
    const LocalBuffer buffer = memory_.local(0, 8);
    SendWork work;
    work.opcode = Opcode::rdma_write;
    work.flags = rdma::kSignaled;
    work.buffers = &buffer;
    work.buffer_count = 1;
    work.remote = memory_.remote(8);
    EXPECT_EQ(one_.post(work), Posted::done);
    one_.publish();
    card_.ring(kNumber);
    const auto deadline = Clock::now() + std::chrono::seconds(20);
    while (Clock::now() < deadline) {
      card_.progress();
      if (const auto polled = one_.poll()) return polled;
    }
    return std::nullopt;
  }

  Card card_;
  Owner one_{card_, Owner::Process{kNumber}, 16, 8};
  Owner other_{card_, Owner::Process{kNumber + 1}, 16, 8};
  Memory memory_{card_, 64, {true, true, true}};
};

TEST_F(SequenceTest, TheNumberBeforeTheExpectedOneIsADuplicate) {
  connect(kPsn - 1);
  EXPECT_FALSE(write(7).value().is_error());
  EXPECT_EQ(memory_.word(1), 0U);
  EXPECT_FALSE(write(8).value().is_error());
  EXPECT_EQ(memory_.word(1), 8U);
}

TEST_F(SequenceTest, ANumberBehindTheExpectedOneIsNotAnswered) {
  connect(kPsn + 1);
  EXPECT_EQ(write(7).value().syndrome, Syndrome::transport_retries);
  EXPECT_EQ(memory_.word(1), 0U);
}

TEST_F(SequenceTest, AQueuePairInErrorTakesNoStateButReset) {
  connect(kPsn);
  PairChange change;
  change.state = State::error;
  card_.change(kNumber, change);
  for (const State state : {State::init, State::receiving, State::sending, State::drained}) {
    change.state = state;
    EXPECT_EQ(support::thrown_by([&] { card_.change(kNumber, change); }).code(),
              core::ErrorCode::invalid_value);
  }
  EXPECT_EQ(write(7).value().syndrome, Syndrome::flushed);
  change.state = State::reset;
  card_.change(kNumber, change);
}

// A doorbell must be in the register that fits whether the queue pair has a record.
TEST(SendRegister, OneOfTheOtherKindRingsNothing) {
  for (const bool has_record : {true, false}) {
    Card card;
    Owner owner(card, Owner::Process{kNumber, has_record}, 16, 8);
    PairChange change;
    change.state = State::sending;
    card.change(kNumber, change);
    SendWork work;
    work.opcode = Opcode::nop;
    work.flags = rdma::kSignaled;
    ASSERT_EQ(owner.post(work), Posted::done);
    owner.publish();
    const auto entry = rdma::doorbell_of(owner.send, owner.posted.posted);
    const std::uint64_t doorbell = std::uint64_t{entry.words[1]} << 32 | entry.words[0];
    const auto own = has_record ? SendRegister::with_record : SendRegister::without_record;
    const auto other = has_record ? SendRegister::without_record : SendRegister::with_record;
    EXPECT_FALSE(card.ring(kNumber, doorbell, other));
    EXPECT_FALSE(card.progress());
    EXPECT_EQ(owner.poll(), std::nullopt);
    EXPECT_TRUE(card.ring(kNumber, doorbell, own));
    card.progress();
    EXPECT_TRUE(owner.poll().has_value()) << has_record;
    EXPECT_EQ(card.fault(), "");
  }
}

// Code 24 of a receiver that is not ready: 40.96 ms. The message has four parts.
TEST_F(TwoCardsTest, AReceiverThatIsNotReadyIsAskedAgainWhenItsTimeIsOver) {
  constexpr std::chrono::microseconds kTime(40'960);
  here_.connect(2, {.rnr_retries = 7});
  there_.connect(1, {.rnr_timer = 24});
  const auto begin = Clock::now();
  here_.post(work_of(Opcode::send, here_.memory.local(0, kBytes)));
  while (Clock::now() - begin < kTime / 4) turn();
  const auto times = static_cast<std::uint64_t>((Clock::now() - begin) / kTime) + 1;
  EXPECT_LE(here_.wire.sent, 4 * times);
  ASSERT_EQ(there_.owner.post_receive(there_.memory.local(0, kBytes)), Posted::done);
  EXPECT_FALSE(completion().value().is_error());
}

// One retry is allowed. An answer that comes twice is one answer.
TEST_F(TwoCardsTest, AnAnswerThatComesTwiceUsesOneRetry) {
  here_.connect(2, {.rnr_retries = 1});
  there_.connect(1, {.rnr_timer = 1});
  here_.post(work_of(Opcode::send, here_.memory.local(0, 8)));
  deliver(here_, there_);
  ASSERT_EQ(there_.wire.held.size(), 1U);
  const auto answer = there_.wire.held.front();
  here_.card.receive(there_.address, answer);
  here_.card.progress();
  here_.card.receive(there_.address, answer);
  ASSERT_EQ(there_.owner.post_receive(there_.memory.local(0, 8)), Posted::done);
  there_.wire.held.clear();
  EXPECT_FALSE(completion().value().is_error());
}

}  // namespace
}  // namespace offload::rdma::model::test
