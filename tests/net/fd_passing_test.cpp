#include "net/fd_passing.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>

#include "core/error.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/thrown.hpp"

namespace offload::net {
namespace {

using core::ErrorCode;
using support::bytes_of;
using support::thrown_by;

class FdPassing : public testing::Test {
 protected:
  FdPassing() {
    int ends[2];
    const int rc = ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends);
    core::check_errno(rc, "socketpair");
    here_ = core::Fd(ends[0]);
    there_ = core::Fd(ends[1]);
  }

  core::Fd here_;
  core::Fd there_;
  std::array<std::byte, 64> room_{};
};

/// Returns `count` descriptors, all different.
std::vector<core::Fd> some_fds(std::size_t count) {
  std::vector<core::Fd> fds;
  while (fds.size() < count) fds.emplace_back(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  return fds;
}

std::vector<int> numbers_of(const std::vector<core::Fd>& fds) {
  std::vector<int> numbers;
  for (const auto& fd : fds) numbers.push_back(fd.get());
  return numbers;
}

TEST_F(FdPassing, BytesAndDescriptorsArriveTogether) {
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, kMaxPassedFds}) {
    const auto fds = some_fds(count);
    send_with_fds(here_.get(), bytes_of("hello"), numbers_of(fds));
    const auto message = receive_with_fds(there_.get(), room_);
    ASSERT_TRUE(message);
    EXPECT_EQ(support::copy_of(std::span(room_).first(message->size)),
              support::copy_of(bytes_of("hello")));
    ASSERT_EQ(message->fds.size(), count);
    EXPECT_FALSE(message->truncated);
    for (const auto& fd : message->fds) EXPECT_NE(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, 0);
  }
}

TEST_F(FdPassing, TheFilesArriveInTheirOrder) {
  const auto inode = [](const core::Fd& fd) {
    struct stat status {};
    EXPECT_EQ(::fstat(fd.get(), &status), 0);
    return status.st_ino;
  };
  std::vector<core::Fd> files;
  while (files.size() < kMaxPassedFds) files.emplace_back(::memfd_create("a file", MFD_CLOEXEC));
  send_with_fds(here_.get(), bytes_of("x"), numbers_of(files));
  const auto message = receive_with_fds(there_.get(), room_);
  ASSERT_TRUE(message);
  ASSERT_EQ(message->fds.size(), files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ(inode(message->fds[i]), inode(files[i])) << i;
  }
}

TEST_F(FdPassing, NothingHasCome) {
  EXPECT_FALSE(receive_with_fds(there_.get(), room_));
  EXPECT_EQ(thrown_by([&] { (void)receive_with_fds(-1, room_); }).system_errno(), EBADF);
}

// The peer's credentials come in front of the descriptors.
TEST_F(FdPassing, OtherControlMessagesAreSkipped) {
  const int on = 1;
  ASSERT_EQ(::setsockopt(there_.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on), 0);
  const auto fds = some_fds(1);
  send_with_fds(here_.get(), bytes_of("x"), numbers_of(fds));
  const auto message = receive_with_fds(there_.get(), room_);
  ASSERT_TRUE(message);
  ASSERT_EQ(message->fds.size(), 1U);
  EXPECT_TRUE(message->fds.front().valid());
}

TEST_F(FdPassing, OneDescriptorTooManyIsNotSent) {
  const auto fds = some_fds(kMaxPassedFds + 1);
  const auto error = thrown_by([&] { send_with_fds(here_.get(), bytes_of("x"), numbers_of(fds)); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_value);
  EXPECT_FALSE(receive_with_fds(there_.get(), room_));
}

TEST_F(FdPassing, MoreThanThereIsRoomForIsReported) {
  send_with_fds(here_.get(), std::vector<std::byte>(room_.size() + 1), {});
  const auto message = receive_with_fds(there_.get(), room_);
  ASSERT_TRUE(message);
  EXPECT_TRUE(message->truncated);
  EXPECT_EQ(message->size, room_.size());
}

TEST_F(FdPassing, TheLimitOfOpenFilesIsNamed) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer takes descriptors itself, to look at the type of an object";
#endif
  send_with_fds(here_.get(), bytes_of("x"), {});
  send_with_fds(here_.get(), bytes_of("x"), numbers_of(some_fds(2)));
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const core::Fd last(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const rlimit no_more{static_cast<rlim_t>(last.get()) + 1, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &no_more), 0);
  EXPECT_TRUE(receive_with_fds(there_.get(), room_)) << "a message without descriptors needs none";
  const auto error = thrown_by([&] { (void)receive_with_fds(there_.get(), room_); });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(error.system_errno(), EMFILE) << error.what();
}

TEST_F(FdPassing, APeerThatIsGone) {
  there_.reset();
  EXPECT_EQ(thrown_by([&] { send_with_fds(here_.get(), bytes_of("x"), {}); }).code(),
            ErrorCode::connection_reset);
  errno = EAGAIN;  // of an earlier call
  const auto message = receive_with_fds(here_.get(), room_);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->size, 0U);
}

TEST_F(FdPassing, APeerThatDoesNotRead) {
  const auto error = thrown_by([&] {
    for (int i = 0; i < 100'000; ++i) send_with_fds(here_.get(), bytes_of("x"), {});
  });
  EXPECT_EQ(error.code(), ErrorCode::again);
}

}  // namespace
}  // namespace offload::net
