#include "comch/transport/local/runtime_folder.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "comch/transport/local/control.hpp"
#include "core/error.hpp"
#include "core/fd.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::comch {
namespace {

class RuntimeFolder : public testing::Test {
 protected:
  void set(const std::string& folder) { ::setenv("XDG_RUNTIME_DIR", folder.c_str(), 1); }
  /// The user's own folder is one for all processes, and ctest runs these tests side by side.
  void SetUp() override {
    ASSERT_TRUE(lock_.valid());
    ASSERT_EQ(::flock(lock_.get(), LOCK_EX), 0);
  }
  void TearDown() override { ::unsetenv("XDG_RUNTIME_DIR"); }

  support::TempDir dir_;
  core::Fd lock_{
      ::open("/tmp/offload-runtime-folder-test.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
};

TEST_F(RuntimeFolder, IsTheSystemsIfThatIsOurs) {
  ASSERT_EQ(::chmod(dir_.path().c_str(), 0700), 0);
  set(dir_.path());
  EXPECT_EQ(runtime_folder(), dir_.path());
  EXPECT_EQ(default_address(), "unix:" + dir_.path() + "/dpu-gpu-offload.sock");
}

TEST_F(RuntimeFolder, IsFirstOfAllWhatOursSays) {
  set("/");
  ::setenv("OFFLOAD_RUNTIME_DIR", dir_.file("nothing yet").c_str(), 1);
  EXPECT_EQ(runtime_folder(), dir_.file("nothing yet"));
  ::setenv("OFFLOAD_RUNTIME_DIR", "relative", 1);
  EXPECT_NE(runtime_folder(), "relative");
  ::unsetenv("OFFLOAD_RUNTIME_DIR");
}

TEST_F(RuntimeFolder, ElseOneOfOurOwn) {
  const auto user = ::geteuid();
  const std::string own =
      user == 0 ? "/run/dpu-gpu-offload" : "/tmp/dpu-gpu-offload-" + std::to_string(user);
  ::unsetenv("XDG_RUNTIME_DIR");
  EXPECT_EQ(runtime_folder(), own);
  for (const std::string& given : {std::string(), std::string("relative"), dir_.file("nothing")}) {
    set(given);
    EXPECT_EQ(runtime_folder(), own) << given;
  }
  ASSERT_EQ(::chmod(dir_.path().c_str(), 0770), 0);  // others may write to it
  set(dir_.path());
  EXPECT_EQ(runtime_folder(), own);
}

TEST_F(RuntimeFolder, IsMadeForItsOwnerAlone) {
  ::unsetenv("XDG_RUNTIME_DIR");
  const std::string folder = runtime_folder();
  make_runtime_folder(folder + "/x.sock");
  struct stat status {};
  ASSERT_EQ(::stat(folder.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700U);
  make_runtime_folder(folder + "/x.sock");  // again
}

TEST_F(RuntimeFolder, IsMadeOnlyForAPathInIt) {
  const std::string folder = dir_.file("new");
  ::setenv("OFFLOAD_RUNTIME_DIR", folder.c_str(), 1);
  make_runtime_folder(dir_.file("x.sock"));
  EXPECT_FALSE(std::filesystem::exists(folder));
  const mode_t mask = ::umask(0);
  make_runtime_folder(folder + "/x.sock");
  ::umask(mask);
  struct stat status {};
  ASSERT_EQ(::stat(folder.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700U);
  ::setenv("OFFLOAD_RUNTIME_DIR", dir_.file("none/new").c_str(), 1);
  const auto error = support::thrown_by([&] { make_runtime_folder(dir_.file("none/new/x.sock")); });
  EXPECT_NE(std::string(error.what()).find("cannot create the folder "), std::string::npos);
  ::unsetenv("OFFLOAD_RUNTIME_DIR");
}

TEST_F(RuntimeFolder, ThatOthersMayWriteToIsRefusedByBothSides) {
  ::unsetenv("XDG_RUNTIME_DIR");
  const std::string folder = runtime_folder();
  make_runtime_folder(folder + "/x.sock");
  const Address address = Address::parse("unix:" + folder + "/runtime-folder-test.sock");
  ASSERT_EQ(::chmod(folder.c_str(), 0777), 0);
  const auto listening = support::thrown_by([&] { static_cast<void>(listen_local(address)); });
  const auto connecting = support::thrown_by([&] { static_cast<void>(connect_local(address)); });
  ASSERT_EQ(::chmod(folder.c_str(), 0700), 0);
  EXPECT_EQ(listening.code(), core::ErrorCode::not_permitted);
  EXPECT_EQ(connecting.code(), core::ErrorCode::not_permitted);
}

TEST_F(RuntimeFolder, ARefusalSaysWhatIsWrongAndWhatToDo) {
  const std::string folder = dir_.file("folder");
  ::setenv("OFFLOAD_RUNTIME_DIR", folder.c_str(), 1);
  const auto refusal = [&] {
    return std::string(
        support::thrown_by([&] { check_runtime_folder(folder + "/x.sock"); }).what());
  };
  std::filesystem::create_symlink(dir_.file("not there"), folder);
  EXPECT_NE(refusal().find("it is not a folder"), std::string::npos);
  std::filesystem::remove(folder);
  ASSERT_EQ(::mkdir(folder.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(folder.c_str(), 0750), 0);
  EXPECT_NE(refusal().find("others have access (chmod 700)"), std::string::npos);
  EXPECT_NE(refusal().find("OFFLOAD_RUNTIME_DIR"), std::string::npos);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(folder.c_str(), 65534, 65534), 0);
    EXPECT_NE(refusal().find("it belongs to user 65534, not to user 0"), std::string::npos);
  }
  ::unsetenv("OFFLOAD_RUNTIME_DIR");
}

// Otherwise a worker that starts before its server would have to be allowed to make it.
TEST_F(RuntimeFolder, IsNotMadeByWhoConnects) {
  ::setenv("OFFLOAD_RUNTIME_DIR", dir_.file("nothing yet").c_str(), 1);
  const Address address = Address::parse("unix:" + dir_.file("nothing yet") + "/x.sock");
  const auto connecting = support::thrown_by([&] { static_cast<void>(connect_local(address)); });
  ::unsetenv("OFFLOAD_RUNTIME_DIR");
  EXPECT_EQ(connecting.system_errno(), ENOENT);
  EXPECT_FALSE(std::filesystem::exists(dir_.file("nothing yet")));
}

TEST_F(RuntimeFolder, OfAnotherPathIsTheUsersConcern) {
  make_runtime_folder(dir_.file("not there") + "/x.sock");
  EXPECT_FALSE(std::filesystem::exists(dir_.file("not there")));
}

}  // namespace
}  // namespace offload::comch
