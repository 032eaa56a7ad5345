#include "cli/json_file.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::cli {
namespace {

TEST(JsonFile, WritesWhatItIsGivenInOrder) {
  const support::TempDir directory;
  JsonFile file(directory.file("results.json"));
  file.write({{"zebra", 1}, {"ant", {1, 2}}});
  EXPECT_EQ(directory.read("results.json"),
            "{\n  \"zebra\": 1,\n  \"ant\": [\n    1,\n    2\n  ]\n}\n");
}

TEST(JsonFile, WithoutAPathThereIsNoFile) {
  JsonFile file("");
  EXPECT_NO_THROW(file.write({{"a", 1}}));
}

TEST(JsonFile, OnlyResultsOfItsProgramAreOverwritten) {
  const support::TempDir directory;
  JsonFile(directory.file("results.json")).write({{"program", "one"}});
  EXPECT_NO_THROW(JsonFile(directory.file("results.json"), "one"));
  const auto error =
      support::thrown_by([&] { const JsonFile file(directory.file("results.json"), "other"); });
  EXPECT_EQ(error.code(), core::ErrorCode::already_exists);
}

TEST(JsonFile, TextThatIsNoUtf8IsReplaced) {
  const support::TempDir directory;
  JsonFile file(directory.file("results.json"));
  file.write({{"text",
               "a\xff"
               "b"}});
  EXPECT_EQ(directory.read("results.json"),
            "{\n  \"text\": \"a\xef\xbf\xbd"
            "b\"\n}\n");
}

}  // namespace
}  // namespace offload::cli
