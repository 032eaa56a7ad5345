#include "apps/worker/compiler.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::worker {
namespace {

/// Folders of a test's own $TMPDIR.
class PrivateFolderTest : public testing::Test {
 protected:
  PrivateFolderTest() {
    if (const char* const before = std::getenv("TMPDIR"); before != nullptr) before_ = before;
    ::setenv("TMPDIR", parent_.path().c_str(), 1);
  }
  ~PrivateFolderTest() override {
    if (before_) ::setenv("TMPDIR", before_->c_str(), 1);
    if (!before_) ::unsetenv("TMPDIR");
  }

  support::TempDir elsewhere_;
  support::TempDir parent_;

 private:
  std::optional<std::string> before_;
};

TEST_F(PrivateFolderTest, IsRemovedWithItsContentsAndNoFurther) {
  elsewhere_.write("kept", "kept");
  {
    const PrivateFolder folder;
    EXPECT_EQ(std::filesystem::path(folder.path()).parent_path(), parent_.path());
    struct stat found {};
    ASSERT_EQ(::stat(folder.path().c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 07777, static_cast<mode_t>(S_IRWXU));
    std::filesystem::create_directory(folder.path() + "/below");
    std::ofstream(folder.path() + "/below/file") << "text";
    std::filesystem::create_symlink(elsewhere_.path(), folder.path() + "/link");
  }
  EXPECT_TRUE(std::filesystem::is_empty(parent_.path()));
  EXPECT_EQ(elsewhere_.read("kept"), "kept");
}

TEST_F(PrivateFolderTest, OpensRegularFilesAlone) {
  const PrivateFolder folder;
  std::ofstream(folder.path() + "/file") << "text";
  EXPECT_TRUE(folder.open_file("file").valid());
  elsewhere_.write("file", "text");
  std::filesystem::create_symlink(elsewhere_.file("file"), folder.path() + "/link");
  std::filesystem::create_directory(folder.path() + "/below");
  for (const char* const other : {"link", "below", "missing"}) {
    EXPECT_THROW((void)folder.open_file(other), core::Error) << other;
  }
}

TEST_F(PrivateFolderTest, ACompilerRunsInItWithItsTemporaryFiles) {
  core::Signals signals{core::Hangup::rereads};
  const PrivateFolder folder;
  const CompilerRun run =
      run_compiler({"/bin/sh", "-c", "pwd; echo \"$TMPDIR $LC_ALL\" >&2; exit 3"}, folder, signals);
  EXPECT_EQ(run.output, folder.path() + "\n" + folder.path() + " C\n");
  EXPECT_EQ(run.failure, "exit status 3");
  EXPECT_EQ(run_compiler({"/bin/true"}, folder, signals).failure, "");
  const auto error =
      support::thrown_by([&] { (void)run_compiler({"/none/compiler"}, folder, signals); });
  EXPECT_STREQ(error.what(), "cannot start /none/compiler: No such file or directory");
}

TEST_F(PrivateFolderTest, TheOutputOfACompilerIsLimited) {
  core::Signals signals{core::Hangup::rereads};
  const PrivateFolder folder;
  const CompilerRun run =
      run_compiler({"/bin/sh", "-c", "cat; head -c 70000 /dev/zero"}, folder, signals);
  EXPECT_EQ(run.failure, "");  // its input is empty
  EXPECT_EQ(run.output, std::string(std::size_t{64} * 1024, '\0'));
}

TEST_F(PrivateFolderTest, ASignalEndsACompiler) {
  core::Signals signals{core::Hangup::rereads};
  const PrivateFolder folder;
  EXPECT_EQ(run_compiler({"/bin/sh", "-c", "kill -HUP $PPID && echo on"}, folder, signals).output,
            "on\n");
  while (signals.take() != 0) continue;  // the compiler may have been faster than its signal
  EXPECT_THROW(
      (void)run_compiler({"/bin/sh", "-c", "kill -TERM $PPID && sleep 600"}, folder, signals),
      core::Interrupted);
}

}  // namespace
}  // namespace offload::worker
