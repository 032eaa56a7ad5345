#include "cli/output_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "core/error.hpp"
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
  const mode_t before = ::umask(0027);
  OutputFile(path_, "--output", "mine").write("mine");
  EXPECT_EQ(::umask(before), 0027U);
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0640U);
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

TEST_F(OutputFileTest, WithoutAPathThereIsNoFile) {
  OutputFile file("", "--output", "mine");
  EXPECT_FALSE(file.wanted());
  EXPECT_NO_THROW(file.write("text"));
}

}  // namespace
}  // namespace offload::cli
