#include <tuple>

#include "tests/rdma_tasks/guest/fixture.hpp"

/// Tests every operation over a real device, from end to end.
namespace offload::rdma {
namespace {

using core::ErrorCode;
using core::Status;

enum class Waiting { polling, events };

/// QpType, bytes of a message, and the way in which the ends wait.
using Parameters = std::tuple<QpType, std::size_t, Waiting>;

class OperationsTest : public DeviceTest, public testing::WithParamInterface<Parameters> {
 protected:
  static constexpr std::size_t kFrom = 0;
  static constexpr std::size_t kTo = 4UL << 20;

  OperationsTest() {
    ConnectionOptions options;
    options.queues.qp_type = std::get<0>(GetParam());
    options.queues.max_inline_data = 64;
    a_.emplace(objects(), options, engine_, "a");
    b_.emplace(objects(), options, engine_, "b");
    a_->connection.start();
    b_->connection.start();
    connect(a_->connection, b_->connection);
  }
  ~OperationsTest() override {
    stop(a_->connection);
    stop(b_->connection);
  }

  [[nodiscard]] std::size_t size() const { return std::get<1>(GetParam()); }
  [[nodiscard]] bool is_reliable() const { return std::get<0>(GetParam()) == QpType::rc; }
  bool ended(Side& side, std::size_t count) {
    return until([&] { return side.outcomes.all.size() >= count; },
                 std::get<2>(GetParam()) == Waiting::events);
  }
  void expect_ok(Side& side, std::size_t count) {
    ASSERT_TRUE(ended(side, count));
    EXPECT_EQ(side.outcomes.all, Lines(count, "ok"));
  }
  /// Checks that the bytes at kFrom are at kTo, and no byte more.
  void expect_arrived() {
    const auto from = bytes(kFrom, size());
    EXPECT_TRUE(std::equal(from.begin(), from.end(), bytes(kTo, size()).begin()));
    EXPECT_EQ(bytes(kTo + size(), 1)[0], std::byte{0});
  }

