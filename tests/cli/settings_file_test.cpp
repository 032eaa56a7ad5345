#include "cli/settings_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "core/error.hpp"
#include "core/log.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::cli {
namespace {

using namespace std::chrono_literals;

class SettingsFileTest : public testing::Test {
 protected:
  SettingsFileTest() {
    file_.add_log_level(level_);
    file_.add_time("worker-timeout", worker_timeout_);
    file_.add_time("stuck-after", stuck_after_, 1ms);
  }
  void write(const std::string& text) const { std::ofstream(path_) << text; }
  [[nodiscard]] std::string refused(const std::string& text) const {
    write(text);
    return support::thrown_by([&] { (void)file_.read(); }).what();
  }

  const support::TempDir directory_;
  const support::LogCapture log_;
  const std::string path_ = directory_.file("settings.json");
  std::string level_ = "info";
  core::Duration worker_timeout_ = 10s;
  core::Duration stuck_after_ = 2s;
  SettingsFile file_{path_};
};

TEST_F(SettingsFileTest, ChangesWhatItNames) {
  write(R"({"log-level": "error", "worker-timeout": "250ms", "stuck-after": 1.5})");
  const auto apply = file_.read();
  EXPECT_EQ(worker_timeout_, 10s);  // not yet
  apply();
  EXPECT_EQ(worker_timeout_, 250ms);
  EXPECT_EQ(stuck_after_, 1500ms);
  EXPECT_EQ(level_, "error");
  core::log_warning("not reported now");
  EXPECT_EQ(log_.text(), "");
}

TEST_F(SettingsFileTest, WhatItNoLongerNamesIsAsTheCommandLineHadIt) {
  write(R"({"log-level": "error", "worker-timeout": "250ms"})");
  file_.read()();
  write(R"({"stuck-after": "3s"})");
  file_.read()();
  EXPECT_EQ(level_, "info");
  EXPECT_EQ(worker_timeout_, 10s);
  EXPECT_EQ(stuck_after_, 3s);
  core::log_info("reported again");
  EXPECT_TRUE(log_.has("reported again"));
}

TEST_F(SettingsFileTest, SaysWhatIsWrongAndChangesNothing) {
  EXPECT_NE(refused(R"({"worker-timeout": "soon"})").find("worker-timeout: 'soon' is not a time"),
            std::string::npos);
  EXPECT_NE(refused(R"({"stuck-after": 0})").find("stuck-after: '0' is not"), std::string::npos);
  EXPECT_NE(refused(R"({"worker-timeout": "1s", "log-level": "loud"})")
                .find("log-level: 'loud' is not one of trace, debug"),
            std::string::npos);
  EXPECT_NE(refused(R"({"log-level": null})").find("'null'"), std::string::npos);
  EXPECT_NE(refused(R"({"wroker-timeout": "1s"})").find("'wroker-timeout' is not one of log-level"),
            std::string::npos);
  EXPECT_NE(refused("[1]").find("no JSON object"), std::string::npos);
  EXPECT_NE(refused(R"({"log-level": )").find("is no JSON"), std::string::npos);
  EXPECT_NE(refused("").find("is no JSON"), std::string::npos);
  EXPECT_NE(refused(std::string(100'000, ' ')).find("longer than"), std::string::npos);
  EXPECT_EQ(worker_timeout_, 10s);
  EXPECT_EQ(level_, "info");
}

TEST_F(SettingsFileTest, NamesItself) {
  EXPECT_NE(refused("[]").find(path_), std::string::npos);
}

TEST_F(SettingsFileTest, MustBeAFile) {
  EXPECT_NE(
      std::string(support::thrown_by([&] { (void)file_.read(); }).what()).find("No such file"),
      std::string::npos);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);  // to read it would wait for a writer
  EXPECT_NE(support::thrown_by([&] { (void)file_.read(); }).what(), nullptr);
}

TEST_F(SettingsFileTest, WithoutAPathThereIsNone) {
  SettingsFile none("");
  none.add_time("worker-timeout", worker_timeout_);
  none.read()();
  EXPECT_EQ(worker_timeout_, 10s);
}

}  // namespace
}  // namespace offload::cli
