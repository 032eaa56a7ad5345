#include "core/service_manager.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/fd.hpp"
#include "tests/support/temp_dir.hpp"

namespace offload::core {
namespace {

/// Plays systemd: has the socket and gives the environment.
class ServiceManagerTest : public testing::Test {
 protected:
  void TearDown() override {
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) ::unsetenv(name);
  }

  void listen(const std::string& name) { ASSERT_TRUE(binds(name)); }
  bool binds(const std::string& name) {
    fd_.reset(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name.front() == '@') address.sun_path[0] = '\0';
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
    return ::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0;
  }

  /// The next datagram, empty if there is none.
  std::string heard() {
    std::array<char, 256> text{};
    const auto length = ::recv(fd_.get(), text.data(), text.size(), 0);
    return length < 0 ? "" : std::string(text.data(), static_cast<std::size_t>(length));
  }

  support::TempDir dir_;
  Fd fd_;
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
  while (!binds(name) && name[1] > 'A') --name[1];  // another program may have it
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
