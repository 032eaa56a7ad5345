#include <doca_argp.h>
#include <doca_dev.h>
#include <doca_error.h>
#include <doca_log.h>
#include <doca_version.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/temp_dir.hpp"

DOCA_LOG_REGISTER(SUITE::TEST);

namespace offload::doca {
namespace {

TEST(DocaError, EachHasItsNameAndDescription) {
  EXPECT_STREQ(doca_error_get_name(DOCA_SUCCESS), "DOCA_SUCCESS");
  EXPECT_STREQ(doca_error_get_name(DOCA_ERROR_AGAIN), "DOCA_ERROR_AGAIN");
  EXPECT_STREQ(doca_error_get_name(DOCA_ERROR_TOO_BIG), "DOCA_ERROR_TOO_BIG");
  for (int i = DOCA_SUCCESS; i <= DOCA_ERROR_TOO_BIG; ++i) {
    EXPECT_STRNE(doca_error_get_descr(static_cast<doca_error_t>(i)), "") << i;
  }
  EXPECT_STREQ(doca_error_get_name(static_cast<doca_error_t>(31)), "DOCA_ERROR_UNKNOWN");
  EXPECT_STRNE(doca_error_get_descr(static_cast<doca_error_t>(31)), "");
}

TEST(DocaError, TheFirstOneIsPropagated) {
  doca_error_t result = DOCA_SUCCESS;
  DOCA_ERROR_PROPAGATE(result, DOCA_ERROR_FULL);
  DOCA_ERROR_PROPAGATE(result, DOCA_ERROR_EMPTY);
  EXPECT_EQ(result, DOCA_ERROR_FULL);
  EXPECT_TRUE(DOCA_IS_ERROR(result));
}

TEST(DocaVersion, BothAreThatOfTheInterface) {
  EXPECT_STREQ(doca_version(), DOCA_VERSION_STRING);
  EXPECT_EQ(std::string(doca_version_runtime()).find(DOCA_VERSION_STRING " (dpu-gpu-offload"), 0U);
}

/// A file that backends write to.
class DocaLogTest : public testing::Test {
 protected:
  ~DocaLogTest() override {
    EXPECT_EQ(doca_log_level_set_global_lower_limit(DOCA_LOG_LEVEL_INFO), DOCA_SUCCESS);
    EXPECT_EQ(doca_log_level_set_global_sdk_limit(DOCA_LOG_LEVEL_INFO), DOCA_SUCCESS);
    // Backends exist until the program ends, so the file stays open; nothing more goes there.
    if (backend_ != nullptr) {
      static_cast<void>(doca_log_backend_set_level_lower_limit(backend_, DOCA_LOG_LEVEL_DISABLE));
      static_cast<void>(doca_log_backend_set_sdk_level(backend_, DOCA_LOG_LEVEL_DISABLE));
    }
  }
  std::string written() {
    std::fflush(file_);
    std::string text(static_cast<std::size_t>(std::ftell(file_)), '\0');
    std::rewind(file_);
    EXPECT_EQ(std::fread(text.data(), 1, text.size(), file_), text.size());
    return text;
  }
  /// A call that fails logs its reason.
  static void log_a_line_of_the_library();