  std::optional<Side> a_;
  std::optional<Side> b_;
};

TEST_P(OperationsTest, SendAndReceive) {
  const auto source = data(kFrom, size());
  const auto target = room(kTo, size() + 100);
  ReceiveTask& receive = taken(b_->receives);
  receive.destination = target.get();
  ASSERT_EQ(b_->connection.submit(receive), Status());
  SendTask& send = taken(a_->sends);
  send.source = source.get();
  ASSERT_EQ(a_->connection.submit(send), Status());
  expect_ok(*a_, 1);
  expect_ok(*b_, 1);
  EXPECT_EQ(receive.length(), size());
  EXPECT_EQ(target->data().size(), size());
  EXPECT_EQ(receive.immediate(), std::nullopt);
  expect_arrived();
}

TEST_P(OperationsTest, SendWithImmediateFromAndIntoPieces) {
  const std::size_t half = size() / 2;
  auto source = data(kFrom, half);
  auto rest = data(kFrom + half, size() - half);
  if (half != 0) {
    EXPECT_TRUE(source->append_chain(rest));
  }
  auto target = room(kTo, size() - half);
  auto end = room(kTo + size() - half, half);
  if (half != 0) {
    EXPECT_TRUE(target->append_chain(end));
  }
  ReceiveTask& receive = taken(b_->receives);
  receive.destination = target.get();
  ASSERT_EQ(b_->connection.submit(receive), Status());
  SendTask& send = taken(a_->sends);
  send.source = half != 0 ? source.get() : rest.get();
  send.immediate = 0xdeadbeef;
  ASSERT_EQ(a_->connection.submit(send), Status());
  expect_ok(*a_, 1);
  expect_ok(*b_, 1);
  EXPECT_EQ(receive.immediate(), 0xdeadbeef);
  EXPECT_EQ(target->total_length(), size());
  expect_arrived();
}

TEST_P(OperationsTest, Write) {
  const auto source = data(kFrom, size());
  WriteTask& write = taken(a_->writes);
  write.source = source.get();
  write.to = place(kTo);
  ASSERT_EQ(a_->connection.submit(write), Status());
  expect_ok(*a_, 1);
  if (is_reliable()) {
    expect_arrived();
  } else {  // its end is told when it was sent
    const auto from = bytes(kFrom, size());
    EXPECT_TRUE(until(
        [&] { return std::equal(from.begin(), from.end(), bytes(kTo, size()).begin()); }, false));
  }
  EXPECT_TRUE(b_->outcomes.all.empty());
}

TEST_P(OperationsTest, WriteWithImmediate) {
  const auto source = data(kFrom, size());
  ReceiveTask& receive = taken(b_->receives);
  ASSERT_EQ(b_->connection.submit(receive), Status());
  WriteTask& write = taken(a_->writes);
  write.source = source.get();
  write.to = place(kTo);
  write.immediate = 42;
  ASSERT_EQ(a_->connection.submit(write), Status());
  expect_ok(*a_, 1);
  expect_ok(*b_, 1);
  EXPECT_TRUE(receive.written_elsewhere());
  EXPECT_EQ(receive.immediate(), 42U);
  EXPECT_EQ(receive.length(), size());
  expect_arrived();
}

TEST_P(OperationsTest, Read) {
  const auto source = data(kFrom, size());
  const auto target = room(kTo, size() + 1);
  ReadTask& read = taken(a_->reads);
  read.destination = target.get();
  read.from = place(kFrom);
  read.length = size();
  if (!is_reliable()) {
    EXPECT_EQ(a_->connection.submit(read), ErrorCode::not_supported);
    return;
  }
  ASSERT_EQ(a_->connection.submit(read), Status());
  expect_ok(*a_, 1);
  EXPECT_EQ(target->data().size(), size());
  expect_arrived();
}

std::string name_of_parameters(const testing::TestParamInfo<Parameters>& info) {
  const auto [transport, size, waiting] = info.param;
  return std::string(name_of(transport)) + "_" + std::to_string(size) +
         (waiting == Waiting::polling ? "_polling" : "_events");
}

INSTANTIATE_TEST_SUITE_P(, OperationsTest,
                         testing::Combine(testing::Values(QpType::rc, QpType::uc),
                                          testing::Values(1, 4096, 1 << 20),
                                          testing::Values(Waiting::polling, Waiting::events)),
                         name_of_parameters);

class AtomicsTest : public OperationsTest {
 protected:
  std::uint64_t& word(std::size_t offset) const {
    return *reinterpret_cast<std::uint64_t*>(bytes(offset, 8).data());
  }
};

TEST_P(AtomicsTest, CompareAndSwap) {
  word(kTo) = 5;
  const auto result = room(kFrom, 8);
  CompareAndSwapTask& swap = taken(a_->swaps);
  swap.destination = result.get();
  swap.at = place(kTo);
  swap.compare = 5;
  swap.swap = 0x1122334455667788;
  ASSERT_EQ(a_->connection.submit(swap), Status());
  expect_ok(*a_, 1);
  EXPECT_EQ(word(kFrom), 5U);
  EXPECT_EQ(word(kTo), 0x1122334455667788U);
  result->reset();
  ASSERT_EQ(a_->connection.submit(swap), Status());  // it is not 5 any more
  expect_ok(*a_, 2);
  EXPECT_EQ(word(kFrom), 0x1122334455667788U);
  EXPECT_EQ(result->data().size(), 8U);
}

TEST_P(AtomicsTest, FetchAndAddFromBothEnds) {
  word(kTo) = 10;
  const auto of_a = room(kFrom, 8);
  const auto of_b = room(kFrom + 8, 8);
  FetchAndAddTask& by_a = taken(a_->adds);
  by_a.destination = of_a.get();
  by_a.at = place(kTo);
  by_a.add = 1;
  FetchAndAddTask& by_b = taken(b_->adds);
  by_b.destination = of_b.get();
  by_b.at = place(kTo);
  by_b.add = 100;
  ASSERT_EQ(a_->connection.submit(by_a), Status());
  ASSERT_EQ(b_->connection.submit(by_b), Status());
  expect_ok(*a_, 1);
  expect_ok(*b_, 1);
  EXPECT_EQ(word(kTo), 111U);
  // One of the two came first.
  EXPECT_EQ(word(kFrom) + word(kFrom + 8), word(kFrom) == 10 ? 21U : 120U);
}

INSTANTIATE_TEST_SUITE_P(, AtomicsTest,
                         testing::Combine(testing::Values(QpType::rc), testing::Values(8),
                                          testing::Values(Waiting::polling, Waiting::events)),
                         name_of_parameters);

}  // namespace
}  // namespace offload::rdma
