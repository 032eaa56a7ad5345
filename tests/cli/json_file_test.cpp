#include "cli/json_file.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/error.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::cli {
namespace {

std::string content_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(JsonFile, WritesWhatItIsGivenInOrder) {
  const support::TempDir directory;
  JsonFile file(directory.file("results.json"));
  EXPECT_TRUE(std::filesystem::exists(directory.file("results.json")));  // before the run
  file.write({{"zebra", 1}, {"ant", {1, 2}}});
  const auto text = content_of(directory.file("results.json"));
  EXPECT_EQ(text, "{\n  \"zebra\": 1,\n  \"ant\": [\n    1,\n    2\n  ]\n}\n");
}

TEST(JsonFile, WithoutAPathThereIsNoFile) {
  JsonFile file("");
  EXPECT_NO_THROW(file.write({{"a", 1}}));
}

TEST(JsonFile, AWrongPathShowsAtOnce) {
  const support::TempDir directory;
  const auto path = directory.file("no/such/folder.json");
  const auto error = support::thrown_by([&] { const JsonFile file(path); });
  EXPECT_EQ(error.code(), core::ErrorCode::not_found);
  EXPECT_EQ(error.what(), "cannot write '" + path + "': No such file or directory");
}

TEST(JsonFile, AFullDiskIsAnError) {
  JsonFile file("/dev/full");
  EXPECT_EQ(support::thrown_by([&] { file.write({{"a", 1}}); }).code(), core::ErrorCode::full);
}

TEST(JsonFile, TextThatIsNoUtf8IsReplaced) {
  const support::TempDir directory;
  JsonFile file(directory.file("results.json"));
  file.write({{"text",
               "a\xff"
               "b"}});
  EXPECT_EQ(content_of(directory.file("results.json")),
            "{\n  \"text\": \"a\xef\xbf\xbd"
            "b\"\n}\n");
}

}  // namespace
}  // namespace offload::cli