  std::FILE* file_ = std::tmpfile();
  doca_log_backend* backend_ = nullptr;
};

TEST_F(DocaLogTest, ALineHasItsLevelSourceAndText) {
  ASSERT_EQ(doca_log_backend_create_with_file(file_, &backend_), DOCA_SUCCESS);
  DOCA_LOG_ERR("%d of %s", 3, "four");
  DOCA_LOG_DBG("not at the level info");
  DOCA_DLOG_ERR("not compiled");
  const std::string text = written();
  EXPECT_NE(text.find("[DOCA][ERR][SUITE::TEST:"), std::string::npos) << text;
  EXPECT_NE(text.find("] 3 of four\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("not "), std::string::npos) << text;
}

TEST_F(DocaLogTest, LimitsAreThoseOfTheBackendAndTheGlobalOne) {
  ASSERT_EQ(doca_log_backend_create_with_file(file_, &backend_), DOCA_SUCCESS);
  EXPECT_EQ(doca_log_level_set_global_lower_limit(DOCA_LOG_LEVEL_TRACE), DOCA_SUCCESS);
  EXPECT_EQ(doca_log_level_get_global_lower_limit(),
            static_cast<std::uint32_t>(DOCA_LOG_LEVEL_TRACE));
  EXPECT_EQ(doca_log_backend_set_level_lower_limit(backend_, DOCA_LOG_LEVEL_DEBUG), DOCA_SUCCESS);
  EXPECT_EQ(doca_log_backend_set_level_upper_limit(backend_, DOCA_LOG_LEVEL_WARNING), DOCA_SUCCESS);
  DOCA_LOG_CRIT("critical");
  DOCA_LOG_WARN("warning");
  DOCA_LOG_INFO("info");
  DOCA_LOG_DBG("debug");
  DOCA_LOG_TRC("trace");
  const std::string text = written();
  EXPECT_EQ(text.find("critical"), std::string::npos);
  EXPECT_NE(text.find("warning"), std::string::npos);
  EXPECT_NE(text.find("debug"), std::string::npos);
  EXPECT_EQ(text.find("trace"), std::string::npos);
  EXPECT_EQ(doca_log_backend_set_sdk_level(backend_, DOCA_LOG_LEVEL_INFO),
            DOCA_ERROR_NOT_PERMITTED);
}

TEST_F(DocaLogTest, LinesOfTheLibraryGoToItsBackends) {
  ASSERT_EQ(doca_log_backend_create_with_file_sdk(file_, &backend_), DOCA_SUCCESS);
  EXPECT_EQ(doca_log_backend_set_level_lower_limit(backend_, DOCA_LOG_LEVEL_INFO),
            DOCA_ERROR_NOT_PERMITTED);
  EXPECT_EQ(doca_log_backend_set_sdk_level(backend_, DOCA_LOG_LEVEL_CRIT), DOCA_SUCCESS);
  log_a_line_of_the_library();
  EXPECT_EQ(written(), "");
  EXPECT_EQ(doca_log_level_set_global_sdk_limit(DOCA_LOG_LEVEL_ERROR), DOCA_SUCCESS);
  EXPECT_EQ(doca_log_level_get_global_sdk_limit(),
            static_cast<std::uint32_t>(DOCA_LOG_LEVEL_ERROR));
  log_a_line_of_the_library();
  DOCA_LOG_ERR("of the program");
  const std::string text = written();
  EXPECT_NE(text.find("[ERR]"), std::string::npos) << text;
  EXPECT_EQ(text.find("of the program"), std::string::npos) << text;
}

TEST_F(DocaLogTest, TheSdkLimitIsTheLevelOfItsBackends) {
  EXPECT_EQ(doca_log_level_get_global_sdk_limit(), static_cast<std::uint32_t>(DOCA_LOG_LEVEL_INFO));
  ASSERT_EQ(doca_log_backend_create_with_file_sdk(file_, &backend_), DOCA_SUCCESS);
  EXPECT_EQ(doca_log_level_set_global_sdk_limit(DOCA_LOG_LEVEL_CRIT), DOCA_SUCCESS);
  log_a_line_of_the_library();
  EXPECT_EQ(written(), "") << "it is lowered for a backend that exists";
  doca_log_backend* later = nullptr;
  ASSERT_EQ(doca_log_backend_create_with_fd_sdk(::fileno(file_), &later), DOCA_SUCCESS);
  log_a_line_of_the_library();
  std::fseek(file_, 0, SEEK_END);
  EXPECT_EQ(written(), "") << "it is lowered for a later one too";
  EXPECT_EQ(doca_log_backend_set_sdk_level(later, DOCA_LOG_LEVEL_ERROR), DOCA_SUCCESS);
  log_a_line_of_the_library();
  std::fseek(file_, 0, SEEK_END);
  EXPECT_NE(written(), "") << "its own level is above the limit";
  EXPECT_EQ(doca_log_backend_set_sdk_level(later, DOCA_LOG_LEVEL_DISABLE), DOCA_SUCCESS);
}

TEST_F(DocaLogTest, ADescriptorIsWrittenToAsAFileIs) {
  doca_log_backend* sdk = nullptr;
  ASSERT_EQ(doca_log_backend_create_with_fd(::fileno(file_), &backend_), DOCA_SUCCESS);
  ASSERT_EQ(doca_log_backend_create_with_fd_sdk(::fileno(file_), &sdk), DOCA_SUCCESS);
  DOCA_LOG_WARN("by a descriptor");
  log_a_line_of_the_library();
  EXPECT_EQ(doca_log_backend_set_sdk_level(sdk, DOCA_LOG_LEVEL_DISABLE), DOCA_SUCCESS);
  std::fseek(file_, 0, SEEK_END);
  const std::string text = written();
  EXPECT_NE(text.find("by a descriptor"), std::string::npos) << text;
  EXPECT_NE(text.find("[ERR]"), std::string::npos) << text;
}

TEST_F(DocaLogTest, WrongUseIsRefused) {
  int source = 0;
  EXPECT_EQ(doca_log_backend_create_standard(), DOCA_SUCCESS);
  EXPECT_EQ(doca_log_backend_create_standard(), DOCA_ERROR_ALREADY_EXIST);
  EXPECT_EQ(doca_log_backend_create_with_file(nullptr, &backend_), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_log_backend_create_with_file_sdk(file_, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_log_backend_create_with_fd(-1, &backend_), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_log_backend_create_with_fd_sdk(1, nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_log_backend_set_level_lower_limit(nullptr, 50), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_log_backend_set_level_upper_limit(nullptr, 50), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_log_backend_set_sdk_level(nullptr, 50), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_log_level_set_global_lower_limit(55), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_log_level_set_global_sdk_limit(80), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_log_register_source(nullptr, &source), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_log_register_source("another", &source), DOCA_SUCCESS);
  doca_log(DOCA_LOG_LEVEL_TRACE, source, 1, "f", "%s", "not at the level info");
}

void DocaLogTest::log_a_line_of_the_library() {
  ::setenv("OFFLOAD_DOCA_DEVICES", "malformed", 1);
  doca_devinfo** list = nullptr;
  std::uint32_t count = 0;
  EXPECT_EQ(doca_devinfo_create_list(&list, &count), DOCA_ERROR_INVALID_VALUE);
  ::unsetenv("OFFLOAD_DOCA_DEVICES");
}

/// A program with an option of each type.
class DocaArgpTest : public testing::Test {
 protected:
  struct Config {
    std::string text;
    int number = 0;
    bool is_set = false;
    std::vector<int> numbers;
    bool is_valid = true;
  };

  DocaArgpTest() { begin(); }
  ~DocaArgpTest() override { static_cast<void>(doca_argp_destroy()); }

  void begin() {
    EXPECT_EQ(doca_argp_init("program", &config_), DOCA_SUCCESS);
    add("t", "text", DOCA_ARGP_TYPE_STRING, on_text);
    add("n", "number", DOCA_ARGP_TYPE_INT, on_number);
    add("ns", "set", DOCA_ARGP_TYPE_BOOLEAN, on_set);
    add(nullptr, "list", DOCA_ARGP_TYPE_INT, on_list,
        [](doca_argp_param* param) { doca_argp_param_set_multiplicity(param); });
  }
  /// Forgets which options were given.
  void begin_again() {
    ASSERT_EQ(doca_argp_destroy(), DOCA_SUCCESS);
    begin();
  }

  static doca_error_t add(const char* short_name, const char* long_name, doca_argp_type type,
                          doca_argp_param_cb_t callback, void (*more)(doca_argp_param*) = nullptr) {
    doca_argp_param* param = nullptr;
    EXPECT_EQ(doca_argp_param_create(&param), DOCA_SUCCESS);
    doca_argp_param_set_short_name(param, short_name);
    doca_argp_param_set_long_name(param, long_name);
    doca_argp_param_set_arguments(param, "<value>");
    doca_argp_param_set_description(param, "An option");
    doca_argp_param_set_callback(param, callback);
    doca_argp_param_set_type(param, type);
    if (more != nullptr) more(param);
    return doca_argp_register_param(param);
  }
  static doca_error_t start(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "program");
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    return doca_argp_start(static_cast<int>(pointers.size()), pointers.data());
  }

  static doca_error_t on_text(void* value, void* config) {
    static_cast<Config*>(config)->text = static_cast<const char*>(value);
    return DOCA_SUCCESS;
  }
  static doca_error_t on_number(void* value, void* config) {
    static_cast<Config*>(config)->number = *static_cast<int*>(value);
    return *static_cast<int*>(value) < 0 ? DOCA_ERROR_NOT_SUPPORTED : DOCA_SUCCESS;
  }
  static doca_error_t on_set(void* value, void* config) {
    static_cast<Config*>(config)->is_set = *static_cast<bool*>(value);
    return DOCA_SUCCESS;
  }
  static doca_error_t on_list(void* value, void* config) {
    static_cast<Config*>(config)->numbers.push_back(*static_cast<int*>(value));
    return DOCA_SUCCESS;
  }
  static doca_error_t validate(void* config) {
    return static_cast<Config*>(config)->is_valid ? DOCA_SUCCESS : DOCA_ERROR_TOO_BIG;
  }

  Config config_;
};

TEST_F(DocaArgpTest, OptionsReachTheirCallbacks) {
  config_.number = 7;
  ASSERT_EQ(start({"-t", "x y", "--number", "-0", "-ns", "--list=1", "-list", "2"}), DOCA_SUCCESS);
  EXPECT_EQ(config_.text, "x y");
  EXPECT_EQ(config_.number, 0);
  EXPECT_TRUE(config_.is_set);
  EXPECT_EQ(config_.numbers, (std::vector{1, 2}));
}

TEST_F(DocaArgpTest, WrongOptionsAreRefused) {
  for (const auto& wrong : std::vector<std::vector<std::string>>{{"--unknown"},
                                                                 {"text"},
                                                                 {"-"},
                                                                 {"--text"},
                                                                 {"--number", "1x"},
                                                                 {"--number", ""},
                                                                 {"--number", "99999999999"},
                                                                 {"--set=1"},
                                                                 {"-t", "a", "-t", "b"}}) {
    EXPECT_EQ(start(wrong), DOCA_ERROR_INVALID_VALUE) << wrong[0];
    begin_again();
  }
}

TEST_F(DocaArgpTest, TheErrorOfACallbackIsReturned) {
  EXPECT_EQ(start({"-n", "-1"}), DOCA_ERROR_NOT_SUPPORTED);
  ASSERT_EQ(doca_argp_register_validation_callback(validate), DOCA_SUCCESS);
  config_.is_valid = false;
  EXPECT_EQ(start({}), DOCA_ERROR_TOO_BIG);
  config_.is_valid = true;
  EXPECT_EQ(start({}), DOCA_SUCCESS);
}

TEST_F(DocaArgpTest, AMandatoryOptionMustBeGiven) {
  ASSERT_EQ(add("m", "must", DOCA_ARGP_TYPE_STRING, on_text,
                [](doca_argp_param* param) { doca_argp_param_set_mandatory(param); }),
            DOCA_SUCCESS);
  EXPECT_EQ(start({}), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(start({"-m", "x"}), DOCA_SUCCESS);
}

TEST_F(DocaArgpTest, AJsonFileHasOptionsAndLevels) {
  const support::TempDir folder;
  const std::string path = folder.path() + "/options.json";
  std::ofstream(path) << R"({"doca_program_flags": {"text": "t", "number": 5, "set": true,
      "list": [7, 8]}, "doca_general_flags": {"log-level": 60, "sdk-log-level": 20}, "mine": 1})";
  ASSERT_EQ(start({"--json", path}), DOCA_SUCCESS);
  EXPECT_EQ(config_.text, "t");
  EXPECT_EQ(config_.number, 5);
  EXPECT_TRUE(config_.is_set);
  EXPECT_EQ(config_.numbers, (std::vector{7, 8}));
  EXPECT_EQ(doca_log_level_get_global_lower_limit(), 60U);
  EXPECT_EQ(doca_log_level_get_global_sdk_limit(), 20U);
  EXPECT_EQ(doca_log_level_set_global_lower_limit(DOCA_LOG_LEVEL_INFO), DOCA_SUCCESS);
  EXPECT_EQ(doca_log_level_set_global_sdk_limit(DOCA_LOG_LEVEL_INFO), DOCA_SUCCESS);
  begin_again();
  std::ofstream(path) << R"({"doca_program_flags": {"list": [18446744073709551615]}})";
  EXPECT_EQ(start({"-j", path}), DOCA_ERROR_INVALID_VALUE) << "it is not -1";
  EXPECT_EQ(config_.numbers.size(), 2U);
  begin_again();
  std::ofstream(path) << R"({"doca_program_flags": {"number": 9, "unknown": 1}})";
  EXPECT_EQ(start({"-j", path}), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(config_.number, 9) << "the file was read";
}

TEST_F(DocaArgpTest, TheHelpNamesEachOption) {
  testing::internal::CaptureStdout();
  doca_argp_usage();
  const std::string help = testing::internal::GetCapturedStdout();
  for (const char* text :
       {"Usage: program", "-t, --text <value>", "--list", "--sdk-log-level", "-j"}) {
    EXPECT_NE(help.find(text), std::string::npos) << text << " in " << help;
  }
  EXPECT_EXIT(start({"--help"}), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(start({"-v"}), testing::ExitedWithCode(0), "");
  const auto version = [](void*, void*) { return DOCA_ERROR_FULL; };
  ASSERT_EQ(doca_argp_register_version_callback(version), DOCA_SUCCESS);
  EXPECT_EQ(start({"--version"}), DOCA_ERROR_FULL);
}

TEST_F(DocaArgpTest, WrongUseIsRefused) {
  EXPECT_EQ(doca_argp_init("again", nullptr), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(add("t", "other", DOCA_ARGP_TYPE_INT, on_number), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(add("h", "other", DOCA_ARGP_TYPE_INT, on_number), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(add("o", "other", DOCA_ARGP_TYPE_UNKNOWN, on_number), DOCA_ERROR_INITIALIZATION);
  EXPECT_EQ(add("o", "other", DOCA_ARGP_TYPE_INT, nullptr), DOCA_ERROR_INITIALIZATION);
  EXPECT_EQ(add(nullptr, nullptr, DOCA_ARGP_TYPE_INT, on_number), DOCA_ERROR_INITIALIZATION);
  EXPECT_EQ(doca_argp_register_param(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_argp_param_create(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_argp_param_destroy(nullptr), DOCA_ERROR_INVALID_VALUE);
  doca_argp_param* param = nullptr;
  ASSERT_EQ(doca_argp_param_create(&param), DOCA_SUCCESS);
  EXPECT_EQ(doca_argp_param_destroy(param), DOCA_SUCCESS);
  ASSERT_EQ(doca_argp_param_create(&param), DOCA_SUCCESS);
  doca_argp_param_set_long_name(param, "twice");
  doca_argp_param_set_description(param, "An option");
  doca_argp_param_set_callback(param, on_number);
  doca_argp_param_set_type(param, DOCA_ARGP_TYPE_INT);
  EXPECT_EQ(doca_argp_register_param(param), DOCA_SUCCESS);
  EXPECT_EQ(doca_argp_register_param(param), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(doca_argp_param_destroy(param), DOCA_ERROR_BAD_STATE) << "it was registered";
  EXPECT_EQ(doca_argp_register_version_callback(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_argp_register_validation_callback(nullptr), DOCA_ERROR_INVALID_VALUE);
  EXPECT_EQ(doca_argp_start(1, nullptr), DOCA_ERROR_INVALID_VALUE);
  ASSERT_EQ(doca_argp_destroy(), DOCA_SUCCESS);
  EXPECT_EQ(doca_argp_destroy(), DOCA_ERROR_BAD_STATE);
  EXPECT_EQ(start({}), DOCA_ERROR_BAD_STATE);
}

}  // namespace
}  // namespace offload::doca
