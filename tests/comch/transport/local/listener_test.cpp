#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "comch/transport/local/control.hpp"
#include "core/error.hpp"
#include "tests/core/process/rights.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::comch {
namespace {

using core::ErrorCode;
using support::thrown_by;

class LocalListener : public testing::Test {
 protected:
  /// Makes a socket file without a listener, as a server that was killed leaves it.
  void leave_stale_socket() {
    const core::Fd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path, path_.data(), path_.size());
    ASSERT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  }

  support::TempDir dir_;
  std::string path_ = dir_.file("comch");
  Address address_ = Address::parse("unix:" + path_);
};

TEST_F(LocalListener, SocketFileIsForThisUserAlone) {
  const auto listener = listen_local(address_);
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_TRUE(S_ISSOCK(status.st_mode));
  EXPECT_EQ(status.st_mode & 07777, 0600U);
}

TEST_F(LocalListener, SocketFileIsForAllUsersIfItIsInsecure) {
  address_.insecure = true;
  const mode_t mask = ::umask(0077);  // which limits the mode of a socket file at bind(2)
  const auto listener = listen_local(address_);
  ::umask(mask);
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0666U);
}

TEST_F(LocalListener, SocketFileGoesWithIt) {
  { const auto listener = listen_local(address_); }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(LocalListener, AnothersSocketFileInItsPlaceStays) {
  {
    const auto listener = listen_local(address_);
    std::filesystem::remove(path_);
    leave_stale_socket();
  }
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(LocalListener, TakesOverFromAServerThatWasKilled) {
  leave_stale_socket();
  ASSERT_TRUE(std::filesystem::exists(path_));
  const auto listener = listen_local(address_);
  const auto client = connect_local(address_);
  EXPECT_TRUE(listener->accept());
}

TEST_F(LocalListener, LeavesALivingServerAlone) {
  const auto listener = listen_local(address_);
  const auto error = thrown_by([&] { const auto second = listen_local(address_); });
  EXPECT_EQ(error.code(), ErrorCode::in_use);
  EXPECT_NE(std::string(error.what()).find(address_.to_string()), std::string::npos);
  const auto client = connect_local(address_);
  EXPECT_TRUE(listener->accept());
}

TEST_F(LocalListener, OfManyThatStartAtOnceOneListens) {
  leave_stale_socket();
  constexpr int kServers = 8;
  std::atomic<int> listening{0};
  std::atomic<int> refused{0};
  std::vector<std::thread> servers;
  for (int i = 0; i < kServers; ++i) {
    servers.emplace_back([&] {
      try {
        const auto listener = listen_local(address_);
        ++listening;
        EXPECT_TRUE(support::eventually([&] { return listening + refused == kServers; }));
        EXPECT_TRUE(std::filesystem::exists(path_));
      } catch (const core::Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::in_use);
        ++refused;
      }
    });
  }
  for (auto& server : servers) server.join();
  EXPECT_EQ(listening, 1);
}

TEST_F(LocalListener, LeavesALivingServerWithAFullQueueAlone) {
  const auto listener = listen_local(address_);
  std::vector<std::unique_ptr<ControlConnection>> waiting;
  EXPECT_THROW(while (waiting.size() < 1000) waiting.push_back(connect_local(address_)),
               core::Error);
  EXPECT_EQ(thrown_by([&] { const auto second = listen_local(address_); }).code(),
            ErrorCode::in_use);
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(LocalListener, LeavesOtherFilesAlone) {
  std::ofstream(path_) << "precious";
  EXPECT_EQ(thrown_by([&] { const auto listener = listen_local(address_); }).code(),
            ErrorCode::in_use);
  std::string text;
  std::ifstream(path_) >> text;
  EXPECT_EQ(text, "precious");

  const auto linked = Address::parse("unix:" + dir_.file("link"));
  std::filesystem::create_symlink(path_, linked.path);
  EXPECT_EQ(thrown_by([&] { const auto listener = listen_local(linked); }).code(),
            ErrorCode::in_use);
  EXPECT_EQ(thrown_by([&] { listen_local(Address::parse("unix:" + dir_.path())); }).code(),
            ErrorCode::in_use);
}

TEST_F(LocalListener, WhereThereIsNoFolder) {
  const auto nowhere = Address::parse("unix:" + dir_.file("no/such/comch"));
  EXPECT_EQ(thrown_by([&] { const auto listener = listen_local(nowhere); }).code(),
            ErrorCode::not_found);
}

TEST_F(LocalListener, ConnectingToNobody) {
  EXPECT_EQ(thrown_by([&] { connect_local(address_); }).code(), ErrorCode::not_found);
  leave_stale_socket();
  EXPECT_EQ(thrown_by([&] { connect_local(address_); }).code(), ErrorCode::not_connected);
}

/// Runs `action` in a process of another user; returns its exit status, -1 if it does not end.
template <class Action, class Meanwhile>
int as_another_user(Action action, Meanwhile meanwhile) {
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr int kNotAllowed = 100;
    ::alarm(20);
    if (::setresuid(core::test::kNobody, core::test::kNobody, core::test::kNobody) != 0)
      std::_Exit(kNotAllowed);
    std::_Exit(action());
  }
  int status = -1;
  const bool ended = support::eventually([&] {
    meanwhile();
    return ::waitpid(child, &status, WNOHANG) == child;
  });
  return ended && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(LocalListener, TurnsAwayOtherUsers) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  const auto listener = listen_local(address_);
  // The file's mode would already keep the other user out, so it allows all users here.
  std::filesystem::permissions(dir_.path(), std::filesystem::perms::all);
  std::filesystem::permissions(path_, std::filesystem::perms::all);
  const auto connect_and_wait_for_the_end = [this] {
    const auto socket = connect_local(address_);
    pollfd watched{socket->fd(), POLLIN, 0};
    return ::poll(&watched, 1, 10'000) == 1 && (watched.revents & POLLHUP) != 0 ? 7 : 1;
  };
  EXPECT_EQ(
      as_another_user(connect_and_wait_for_the_end, [&] { EXPECT_FALSE(listener->accept()); }), 7);
}

TEST_F(LocalListener, AServerOfAnotherUserIsNotTrusted) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  std::filesystem::permissions(dir_.path(), std::filesystem::perms::all);
  const auto serve_until_somebody_leaves = [this] {
    const auto listener = listen_local(address_);
    std::unique_ptr<ControlConnection> socket;
    support::eventually([&] { return (socket = listener->accept()) != nullptr; });
    pollfd watched{socket ? socket->fd() : -1, POLLIN, 0};
    return ::poll(&watched, 1, 10'000) == 1 && (watched.revents & POLLHUP) != 0 ? 7 : 1;
  };
  bool refused = false;
  const auto connect = [&] {
    try {
      connect_local(address_);
      ADD_FAILURE() << "connected";
    } catch (const core::Error& error) {
      refused = refused || error.code() == ErrorCode::not_permitted;
    }
  };
  EXPECT_EQ(as_another_user(serve_until_somebody_leaves, connect), 7);
  EXPECT_TRUE(refused);
}

}  // namespace
}  // namespace offload::comch
