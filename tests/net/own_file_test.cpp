#include "net/own_file.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "core/error.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::net {
namespace {

class OwnFileTest : public testing::Test {
 protected:
  void make() const { std::ofstream(path_) << "text"; }

  support::TempDir folder_;
  std::string path_ = folder_.file("a-file");
};

TEST_F(OwnFileTest, GoesAtItsEnd) {
  make();
  std::optional<OwnFile> file(path_);
  EXPECT_EQ(file->path(), path_);
  EXPECT_TRUE(std::filesystem::exists(path_));
  file.reset();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(OwnFileTest, AnothersInItsPlaceStays) {
  make();
  {
    const OwnFile file(path_);
    std::filesystem::rename(path_, folder_.file("moved"));  // so that its inode is not free
    make();
  }
  EXPECT_TRUE(std::filesystem::exists(path_));
  EXPECT_TRUE(std::filesystem::exists(folder_.file("moved")));
}

TEST_F(OwnFileTest, IsRemovedOnceAndSaysSo) {
  make();
  struct stat file {};
  ASSERT_EQ(::lstat(path_.c_str(), &file), 0);
  EXPECT_TRUE(remove_same_file(path_, file));
  EXPECT_FALSE(remove_same_file(path_, file));
}

TEST_F(OwnFileTest, ThatIsGoneIsNoTrouble) {
  make();
  {
    const OwnFile file(path_);
    std::filesystem::remove(path_);
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(OwnFileTest, HasToBeThere) {
  EXPECT_EQ(support::thrown_by([&] { const OwnFile file(path_); }).code(),
            core::ErrorCode::not_found);
}

}  // namespace
}  // namespace offload::net
