#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "comch/transport/local/control.hpp"
#include "core/error.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::comch {
namespace {

class PathLocks : public testing::Test {
 protected:
  support::TempDir dir_;
  Address address_ = Address::parse("unix:" + dir_.file("comch"));
  std::string file_ = address_.path + ".lock";
};

TEST_F(PathLocks, OneAtATime) {
  std::optional<PathLock> lock(std::in_place, address_);
  EXPECT_TRUE(std::filesystem::exists(file_));
  const auto error = support::thrown_by([&] { const PathLock second(address_); });
  EXPECT_EQ(error.code(), core::ErrorCode::in_use);
  lock.reset();
  EXPECT_FALSE(std::filesystem::exists(file_));
  const PathLock next(address_);
}

TEST_F(PathLocks, AFileThatAKilledHolderLeftLocksNothing) {
  std::ofstream(file_) << "";
  const PathLock lock(address_);
  const auto error = support::thrown_by([&] { const PathLock second(address_); });
  EXPECT_EQ(error.code(), core::ErrorCode::in_use);
}

TEST_F(PathLocks, AnothersFileInItsPlaceStays) {
  {
    const PathLock lock(address_);
    std::filesystem::remove(file_);
    std::ofstream(file_) << "";
  }
  EXPECT_TRUE(std::filesystem::exists(file_));
}

TEST_F(PathLocks, DoesNotFollowASymbolicLink) {
  std::filesystem::create_symlink(dir_.file("elsewhere"), file_);
  EXPECT_THROW(const PathLock lock(address_), core::Error);
  EXPECT_FALSE(std::filesystem::exists(dir_.file("elsewhere")));
}

}  // namespace
}  // namespace offload::comch
