#include "core/file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "core/error.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::core {
namespace {

TEST(OpenRegularFile, ReadsOne) {
  const support::TempDir folder;
  const std::string path = folder.file("file");
  std::ofstream(path) << "text";
  const Fd file = open_regular_file(path, "cannot read it");
  std::string text(8, ' ');
  ASSERT_EQ(::read(file.get(), text.data(), text.size()), 4);
  EXPECT_EQ(text.substr(0, 4), "text");
}

TEST(OpenRegularFile, RefusesWhatIsNoFileWithoutWaiting) {
  const support::TempDir folder;
  const std::string fifo = folder.file("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& path : {fifo, folder.path(), std::string("/dev/zero")}) {
    const auto open = [&] { static_cast<void>(open_regular_file(path, "cannot read it")); };
    EXPECT_EQ(support::thrown_by(open).code(), ErrorCode::invalid_value) << path;
  }
}

}  // namespace
}  // namespace offload::core
