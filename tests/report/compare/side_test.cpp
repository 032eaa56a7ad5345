#include "apps/report/compare/side.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "results/write_result.hpp"
#include "tests/results/sample.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::report {
namespace {

using namespace results;

class SideFiles : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::vector<double>& begun_s) {
    std::vector<report::Run> runs;
    for (const double at : begun_s) runs.push_back(sample_run(at));
    std::ofstream(folder_.file(name)) << result_text(sample_result(runs));
    return folder_.file(name);
  }
  static std::vector<double> begun(const Side& side) {
    std::vector<double> seconds;
    for (const report::Run* run : side.runs()) {
      seconds.push_back(run->started_at_unix_s - sample_run().started_at_unix_s);
    }
    return seconds;
  }

  support::TempDir folder_;
};

TEST_F(SideFiles, AFileWithSeveralRuns) {
  EXPECT_EQ(begun(read_side(write("a.json", {0, 20}))), (std::vector<double>{0, 20}));
}

TEST_F(SideFiles, AListIsSortedByTime) {
  const auto list = write("a.json", {40, 20}) + "," + write("b.json", {0, 60});
  EXPECT_EQ(begun(read_side(list)), (std::vector<double>{0, 20, 40, 60}));
}

TEST_F(SideFiles, AFolder) {
  write("b.json", {20});
  write("a.json", {0});
  std::ofstream(folder_.file("notes.txt")) << "no result";
  EXPECT_EQ(begun(read_side(folder_.path())), (std::vector<double>{0, 20}));
}

TEST_F(SideFiles, AFileWithACommaInItsName) {
  EXPECT_EQ(begun(read_side(write("a,b.json", {7}))), (std::vector<double>{7}));
}

TEST_F(SideFiles, RefusesAFolderWithoutResultsAndWhatIsNotThere) {
  const auto what = [](const std::string& text) {
    return std::string(support::thrown_by([&] { read_side(text); }).what());
  };
  EXPECT_NE(what(folder_.path()).find("has no file *.json"), std::string::npos);
  EXPECT_NE(what(write("a.json", {0}) + ",").find("'' cannot be read"), std::string::npos);
}

}  // namespace
}  // namespace offload::report
