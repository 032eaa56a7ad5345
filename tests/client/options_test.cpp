#include "apps/client/options.hpp"

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "apps/client/checker.hpp"
#include "core/escape.hpp"
#include "tests/support/command_line.hpp"

namespace offload::client {
namespace {

using namespace std::chrono_literals;

std::variant<Options, cli::Leave> parse(std::vector<const char*> arguments) {
  return support::parse<parse_options>(std::move(arguments), "offload-client");
}

/// With the one option that is always needed.
Options accepted(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), {"-s", "127.0.0.1"});
  return support::accepted(parse(arguments));
}

TEST(ClientOptions, Defaults) {
  const auto options = accepted({});
  EXPECT_EQ(options.server_address, "127.0.0.1");
  EXPECT_EQ(options.server_port, 12345);
  EXPECT_EQ(options.thread_count, 1U);
  EXPECT_EQ(options.connections, 1U);
  EXPECT_EQ(options.iteration_count, 10'000U);
  EXPECT_FALSE(options.duration);
  EXPECT_EQ(options.message, "hello");
  EXPECT_FALSE(options.expected_response);
  EXPECT_FALSE(options.size);
  EXPECT_EQ(options.max_concurrent_messages, 128U);
  EXPECT_EQ(options.service, Service::reverse);
  EXPECT_EQ(options.json_file, "");
  EXPECT_EQ(options.connect_timeout, 10s);
  EXPECT_EQ(options.response_timeout, 30s);
}

TEST(ClientOptions, TheReferenceClientsOptions) {
  const auto options = accepted({"-p", "7000", "-t", "4", "-i", "100000", "-m", "hello", "-e",
                                 "olleh", "--max-concurrent-messages", "16"});
  EXPECT_EQ(options.server_port, 7000);
  EXPECT_EQ(options.thread_count, 4U);
  EXPECT_EQ(options.iteration_count, 100'000U);
  EXPECT_EQ(options.message, "hello");
  EXPECT_EQ(options.expected_response, "olleh");
  EXPECT_EQ(options.max_concurrent_messages, 16U);
}

TEST(ClientOptions, LongNames) {
  const auto result =
      parse({"--server-ip-address=::1", "--server-ip-port=1", "--thread-count=2",
             "--iteration-count=3", "--message-string=a b", "--expected-response=b"});
  const auto& options = std::get<Options>(result);
  EXPECT_EQ(options.server_address, "::1");
  EXPECT_EQ(options.iteration_count, 3U);
  EXPECT_EQ(options.message, "a b");
  EXPECT_EQ(options.expected_response, "b");
}

TEST(ClientOptions, Units) {
  const auto options = accepted({"--size", "64k", "--duration", "500ms", "--connect-timeout", "0",
                                 "--response-timeout", "2m"});
  EXPECT_EQ(options.size, 65536U);
  EXPECT_EQ(options.duration, 500ms);
  EXPECT_EQ(options.connect_timeout, 0s);
  EXPECT_EQ(options.response_timeout, 2min);
  EXPECT_EQ(accepted({"--duration", "2"}).duration, 2s);
  EXPECT_EQ(accepted({"--size", "16m"}).size, 16U << 20);
  EXPECT_EQ(accepted({"--size", "0"}).size, 0U);
}

TEST(ClientOptions, TextIsTakenAsItIs) {
  for (const char* text : {"", "{}", "[]", "[a,b]", "\"quoted\"", "-x", "--size", "a\nb", "%s"}) {
    const auto options = accepted({"-m", text, "-e", text});
    EXPECT_EQ(options.message, text);
    EXPECT_EQ(options.expected_response, text);
  }
}

TEST(ClientOptions, HelpAndVersion) {
  const auto help = std::get<cli::Leave>(parse({"--help"}));
  EXPECT_EQ(help.status, 0);
  for (const char* option :
       {"--server-ip-address", "--server-ip-port", "--thread-count", "--iteration-count",
        "--duration", "--message-string", "--expected-response", "--size",
        "--max-concurrent-messages", "--service", "--json", "--connect-timeout",
        "--response-timeout", "--log-level"}) {
    EXPECT_NE(help.text.find(option), std::string::npos) << option;
  }
  EXPECT_EQ(std::get<cli::Leave>(parse({"--version"})).status, 0);
}

struct BadCase {
  std::vector<const char*> arguments;
  const char* says;  ///< part of the message
};

/// The command line: it names the test in lists and reports.
std::ostream& operator<<(std::ostream& out, const BadCase& bad) {
  for (const char* argument : bad.arguments) {
    out << (argument == bad.arguments.front() ? "" : " ")
        << core::escaped(*argument == '\0' ? "''" : argument);
  }
  return out << (bad.arguments.empty() ? "(nothing)" : "");
}

class BadOptions : public testing::TestWithParam<BadCase> {};

TEST_P(BadOptions, OneLineSaysWhatIsWrong) {
  const auto result = parse(GetParam().arguments);
  const auto* leave = std::get_if<cli::Leave>(&result);
  ASSERT_NE(leave, nullptr);
  EXPECT_EQ(leave->status, 2);
  EXPECT_NE(leave->text.find(GetParam().says), std::string::npos) << leave->text;
  EXPECT_EQ(leave->text.find('\n'), std::string::npos) << leave->text;
}

INSTANTIATE_TEST_SUITE_P(
    , BadOptions,
    testing::Values(
        BadCase{{}, "--server-ip-address is required"}, BadCase{{"-s"}, "--server-ip-address"},
        BadCase{{"-s", "h", "--nonsense"}, "--nonsense"}, BadCase{{"-s", "h", "stray"}, "stray"},
        BadCase{{"-s", "h", "-p", "0"}, "--server-ip-port: '0' is not a whole number from 1 to 6"},
        BadCase{{"-s", "h", "-p", "65536"}, "'65536' is not a whole number from 1 to 65535"},
        BadCase{{"-s", "h", "-p", "http"}, "'http' is not"},
        BadCase{{"-s", "h", "-p", ""}, "'' is not"},
        BadCase{{"-s", "h", "-t", "0"}, "--thread-count: '0' is not a whole number from 1 to 1024"},
        BadCase{{"-s", "h", "-t", "1025"}, "--thread-count"},
        BadCase{{"-s", "h", "-t", "-1"}, "--thread-count"},
        BadCase{{"-s", "h", "-t", "4x"}, "--thread-count"},
        BadCase{{"-s", "h", "-t", "1", "-t", "2"}, "--thread-count"},
        BadCase{{"-s", "h", "-i", "0"}, "--iteration-count"},
        BadCase{{"-s", "h", "-i", "99999999999999999999"}, "--iteration-count"},
        BadCase{{"-s", "h", "--duration", "0"}, "--duration: '0' is not a time from 1ms to 1000h"},
        BadCase{{"-s", "h", "--duration", "-2"}, "--duration"},
        BadCase{{"-s", "h", "--duration", "soon"}, "--duration"},
        BadCase{{"-s", "h", "--duration", "1001h"}, "--duration"},
        BadCase{{"-s", "h", "--duration", "2", "-i", "5"}, "excludes"},
        BadCase{{"-s", "h", "--size", "17m"},
                "--size: '17m' is not a size from 0 to 16777216 bytes"},
        BadCase{{"-s", "h", "--size", "12q"}, "--size"},
        BadCase{{"-s", "h", "--size", "8", "-m", "x"}, "excludes"},
        BadCase{{"-s", "h", "--size", "8", "-e", "x"}, "requires --message-string"},
        BadCase{{"-s", "h", "-e", "x"}, "requires --message-string"},
        BadCase{{"-s", "h", "--max-concurrent-messages", "0"}, "from 1 to 65536"},
        BadCase{{"-s", "h", "--max-concurrent-messages", "65537"}, "from 1 to 65536"},
        BadCase{{"-s", "h", "--service", "rot13"}, "'rot13' is not one of reverse, echo, crc32c"},
        BadCase{{"-s", "h", "--connect-timeout", "x"}, "a time from 0 to 1000h"},
        BadCase{{"-s", "h", "--response-timeout", "0"}, "a time from 1ms to 1000h"},
        BadCase{{"-s", "h", "--log-level", "loud"}, "one of trace, debug"},
        BadCase{{"-s", "h", "--json"}, "--json"}, BadCase{{"-s", "h", "-t", "a\nb"}, "'a?b'"}));

}  // namespace
}  // namespace offload::client
