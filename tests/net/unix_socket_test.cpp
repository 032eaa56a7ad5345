#include "net/unix_socket.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::net {
namespace {

TEST(UnixSocket, IsItsOwnersAlone) {
  const support::TempDir directory;
  const std::string path = directory.file("door");
  const core::Fd socket = listen_unix(path, 1);
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_TRUE(S_ISSOCK(status.st_mode));
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST(UnixSocket, TakesTheFileOfOneThatIsGoneAndOfNoOther) {
  const support::TempDir directory;
  const std::string path = directory.file("door");
  { const core::Fd killed = listen_unix(path, 1); }
  const core::Fd socket = listen_unix(path, 1);
  const auto taken = support::thrown_by([&] { (void)listen_unix(path, 1); });
  EXPECT_EQ(taken.code(), core::ErrorCode::in_use);
  EXPECT_NE(std::string(taken.what()).find("another program listens there"), std::string::npos);
  const std::string file = directory.file("a-file");
  std::ofstream(file) << "somebody's";
  EXPECT_EQ(support::thrown_by([&] { (void)listen_unix(file, 1); }).code(),
            core::ErrorCode::in_use);
}

// A connection to it is not refused, but has no place: that is no sign of a listener that is gone.
TEST(UnixSocket, LeavesAListenerWithAFullQueueAlone) {
  const support::TempDir directory;
  const std::string path = directory.file("door");
  const core::Fd busy = listen_unix(path, 0);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  path.copy(name.sun_path, sizeof name.sun_path - 1);
  std::vector<core::Fd> waiting;
  int result = 0;
  while (result == 0 && waiting.size() < 16) {
    waiting.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    result = ::connect(waiting.back().get(), reinterpret_cast<const sockaddr*>(&name), sizeof name);
  }
  ASSERT_EQ(result, -1);
  ASSERT_EQ(errno, EAGAIN);
  EXPECT_EQ(support::thrown_by([&] { (void)listen_unix(path, 1); }).code(),
            core::ErrorCode::in_use);
  EXPECT_EQ(::access(path.c_str(), F_OK), 0);
}

TEST(UnixSocket, NeedsAFolderThatItCanBeMadeIn) {
  const support::TempDir directory;
  const auto missing =
      support::thrown_by([&] { (void)listen_unix(directory.file("none/door"), 1); });
  EXPECT_EQ(missing.code(), core::ErrorCode::not_found);
  EXPECT_TRUE(std::string(missing.what()).ends_with(": make the folder, or choose another path"))
      << missing.what();
  directory.write("a-file", "");
  const auto other =
      support::thrown_by([&] { (void)listen_unix(directory.file("a-file/door"), 1); });
  EXPECT_EQ(other.system_errno(), ENOTDIR);
}

TEST(UnixSocket, APathHasBounds) {
  EXPECT_FALSE(is_unix_path(""));
  EXPECT_TRUE(is_unix_path(std::string(107, 'x')));
  EXPECT_FALSE(is_unix_path(std::string(108, 'x')));
  EXPECT_FALSE(is_unix_path(std::string("a\0b", 3)));
  EXPECT_EQ(support::thrown_by([] { (void)listen_unix("", 1); }).code(),
            core::ErrorCode::invalid_value);
}

}  // namespace
}  // namespace offload::net
