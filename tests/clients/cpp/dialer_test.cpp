#include "clients/cpp/src/dialer.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <vector>

#include "net/socket.hpp"
#include "tests/support/eventually.hpp"

namespace offload::clients {
namespace {

using std::chrono::milliseconds;

/// An address where connecting fails, hangs, or succeeds.
class Place {
 public:
  explicit Place(int backlog = 8)
      : listener_(net::listen_tcp(net::resolve("127.0.0.1", 0).at(0), backlog)),
        address_(net::local_address(listener_.get())) {}

  Place& refuse() {
    listener_.reset();
    return *this;
  }
  /// Fills the backlog, so that another connection gets no answer.
  Place& hang() {
    for (int i = 0; i < 2; ++i) waiting_.push_back(net::start_connect(address_));
    return *this;
  }
  [[nodiscard]] const net::SocketAddress& address() const noexcept { return address_; }

 private:
  core::Fd listener_;
  net::SocketAddress address_;
  std::vector<core::Fd> waiting_;
};

Dialer::State dial(Dialer& dialer, Watch& watch) {
  while (dialer.advance(core::Clock::now()) == Dialer::State::dialing) {
    watch.sleep(dialer.next_time(), core::Clock::now());
  }
  return dialer.state();
}

TEST(Dialer, TriesTheAddressesInTurnWithinTheTime) {
  Place refusing, hanging(0), serving;
  refusing.refuse();
  hanging.hang();
  Watch watch;
  Dialer dialer(watch, {refusing.address(), hanging.address(), serving.address()}, {});
  const core::TimePoint now = core::Clock::now();
  dialer.start(now, now + std::chrono::seconds(2), false);
  EXPECT_EQ(dial(dialer, watch), Dialer::State::connected) << dialer.reason();
  net::Stream stream = dialer.take();
  EXPECT_EQ(net::peer_address(stream.fd()).to_string(), serving.address().to_string());
  EXPECT_EQ(dialer.state(), Dialer::State::idle);
  watch.watch(-1);
}

TEST(Dialer, FailsOnceAllHaveFailed) {
  Place refusing, hanging(0);
  refusing.refuse();
  hanging.hang();
  Watch watch;
  Dialer dialer(watch, {refusing.address(), hanging.address()}, {});
  const core::TimePoint now = core::Clock::now();
  dialer.start(now, now + milliseconds(50), false);
  EXPECT_EQ(dial(dialer, watch), Dialer::State::failed);
  EXPECT_NE(dialer.reason().find("timed out"), std::string::npos) << dialer.reason();
  EXPECT_LT(core::Clock::now() - now, support::kBound);
}

TEST(Dialer, TriesAgainUntilItsTimeIsOver) {
  Place place;
  place.refuse();
  Watch watch;
  Dialer dialer(watch, {place.address()}, {});
  const core::TimePoint now = core::Clock::now();
  dialer.start(now, now + milliseconds(100), true);
  EXPECT_EQ(dial(dialer, watch), Dialer::State::failed);
  EXPECT_GE(core::Clock::now() - now, milliseconds(100));
}

TEST(Dialer, CanBeStopped) {
  Place hanging(0);
  hanging.hang();
  Watch watch;
  Dialer dialer(watch, {hanging.address()}, {});
  const core::TimePoint now = core::Clock::now();
  dialer.start(now, now + support::kBound, true);
  EXPECT_EQ(dialer.advance(now), Dialer::State::dialing);
  EXPECT_LE(dialer.next_time(), now + std::chrono::seconds(2));
  dialer.stop();
  EXPECT_EQ(dialer.state(), Dialer::State::idle);
  EXPECT_EQ(dialer.next_time(), core::TimePoint::max());
}

}  // namespace
}  // namespace offload::clients
