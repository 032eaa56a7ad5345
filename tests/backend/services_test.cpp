#include "backend/services.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "core/error.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

/// Tests with the modules of tests/services: valid ones and each kind of invalid one.
namespace offload::backend {
namespace {

using core::ErrorCode;

std::string module(const std::string& name) {
  // The modules are in a folder beside that of the tests' programs, here and in a bundle.
  const auto here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return here.parent_path() / "services" / (name + ".so");
}

/// Expects that `what` throws an error with one line that has all of `parts`.
template <class What>
void expect_refused(What what, ErrorCode code, const std::vector<std::string>& parts) {
  const core::Error error = support::thrown_by(what);
  EXPECT_EQ(error.code(), code) << error.what();
  const std::string text = error.what();
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  for (const auto& part : parts) EXPECT_NE(text.find(part), std::string::npos) << text;
}

ServiceObjects make(const ServiceOptions& options) {
  return ServiceObjects(Services({module("test_shifted")}, options), kernels::kOnCpu);
}

TEST(Services, BuiltInOnesAreThere) {
  EXPECT_EQ(Services{}.names(), (std::vector<std::string>{"reverse", "echo", "crc32c"}));
}

TEST(ServiceOption, IsAKeyAndAValue) {
  ServiceOptions options;
  for (const char* text : {"key", "=value", ""}) EXPECT_FALSE(add_service_option(options, text));
  EXPECT_TRUE(options.empty());
  for (const char* text : {"key=value", "k=", "a.b=c=d"}) {
    EXPECT_TRUE(add_service_option(options, text));
  }
  EXPECT_EQ(options, (ServiceOptions{{"key", "value"}, {"k", ""}, {"a.b", "c=d"}}));
}

TEST(Services, ThoseOfModulesComeBehindThem) {
  const Services services({module("complement"), module("test_shifted")});
  EXPECT_EQ(services.names(),
            (std::vector<std::string>{"reverse", "echo", "crc32c", "complement", "shifted"}));
  EXPECT_STREQ(services.find("complement").name, "complement");
}

TEST(Services, AnUnknownNameIsAnError) {
  expect_refused([] { (void)Services{}.find("rot13"); }, ErrorCode::not_found, {"rot13"});
}

TEST(Services, AModuleTwiceIsRefused) {
  expect_refused(
      [] {
        Services({module("complement"), module("complement")});
      },
      ErrorCode::already_exists, {"complement.so", "a service 'complement' already"});
}

TEST(Services, AModuleWithTheNameOfABuiltInServiceIsRefused) {
  expect_refused([] { Services({module("test_built_in_name")}); }, ErrorCode::already_exists,
                 {"test_built_in_name.so", "a service 'crc32c' already"});
}

TEST(ServiceModule, AFileThatIsNotThere) {
  expect_refused([] { ServiceModule("not-there.so"); }, ErrorCode::not_found,
                 {"service module 'not-there.so'", "No such file"});
}

TEST(ServiceModule, AFileThatIsNoLibrary) {
  const support::TempDir dir;
  const std::string path = dir.file("text.so");
  FILE* const file = std::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs("no library\n", file);
  std::fclose(file);
  expect_refused([&] { ServiceModule{path}; }, ErrorCode::not_found, {"text.so"});
}

TEST(ServiceModule, ALibraryThatIsNoModule) {
  expect_refused([] { ServiceModule(module("test_no_function")); }, ErrorCode::invalid_value,
                 {"no function offload_service"});
}

TEST(ServiceModule, AModuleWithoutAService) {
  expect_refused([] { ServiceModule(module("test_no_interface")); }, ErrorCode::invalid_value,
                 {"defines no service"});
}

TEST(ServiceModule, AModuleOfAnotherVersion) {
  expect_refused([] { ServiceModule(module("test_other_version")); },
                 ErrorCode::unsupported_version,
                 {"version 4711", "version " + std::to_string(kernels::kServiceInterface)});
}

TEST(ServiceModule, AModuleWithOtherMembers) {
  expect_refused([] { ServiceModule(module("test_other_size")); }, ErrorCode::unsupported_version,
                 {"test_other_size.so"});
}

TEST(ServiceModule, ANameThatNobodyCouldSay) {
  expect_refused([] { ServiceModule(module("test_bad_name")); }, ErrorCode::invalid_value,
                 {"test_bad_name.so", "a-z, 0-9"});
}

TEST(ServiceObjects, AreMadeOfTheirOptionsAndToldInTheLog) {
  const support::LogCapture log;
  auto objects = make({{"by", "2"}});
  const auto& object = objects.find("shifted", kernels::make_layout(1, 100));
  EXPECT_EQ(object.interface().response_length(object.get(), 17), 17U);
  EXPECT_GE(object.bytes(), 256U + 8U);
  EXPECT_NE(log.text().find("service shifted"), std::string::npos) << log.text();
  EXPECT_NE(log.text().find(" on the CPU"), std::string::npos) << log.text();
  EXPECT_NE(log.text().find("by=2"), std::string::npos) << log.text();
}

TEST(ServiceObjects, OneThatThrowsIsOneLine) {
  expect_refused(
      [] {
        make({{"throw", "now"}});
      },
      ErrorCode::initialization, {"cannot create service shifted: as it was\\x0atold"});
}

TEST(ServiceObjects, OneWithoutMemorySaysSo) {
  expect_refused(
      [] {
        make({{"exhaust", "1"}});
      },
      ErrorCode::initialization, {"cannot create service shifted: Cannot allocate memory"});
}

TEST(ServiceObjects, AnOptionThatNobodyReadsIsAnError) {
  expect_refused(
      [] {
        make({{"by", "2"}, {"bye", "3"}});
      },
      ErrorCode::invalid_value, {"--service-option bye"});
  expect_refused([] { make({{"other.by", "2"}}); }, ErrorCode::invalid_value, {"other.by"});
}

TEST(ServiceObjects, AnOptionMayNameItsService) {
  const support::LogCapture log;
  make({{"by", "2"}, {"shifted.by", "3"}});
  EXPECT_NE(log.text().find("by=3"), std::string::npos) << log.text();
}

TEST(ServiceObjects, AResponseThatIsTooLongIsRefusedBeforeItIsServed) {
  auto objects = make({{"longer", "10"}});
  expect_refused([&] { objects.find("shifted", kernels::make_layout(1, 100)); },
                 ErrorCode::invalid_value,
                 {"answers 49 bytes to a request of 39", "at most 48 are allowed"});
  expect_refused([&] { objects.find("shifted", kernels::make_layout(1, 100, 109)); },
                 ErrorCode::invalid_value, {"answers 110 bytes to a request of 100"});
  EXPECT_NO_THROW(objects.find("shifted", kernels::make_layout(1, 100, 110)));
}

TEST(ServiceObjects, AnOptionOfASimilarNameIsNotForAService) {
  for (const std::string key :
       {"shift.throw", "shifted2.throw", ".throw", "hifted.throw", "shifted.by.throw"}) {
    SCOPED_TRACE(key);
    expect_refused(
        [&] {
          make({{key, "now"}});
        },
        ErrorCode::invalid_value, {"--service-option " + key + ": "});
  }
}

// A worker attaches to servers one after the other, whose channels may differ in one of the two.
TEST(ServiceObjects, EachPairOfLengthsIsChecked) {
  auto objects = make({{"longer", "10"}});
  for (int round = 0; round < 2; ++round) {
    EXPECT_NO_THROW(objects.find("shifted", kernels::make_layout(1, 100, 110)));
    expect_refused([&] { objects.find("shifted", kernels::make_layout(1, 100, 109)); },
                   ErrorCode::invalid_value, {"answers 110 bytes to a request of 100"});
    EXPECT_NO_THROW(objects.find("shifted", kernels::make_layout(1, 99, 110)));
    expect_refused([&] { objects.find("shifted", kernels::make_layout(1, 101, 110)); },
                   ErrorCode::invalid_value, {"answers 111 bytes to a request of 101"});
  }
}

TEST(ServiceObjects, WithoutCodeForAGpuItSaysSo) {
  expect_refused([] { ServiceObjects(Services({module("test_shifted")}), 0); },
                 ErrorCode::not_supported, {"shifted", "without nvcc"});
}

}  // namespace
}  // namespace offload::backend
