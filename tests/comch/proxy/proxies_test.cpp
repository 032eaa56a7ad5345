#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "tests/comch/proxy/proxies_fixture.hpp"

namespace offload::comch::test {
namespace {

using support::random_bytes;

TEST_F(RemoteTest, ARequestLooksLikeThisOnTheWire) {
  ASSERT_TRUE(server_.post(random_bytes(5, 1)));
  ASSERT_TRUE(server_.post(random_bytes(1000, 2)));
  EXPECT_EQ(read(kDataHeaderSize + 5), on_wire(0, random_bytes(5, 1)));
  EXPECT_EQ(read(kDataHeaderSize + 1000), on_wire(1, random_bytes(1000, 2)));
}

TEST_F(RemoteTest, AResponseComesInAnyPieces) {
  ASSERT_TRUE(server_.post(random_bytes(5, 1)));
  ASSERT_TRUE(server_.post(random_bytes(3000, 2)));
  read(2 * kDataHeaderSize + 3005);
  Bytes both = on_wire(0, random_bytes(7, 3));
  const Bytes second = on_wire(1, random_bytes(2000, 4));
  both.insert(both.end(), second.begin(), second.end());
  for (std::size_t at = 0; at < both.size(); at += 13) {
    write(Bytes(both.begin() + static_cast<std::ptrdiff_t>(at),
                both.begin() + static_cast<std::ptrdiff_t>(std::min(at + 13, both.size()))));
    // It is read before the next one is written.
    for (int i = 0; i < 2; ++i) server_.engine.run_once(core::Clock::now());
  }
  EXPECT_EQ(next_response(), random_bytes(7, 3));
  EXPECT_EQ(next_response(), random_bytes(2000, 4));
}

TEST_F(RemoteTest, AStatusIsPassedOn) {
  ASSERT_TRUE(server_.post(random_bytes(5, 1)));
  read(kDataHeaderSize + 5);
  write(on_wire({0, 0, 0, 1}));
  EXPECT_EQ(next_response(), Bytes{});
  EXPECT_EQ(server_.last_status, kernels::ResponseStatus::bad_length);
}

TEST_F(RemoteTest, AStatusComesWithoutBytes) {
  for (const std::uint32_t length : {10U, 1000U}) {
    ASSERT_TRUE(server_.post(random_bytes(length, 1)));
    read(kDataHeaderSize + length);
    write(on_wire({length == 10 ? 0U : 1U, length, 0, 1}, random_bytes(length, 2)));
    EXPECT_EQ(next_response(), Bytes{});
    EXPECT_EQ(server_.last_status, kernels::ResponseStatus::bad_length);
  }
}

TEST_F(RemoteTest, NothingWasAsked) {
  write(on_wire(0, random_bytes(5, 1)));
  expect_failed("not due");
}

TEST_F(RemoteTest, AnotherResponseIsDue) {
  ASSERT_TRUE(server_.post(random_bytes(5, 1)));
  ASSERT_TRUE(server_.post(random_bytes(5, 2)));
  read(2 * (kDataHeaderSize + 5));
  write(on_wire(1, random_bytes(5, 2)));
  expect_failed("not due");
}

TEST_F(RemoteTest, OneResponseTwice) {
  ASSERT_TRUE(server_.post(random_bytes(5, 1)));
  read(kDataHeaderSize + 5);
  write(on_wire(0, random_bytes(5, 1)));
  EXPECT_EQ(next_response(), random_bytes(5, 1));
  write(on_wire(0, random_bytes(500, 1)));
  expect_failed("not due");
}

TEST_F(RemoteTest, AResponseLongerThanTheChannels) {
  ASSERT_TRUE(server_.post(random_bytes(5, 1)));
  read(kDataHeaderSize + 5);
  write(on_wire({0, kLongest + 1, 0}));
  expect_failed("over the 100000 of the channel");
}

TEST_F(RemoteTest, TheLongestLengthThatCanBeSaid) {
  ASSERT_TRUE(server_.post(random_bytes(5, 1)));
  read(kDataHeaderSize + 5);
  write(on_wire({0, ~0U, 0}));
  expect_failed("over the 100000 of the channel");
}

TEST_F(RemoteTest, AWorkerThatGoes) {
  peer_.reset();
  expect_failed("closed the connection");
}

// A request that one worker has not answered completely goes to the next one, from its first byte.
TEST_F(RemoteTest, TheNextWorkerGetsWhatIsNotAnswered) {
  for (std::uint32_t i = 0; i < kSlots; ++i) ASSERT_TRUE(server_.post(random_bytes(500, i)));
  read(kSlots * (kDataHeaderSize + 500));
  write(on_wire(0, random_bytes(5, 10)));
  Bytes half = on_wire(1, random_bytes(600, 11));
  half.resize(half.size() / 2);
  write(half);
  EXPECT_EQ(next_response(), random_bytes(5, 10));

  auto [here, there] = connection();
  peer_ = std::move(there);
  move_on(std::move(here));
  for (std::uint32_t i = 1; i < kSlots; ++i) {
    EXPECT_EQ(read(kDataHeaderSize + 500), on_wire(i - 1, random_bytes(500, i)));
  }
  for (std::uint32_t i = 1; i < kSlots; ++i) write(on_wire(i - 1, random_bytes(600, i)));
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
  EXPECT_EQ(read(kDataHeaderSize + 5), on_wire(0, random_bytes(5, 1)));
  write(on_wire(0, random_bytes(7, 2)));
  EXPECT_EQ(next_response(), random_bytes(7, 2));
}

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

/// Tests in the lap in which packets are rewritten that no message has written for a long time.
class RemoteInALapThatRewrites : public RemoteTest {
 protected:
  static constexpr std::uint64_t kFirst = std::uint64_t{kSlots} * (kernels::kRewriteLaps - 1);
  RemoteInALapThatRewrites() {
    memory_ = std::make_unique<channel::ChannelMemory>(3, kSlots, kLongest, -1, kFirst);
    auto [here, there] = connection();
    peer_ = std::move(there);
    attach(std::move(here));
    server_.requester.move_to(memory_->endpoint(), channel::Wakeup::engine);
  }
};

TEST_F(RemoteInALapThatRewrites, AResponseWritesAllPacketsOfItsSlot) {
  ASSERT_TRUE(gather({}));
  server_.requester.flush();
  EXPECT_EQ(read(kDataHeaderSize), on_wire(0, {}));
  write(on_wire(0, {}));
  EXPECT_EQ(next_response(), Bytes{});
  const auto view = memory_->endpoint().view;
  for (std::uint32_t i = 0; i < kernels::kMaxPackets; ++i) {
    EXPECT_EQ(kernels::load_packet(view.response(kFirst).packets + i).flag,
              view.layout.flag_of(kFirst))
        << i;
  }
}

TEST(ServerProxy, AnImpossibleShape) {
  auto [here, there] = connection();
  const protocol::ChannelDescriptor shape{0, 3, 100, {}, {}};
  EXPECT_THROW(ServerProxy(shape, line_over(std::move(here))), core::Error);
}

}  // namespace
}  // namespace offload::comch::test
