#include "core/service_manager.hpp"

#include <gtest/gtest.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "tests/core/process/service_manager_socket.hpp"
#include "tests/support/temp_dir.hpp"

namespace offload::core {
namespace {

class ServiceManagerTest : public testing::Test {
 protected:
  void listen(const std::string& name) { ASSERT_TRUE(socket_.bind(name)); }
  /// The next datagram, empty if there is none.
  std::string heard() { return socket_.heard(); }

  support::TempDir dir_;
  test::ServiceManagerSocket socket_;
};

TEST_F(ServiceManagerTest, SaysWhatTheServiceDoes) {
  listen(dir_.file("notify"));
  ServiceManager manager;
  manager.ready("serves");
  EXPECT_EQ(heard(), "READY=1\nSTATUS=serves");
  manager.status("rests");
  EXPECT_EQ(heard(), "STATUS=rests");
  manager.stopping("ends");
  EXPECT_EQ(heard(), "STOPPING=1\nSTATUS=ends");
}

TEST_F(ServiceManagerTest, FindsASocketInTheAbstractNameSpace) {
  listen("@offload-" + std::to_string(::getpid()));
  ServiceManager().ready("serves");
  EXPECT_EQ(heard(), "READY=1\nSTATUS=serves");
}

TEST_F(ServiceManagerTest, AManagerThatDoesNotReadHoldsNobodyUp) {
  listen(dir_.file("notify"));
  ServiceManager manager;
  ::alarm(30);  // ends the program instead of waiting for ever
  for (int i = 0; i < 2000; ++i) manager.status("serves");
  ::alarm(0);
  EXPECT_EQ(heard(), "STATUS=serves");
}

TEST_F(ServiceManagerTest, TakesAnyLimitAndTheShortestName) {
  std::string name = "@~";
  while (!socket_.bind(name) && name[1] > 'A') --name[1];  // another program may have it
  ::setenv("WATCHDOG_USEC", "1", 1);
  ServiceManager manager;
  EXPECT_NE(manager.next_tick(), TimePoint::max());
  manager.ready("serves");
  EXPECT_EQ(heard(), "READY=1\nSTATUS=serves");
}

TEST_F(ServiceManagerTest, TellsTheWatchdogThreeTimesWithinItsLimit) {
  listen(dir_.file("notify"));
  ::setenv("WATCHDOG_USEC", "3000000", 1);
  ::setenv("WATCHDOG_PID", std::to_string(::getpid()).c_str(), 1);
  ServiceManager manager;
  const auto start = manager.next_tick();
  ASSERT_LE(start, Clock::now());
  manager.tick(start);
  EXPECT_EQ(heard(), "WATCHDOG=1");
  EXPECT_EQ(manager.next_tick(), start + std::chrono::seconds(1));
  manager.tick(start + std::chrono::milliseconds(999));
  EXPECT_EQ(heard(), "");
  manager.tick(start + std::chrono::seconds(1));
  EXPECT_EQ(heard(), "WATCHDOG=1");
}

TEST_F(ServiceManagerTest, HasNoWatchdogThatIsAnotherProcesssOrNoNumber) {
  listen(dir_.file("notify"));
  EXPECT_EQ(ServiceManager().next_tick(), TimePoint::max());
  for (const char* limit : {"", "0", "-1", "3s", "99999999999999999999"}) {
    ::setenv("WATCHDOG_USEC", limit, 1);
    EXPECT_EQ(ServiceManager().next_tick(), TimePoint::max()) << limit;
  }
  ::setenv("WATCHDOG_USEC", "3000000", 1);
  ::setenv("WATCHDOG_PID", std::to_string(::getppid()).c_str(), 1);
  EXPECT_EQ(ServiceManager().next_tick(), TimePoint::max());
}

TEST_F(ServiceManagerTest, DoesNothingWhereNobodyAsks) {
  listen(dir_.file("notify"));
  ::setenv("WATCHDOG_USEC", "3000000", 1);
  const std::string too_long = "/" + std::string(sizeof(sockaddr_un::sun_path) - 1, 'x');
  for (const char* socket : {"", "/", "@", "notify", "vsock:2:1", too_long.c_str()}) {
    ::setenv("NOTIFY_SOCKET", socket, 1);
    ServiceManager manager;
    manager.ready("serves");
    EXPECT_EQ(manager.next_tick(), TimePoint::max()) << socket;
  }
  EXPECT_EQ(heard(), "");
}

TEST_F(ServiceManagerTest, GoesOnWhereTheManagerIsGone) {
  listen(dir_.file("notify"));
  ServiceManager manager;
  ::unlink(dir_.file("notify").c_str());
  manager.ready("serves");
  EXPECT_EQ(heard(), "");
}

}  // namespace
}  // namespace offload::core
