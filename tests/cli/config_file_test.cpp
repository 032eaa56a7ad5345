#include "cli/config_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::cli {
namespace {

using Values = std::vector<std::string>;

class ConfigFile : public testing::Test {
 protected:
  std::vector<Setting> read(const std::string& text) const {
    std::ofstream(path_, std::ios::binary) << text;
    return read_config(path_);
  }
  /// Returns the error about the file, without the path.
  [[nodiscard]] std::string refused(const std::string& text) const {
    const std::string all = support::thrown_by([&] { (void)read(text); }).what();
    return all.starts_with(path_) ? all.substr(path_.size()) : "no path: " + all;
  }

  const support::TempDir directory_;
  const std::string path_ = directory_.file("settings");
};

TEST_F(ConfigFile, TomlHasTextsNumbersTruthAndLists) {
  const auto settings = read(
      "# first\nthreads = 2\nlog-level = \"info\"\n\nspin = 1.5\ninsecure = true\n"
      "cpu = [\n  0,\n  1,\n]\ncomch-allow = []\n");
  ASSERT_EQ(settings.size(), 6U);
  EXPECT_EQ(settings[0].name, "threads");
  EXPECT_EQ(settings[0].values, Values{"2"});
  EXPECT_EQ(settings[0].place, path_ + ":2:1");
  EXPECT_EQ(settings[1].values, Values{"info"});
  EXPECT_EQ(settings[2].values, Values{"1.5"});
  EXPECT_EQ(settings[3].values, Values{"true"});
  EXPECT_EQ(settings[4].values, (Values{"0", "1"}));
  EXPECT_EQ(settings[4].place, path_ + ":7:1");
  EXPECT_EQ(settings[5].values, Values{});
}

TEST_F(ConfigFile, NothingSaysNothing) {
  EXPECT_TRUE(read("").empty());
  EXPECT_TRUE(read("# all defaults\n").empty());
  EXPECT_TRUE(read("{}").empty());
}

TEST_F(ConfigFile, JsonHasThem) {
  const auto settings = read("{\"threads\": 2,\n \"spin\": \"5us\", \"cpu\": [0, \"1\"]}");
  ASSERT_EQ(settings.size(), 3U);
  EXPECT_EQ(settings[0].name, "threads");
  EXPECT_EQ(settings[0].values, Values{"2"});
  EXPECT_EQ(settings[1].values, Values{"5us"});
  EXPECT_EQ(settings[1].place, path_ + ":2:2");
  EXPECT_EQ(settings[2].values, (Values{"0", "1"}));
}

TEST_F(ConfigFile, TheReferencesJsonHasTwoObjectsAndComments) {
  const auto settings = read(R"({
  "doca_general_flags": {
    // -l - a numeric level
    "log-level": 60
  },
  "doca_program_flags": {"server-listen-port": 80}
})");
  ASSERT_EQ(settings.size(), 2U);
  EXPECT_EQ(settings[0].name, "log-level");
  EXPECT_EQ(settings[0].values, Values{"60"});
  EXPECT_EQ(settings[0].place, path_ + ":4:5");
  EXPECT_EQ(settings[1].name, "server-listen-port");
}

TEST_F(ConfigFile, WhatIsWrongIsSaidWithItsPlace) {
  EXPECT_EQ(refused("a = 1\nb = [1, 2\n").substr(0, 3), ":2:");
  EXPECT_EQ(refused("a = 1\na = 2\n").substr(0, 4), ":2:5");
  EXPECT_EQ(refused("a = 1979-05-27\n"), ":1:5: expected text, number, true, false or a list");
  EXPECT_EQ(refused("a = [[1]]\n"), ":1:6: expected text, number, true, false or a list");
  EXPECT_EQ(refused("\n[server]\nb = 1\n"), ":2:2: a table; expected options");
  EXPECT_EQ(refused("{\"a\": 1,\n}"), ":2:1: is not valid JSON");
  EXPECT_EQ(refused("{\"a\":\n 1, \"b\": null}"),
            ":2:5: b: expected text, number, true, false or a list");
  EXPECT_EQ(refused("{\"a\": {\"b\": 1}}"),
            ":1:2: a: expected text, number, true, false or a list");
  EXPECT_EQ(refused("a = \"\xff\"\n").substr(0, 3), ":1:");
  EXPECT_EQ(refused(std::string(100'000, ' ')), ": is longer than 65536 bytes");
}

TEST_F(ConfigFile, MustBeAFile) {
  const auto why = [this] {
    return std::string(support::thrown_by([&] { (void)read_config(path_); }).what());
  };
  EXPECT_NE(why().find("No such file"), std::string::npos);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);  // to read it would wait for a writer
  EXPECT_NE(why().find("is not a regular file"), std::string::npos);
}

TEST_F(ConfigFile, AFileOfTablesHasThemInItsOrder) {
  std::ofstream(path_) << "seed = 7\n[[load]]\nsize = 64\ntls = true\n[base]\nport = 1\n"
                          "start = [\"one\", \"two\"]\n[[load]]\nmix = \"64:1\"\n";
  const auto tables = read_config_tables(path_);
  ASSERT_EQ(tables.size(), 4U);
  EXPECT_EQ(tables[0].name, "");
  ASSERT_EQ(tables[0].settings.size(), 1U);
  EXPECT_EQ(tables[0].settings[0].values, Values{"7"});
  EXPECT_EQ(tables[1].name, "load");
  ASSERT_EQ(tables[1].settings.size(), 2U);
  EXPECT_EQ(tables[1].settings[0].name, "size");
  EXPECT_EQ(tables[1].settings[1].values, Values{"true"});
  EXPECT_EQ(tables[1].place, path_ + ":2:1");
  EXPECT_EQ(tables[2].name, "base");
  EXPECT_EQ(tables[2].settings[1].values, (Values{"one", "two"}));
  EXPECT_EQ(tables[2].settings[1].place, path_ + ":7:1");
  EXPECT_EQ(tables[3].name, "load");
  EXPECT_EQ(tables[3].settings[0].name, "mix");
}

TEST_F(ConfigFile, ATableOfATableIsRefused) {
  std::ofstream(path_) << "[base]\nport = 1\n[base.more]\nx = 1\n";
  EXPECT_EQ(support::thrown_by([&] { (void)read_config_tables(path_); }).what(),
            path_ + ":3:7: a table; expected options");
}

}  // namespace
}  // namespace offload::cli
