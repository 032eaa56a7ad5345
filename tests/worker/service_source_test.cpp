#include "apps/worker/service_source.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "device/device.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::worker {
namespace {

using core::ErrorCode;

constexpr const char* kMistake = "#error it is wrong\n";
constexpr const char* kService = R"(
#include "kernels/module/service_module.hpp"
struct Second : offload::kernels::Echo {
  static constexpr const char* kName = "second";
};
OFFLOAD_SERVICE_MODULE(Second);
)";

class ServiceSourceTest : public testing::Test {
 protected:
  ServiceSourceTest() {
    options_.backend = "cpu";
    if (const char* const before = std::getenv("PATH"); before != nullptr) path_ = before;
  }
  ~ServiceSourceTest() override { ::setenv("PATH", path_.c_str(), 1); }
  void SetUp() override {
    const auto program = std::filesystem::read_symlink("/proc/self/exe");
    if (!std::filesystem::exists(program.parent_path().parent_path() / "include")) {
      GTEST_SKIP() << "the headers of modules are not beside the programs";
    }
  }

  /// Adds a source with this text; returns its path.
  std::string add(const std::string& name, const std::string& text) {
    dir_.write(name, text);
    return options_.service_sources.emplace_back(dir_.file(name));
  }
  core::Error failure() {
    return support::thrown_by([this] { (void)make_services(options_, signals_); });
  }
  bool has_compiler() { return std::system("command -v c++ >/dev/null") == 0; }

  support::LogCapture log_;
  support::TempDir dir_;
  core::Signals signals_{core::Hangup::rereads};
  Options options_;

 private:
  std::string path_;
};

TEST_F(ServiceSourceTest, IsCompiledAndLoaded) {
  if (!has_compiler()) GTEST_SKIP() << "there is no c++ here";
  const std::string source = add("second.cpp", kService);
  const auto names = make_services(options_, signals_).names();
  EXPECT_EQ(std::ranges::count(names, "second"), 1);
  EXPECT_GT(names.size(), 1U);
  EXPECT_TRUE(log_.has("info: compiling " + source + " by /")) << log_.text();
}

TEST_F(ServiceSourceTest, WithAMistakeIsNamed) {
  if (!has_compiler()) GTEST_SKIP() << "there is no c++ here";
  const std::string source = add("wrong.cpp", kMistake);
  testing::internal::CaptureStderr();
  const core::Error error = failure();
  EXPECT_NE(testing::internal::GetCapturedStderr().find("it is wrong\n"), std::string::npos);
  EXPECT_EQ(error.code(), ErrorCode::invalid_value);
  const std::string text = error.what();
  EXPECT_TRUE(text.starts_with("service source '" + source + "': /")) << text;
  EXPECT_TRUE(text.ends_with("/c++ failed to compile it: exit status 1")) << text;
}

TEST_F(ServiceSourceTest, ThatIsMissingIsNamed) {
  if (!has_compiler()) GTEST_SKIP() << "there is no c++ here";
  options_.service_sources = {"missing.cpp"};
  const core::Error error = failure();
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_STREQ(error.what(), "service source 'missing.cpp': there is no such file");
}

TEST_F(ServiceSourceTest, NeedsACompilerOfAnAbsoluteFolder) {
  add("second.cpp", kService);
  dir_.write("c++", "#!/bin/sh\n");
  std::filesystem::permissions(dir_.file("c++"), std::filesystem::perms::owner_all);
  const auto folder = std::filesystem::relative(dir_.path());
  ::setenv("PATH", folder.c_str(), 1);
  const core::Error error = failure();
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_STREQ(error.what(),
               "--service-source: there is no C++ compiler (c++) in PATH: install the package g++");
  // This one makes nothing.
  ::setenv("PATH", dir_.path().c_str(), 1);
  EXPECT_EQ(failure().code(), ErrorCode::not_found);
  EXPECT_TRUE(log_.has(" by " + dir_.file("c++"))) << log_.text();
}

TEST_F(ServiceSourceTest, OfAGpuIsForTheCpuOnlyWhereTheBackEndIs) {
  if (!device::list_gpus().devices.empty()) GTEST_SKIP() << "there is a GPU";
  if (!has_compiler()) GTEST_SKIP() << "there is no c++ here";
  add("wrong.cu", kMistake);
  const auto reaches_compiler = [this] {
    testing::internal::CaptureStderr();
    const std::string text = failure().what();
    static_cast<void>(testing::internal::GetCapturedStderr());
    return text.find("/c++ failed to compile it") != std::string::npos;
  };
  for (const char* const backend : {"cpu", "auto"}) {
    options_.backend = backend;
    EXPECT_TRUE(reaches_compiler()) << backend;
  }
  for (const char* const backend : {"cuda", "graph"}) {
    options_.backend = backend;
    EXPECT_FALSE(reaches_compiler()) << backend;
  }
  options_.backend = "auto";
  options_.gpu_pci_addresses = {"ffff:1f:1f.7"};
  EXPECT_FALSE(reaches_compiler()) << "a GPU that is named";
}

}  // namespace
}  // namespace offload::worker
