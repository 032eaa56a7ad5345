#include "net/arrival.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <thread>

#include "core/error.hpp"
#include "core/fd.hpp"
#include "net/socket.hpp"
#include "tests/support/readable.hpp"
#include "tests/support/thrown.hpp"

namespace offload::net {
namespace {

using Clock = std::chrono::system_clock;

/// A connection over loopback that was accepted.
class Arrival : public testing::Test {
 protected:
  explicit Arrival(bool told = true) {
    const auto listener = listen_tcp(resolve("127.0.0.1", 0).front(), 1);
    if (told) tell_arrivals(listener.get());
    client_ = start_connect(local_address(listener.get()));
    wait(listener.get());
    server_ = core::Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (told) wait_for_first_arrival();
  }

  static void wait(int fd) { ASSERT_TRUE(support::is_readable(fd, 20'000)); }
  void send(char byte) { ASSERT_EQ(::send(client_.get(), &byte, 1, 0), 1); }
  /// Reads all that is there.
  WallTime receive(ssize_t expected) {
    wait(server_.get());
    std::array<std::byte, 8> room{};
    WallTime arrival{};
    EXPECT_EQ(receive_with_arrival(server_.get(), room, arrival), expected);
    return arrival;
  }
  /// The kernel begins to note arrivals a while after it was asked to: see tell_arrivals().
  void wait_for_first_arrival() {
    const auto end = Clock::now() + std::chrono::seconds(20);
    do {
      ASSERT_LT(Clock::now(), end) << "the kernel notes no arrivals";
      send('w');
    } while (receive(1) == WallTime{});
  }

  core::Fd client_;
  core::Fd server_;
};

class NoArrival : public Arrival {
 protected:
  NoArrival() : Arrival(false) {}
};

TEST_F(Arrival, IsWhenBytesCameNotWhenTheyAreRead) {
  const auto before = Clock::now();
  send('a');
  wait(server_.get());
  const auto there = Clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const WallTime arrival = receive(1);
  EXPECT_GE(arrival, before);
  EXPECT_LE(arrival, there);
}

TEST_F(Arrival, IsThatOfTheLastBytes) {
  send('a');
  wait(server_.get());
  const auto between = Clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  send('b');
  EXPECT_GT(receive(2), between);
}

TEST_F(Arrival, OfTheEndIsNotKnown) {
  client_.reset();
  EXPECT_EQ(receive(0), WallTime{});
}

TEST_F(NoArrival, IsToldWithoutBeingAskedFor) {
  send('a');
  EXPECT_EQ(receive(1), WallTime{});
}

TEST(TellArrivals, OfWhatIsNoSocketIsAnError) {
  EXPECT_EQ(support::thrown_by([] { tell_arrivals(-1); }).system_errno(), EBADF);
}

}  // namespace
}  // namespace offload::net
