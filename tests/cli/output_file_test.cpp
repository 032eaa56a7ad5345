#include "cli/output_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/fd.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::cli {
namespace {

class OutputFileTest : public testing::Test {
 protected:
  [[nodiscard]] std::size_t file_count() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(directory_.path()))
      ++count;
    return count;
  }

  support::TempDir directory_;
  std::string path_ = directory_.file("results");
};

TEST_F(OutputFileTest, NothingIsThereBeforeItIsWritten) {
  OutputFile file(path_, "--output", "mine");
  EXPECT_EQ(file_count(), 0U);
  file.write("mine: 1\n");
  EXPECT_EQ(directory_.read("results"), "mine: 1\n");
  EXPECT_EQ(file_count(), 1U);
}

TEST_F(OutputFileTest, WhatWasThereStaysUntilThen) {
  directory_.write("results", "mine: old");
  ::chmod(path_.c_str(), 0640);
  OutputFile file(path_, "--output", "mine");
  EXPECT_EQ(directory_.read("results"), "mine: old");
  file.write("mine: new");
  EXPECT_EQ(directory_.read("results"), "mine: new");
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0640U);
}

TEST_F(OutputFileTest, ANewFileHasThePermissionsOfTheProcess) {
  for (const auto& [mask, permissions] :
       {std::pair<mode_t, mode_t>{0027U, 0640U}, std::pair<mode_t, mode_t>{0U, 0666U}}) {
    std::filesystem::remove(path_);
    const mode_t before = ::umask(mask);
    OutputFile(path_, "--output", "mine").write("mine");
    EXPECT_EQ(::umask(before), mask);
    struct stat status {};
    ASSERT_EQ(::stat(path_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, permissions);
  }
}

TEST_F(OutputFileTest, AMarkerMayBeLaidOutInAnyWay) {
  directory_.write("results", "{\n  \"mine\" :\t1}");
  OutputFile(path_, "--output", "{\"mine\": 1").write("new");
  EXPECT_EQ(directory_.read("results"), "new");
}

TEST_F(OutputFileTest, LinksInACircleAreRefused) {
  std::filesystem::create_symlink("b", directory_.file("a"));
  std::filesystem::create_symlink("a", directory_.file("b"));
  const auto error =
      support::thrown_by([&] { const OutputFile file(directory_.file("a"), "--output", ""); });
  EXPECT_EQ(error.system_errno(), ELOOP);
}

TEST_F(OutputFileTest, AsManyLinksAreFollowedAsTheKernelFollows) {
  constexpr int kMost = 40;
  for (int i = 0; i <= kMost; ++i) {
    std::filesystem::create_symlink(i == 0 ? "results" : "link" + std::to_string(i - 1),
                                    directory_.file("link" + std::to_string(i)));
  }
  OutputFile(directory_.file("link" + std::to_string(kMost - 1)), "--output", "").write("text");
  EXPECT_EQ(directory_.read("results"), "text");
  const auto error = support::thrown_by([&] {
    const OutputFile file(directory_.file("link" + std::to_string(kMost)), "--output", "");
  });
  EXPECT_EQ(error.system_errno(), ELOOP);
}

TEST_F(OutputFileTest, AFileOfSomebodyElseIsNotOverwritten) {
  directory_.write("results", "#!/bin/sh");
  const auto error = support::thrown_by([&] { const OutputFile file(path_, "--output", "mine"); });
  EXPECT_EQ(error.code(), core::ErrorCode::already_exists);
  EXPECT_EQ(error.what(), "--output: '" + path_ +
                              "' does not contain results of this program: it is not overwritten");
  EXPECT_EQ(directory_.read("results"), "#!/bin/sh");
}

TEST_F(OutputFileTest, ASymbolicLinkStaysOne) {
  std::filesystem::create_symlink(path_, directory_.file("link"));
  OutputFile(directory_.file("link"), "--output", "mine").write("mine");
  EXPECT_TRUE(std::filesystem::is_symlink(directory_.file("link")));
  EXPECT_EQ(directory_.read("results"), "mine");
}

TEST_F(OutputFileTest, AnEmptyFileMayBeOverwritten) {
  directory_.write("results", "");
  OutputFile(path_, "--output", "mine").write("mine");
  EXPECT_EQ(directory_.read("results"), "mine");
}

TEST_F(OutputFileTest, AWrongPathShowsAtOnce) {
  const auto path = directory_.file("no/such/folder.json");
  const auto error = support::thrown_by([&] { const OutputFile file(path, "--output", ""); });
  EXPECT_EQ(error.code(), core::ErrorCode::not_found);
  EXPECT_EQ(error.what(), "cannot write '" + path + "': No such file or directory");
}

TEST_F(OutputFileTest, AFolderIsNoFile) {
  EXPECT_NE(std::string(support::thrown_by([&] {
                          const OutputFile file(directory_.path(), "--output", "");
                        }).what())
                .find("Is a directory"),
            std::string::npos);
}

TEST_F(OutputFileTest, AFullDiskIsAnError) {
  OutputFile file("/dev/full", "--output", "");
  EXPECT_EQ(support::thrown_by([&] { file.write("text"); }).code(), core::ErrorCode::full);
}

TEST_F(OutputFileTest, WhatIsNotCommittedIsGone) {
  {
    OutputFile file(path_, "--output", "mine");
    file.append("mine: half");
    EXPECT_EQ(file_count(), 1U);
  }
  EXPECT_EQ(file_count(), 0U);
}

TEST_F(OutputFileTest, PiecesAreJoined) {
  OutputFile file(path_, "--output", "mine");
  file.append("one ");
  file.append("two");
  file.commit();
  EXPECT_EQ(directory_.read("results"), "one two");
}

TEST_F(OutputFileTest, ASecondWriteReplacesTheFirst) {
  OutputFile file(path_, "--output", "mine");
  file.write("mine: one");
  file.write("mine: 2");
  EXPECT_EQ(directory_.read("results"), "mine: 2");
  EXPECT_EQ(file_count(), 1U);
}

TEST_F(OutputFileTest, WithoutDataTheFileIsEmpty) {
  OutputFile(path_, "--output", "mine").commit();
  EXPECT_EQ(file_count(), 1U);
  EXPECT_EQ(directory_.read("results"), "");
}

TEST_F(OutputFileTest, AFolderThatIsGoneMeanwhileIsAnError) {
  const std::string folder = directory_.file("folder");
  std::filesystem::create_directory(folder);
  OutputFile file(folder + "/results", "--output", "mine");
  std::filesystem::remove(folder);
  EXPECT_EQ(support::thrown_by([&] { file.write("mine"); }).code(), core::ErrorCode::not_found);
}

TEST_F(OutputFileTest, APipeIsWrittenInPlace) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const core::Fd reader(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  OutputFile file(path_, "--output", "mine");
  file.write("one ");
  file.write("two");
  std::array<char, 16> text{};
  EXPECT_EQ(::read(reader.get(), text.data(), text.size()), 7);
  EXPECT_STREQ(text.data(), "one two");
  EXPECT_TRUE(std::filesystem::is_fifo(path_));
  EXPECT_EQ(file_count(), 1U);
}

/// The directory is the process's own, too.
class OutputFileWithin : public OutputFileTest {
 protected:
  OutputFileWithin() { std::filesystem::current_path(directory_.path()); }
  ~OutputFileWithin() override { std::filesystem::current_path(before_); }

  const std::filesystem::path before_ = std::filesystem::current_path();
};

TEST_F(OutputFileWithin, WithoutAPathThereIsNoFile) {
  OutputFile file("", "--output", "mine");
  EXPECT_FALSE(file.wanted());
  EXPECT_NO_THROW(file.append("text"));
  EXPECT_EQ(file_count(), 0U);
  EXPECT_NO_THROW(file.commit());
  EXPECT_EQ(file_count(), 0U);
}

TEST_F(OutputFileWithin, ADashIsStandardOutput) {
  directory_.write("-", "#!/bin/sh");
  OutputFile file("-", "--output", "mine");
  EXPECT_TRUE(file.is_standard_output());
  testing::internal::CaptureStdout();
  file.write("one ");
  file.write("two");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "one two");
  EXPECT_EQ(directory_.read("-"), "#!/bin/sh");
}

}  // namespace
}  // namespace offload::cli
