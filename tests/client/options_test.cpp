#include "apps/client/options.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "apps/client/load/checker.hpp"
#include "tests/support/command_line.hpp"

namespace offload::client {
namespace {

using namespace std::chrono_literals;
using support::BadCase;

std::variant<Options, cli::Leave> parse(std::vector<const char*> arguments) {
  return support::parse<parse_options>(std::move(arguments), "offload-client");
}

/// Parses these options after the one that is mandatory.
Options accepted(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), {"-s", "127.0.0.1"});
  return support::accepted(parse(arguments));
}

std::uint32_t only_size(const Options& options) {
  return options.sizes.value().size() == 1 ? options.sizes->front().bytes : ~0U;
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
  EXPECT_FALSE(options.sizes);
  EXPECT_FALSE(options.is_open_loop());
  EXPECT_FALSE(options.count_errors);
  EXPECT_EQ(options.max_concurrent_messages, 128U);
  EXPECT_EQ(options.service, Service::reverse);
  EXPECT_EQ(options.output, "");
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
  EXPECT_EQ(only_size(options), 65536U);
  EXPECT_EQ(options.duration, 500ms);
  EXPECT_EQ(options.connect_timeout, 0s);
  EXPECT_EQ(options.response_timeout, 2min);
  EXPECT_EQ(accepted({"--duration", "2"}).duration, 2s);
  EXPECT_EQ(only_size(accepted({"--size", "16m"})), 16U << 20);
  EXPECT_EQ(only_size(accepted({"--size", "0"})), 0U);
}

TEST(ClientOptions, AResultHasTheTextsOfSizesAndPayload) {
  const auto options = accepted({"--mix", "64:90,64k:10", "--payload", "constant:7"});
  EXPECT_EQ(options.sizes_text, "64:90,64k:10");
  EXPECT_EQ(options.payload_text, "constant:7");
}

TEST(ClientOptions, RecordedRequestsAreCheckedByTheirResponses) {
  using Kind = Verification::Kind;
  EXPECT_EQ(accepted({"--requests", "f"}).verification.kind, Kind::recorded);
  EXPECT_EQ(accepted({"--requests", "f", "--service", "echo"}).verification.kind, Kind::builtin);
  EXPECT_EQ(accepted({"--requests", "f", "--verify", "none"}).verification.kind, Kind::none);
  EXPECT_EQ(accepted({}).verification.kind, Kind::builtin);
}

TEST(ClientOptions, OpenLoops) {
  EXPECT_EQ(accepted({"--rate", "20k"}).rate, 20e3);
  EXPECT_EQ(accepted({"--rate", "1.5m"}).rate, 1.5e6);
  EXPECT_EQ(accepted({"--rate", "0.5"}).rate, 0.5);
  EXPECT_EQ(accepted({"--rate", "0.001"}).rate, 0.001);
  EXPECT_EQ(accepted({"--rate", "20m", "-t", "2"}).rate, 20e6);
  EXPECT_EQ(accepted({"--rate", "9", "--arrivals", "poisson"}).arrivals, ArrivalKind::poisson);
  EXPECT_TRUE(accepted({"--rate", "9"}).is_open_loop());
  EXPECT_TRUE(accepted({"--schedule", "file"}).is_open_loop());
  EXPECT_TRUE(accepted({"--scan", "rate=1,2"}).is_open_loop());
  EXPECT_FALSE(accepted({"--scan", "depth=1,2"}).is_open_loop());
}

TEST(ClientOptions, StepsOfTheRate) {
  const auto options = accepted({"--rate", "10k:5s,20k:15s"});
  ASSERT_EQ(options.rate_steps.size(), 2U);
  EXPECT_EQ(options.rate_steps[0].rate, 10e3);
  EXPECT_EQ(options.rate_steps[0].length, 5s);
  EXPECT_EQ(options.rate_steps[1].rate, 20e3);
  EXPECT_EQ(options.rate_steps[1].length, 15s);
  EXPECT_EQ(options.rate, 17.5e3);
  EXPECT_EQ(options.duration, 20s);
  EXPECT_EQ(options.rate_steps_text, "10k:5s,20k:15s");
  EXPECT_TRUE(accepted({"--rate", "10k"}).rate_steps.empty());
  EXPECT_EQ(accepted({"--rate", "1:1ms"}).duration, 1ms);
}

TEST(ClientOptions, AKindReplacesWhatItSays) {
  Options options;
  options.server_port = 1;
  options.sizes = SizeMix{{8, 1}};
  options.sizes_file = "sizes";
  options.requests_file = "requests";
  options.service = Service::echo;
  options.verification = *Verification::parse("none");
  options.kinds = {*RequestKind::parse("a")};
  const auto of = [&](const char* kind) { return options.of_kind(*RequestKind::parse(kind)); };
  using Kind = Verification::Kind;

  const Options plain = of("a");
  EXPECT_TRUE(plain.kinds.empty());
  EXPECT_EQ(plain.server_port, 1);
  EXPECT_EQ(plain.sizes->front().bytes, 8U);
  EXPECT_EQ(plain.sizes_file, "sizes");
  EXPECT_EQ(plain.requests_file, "requests");
  EXPECT_EQ(plain.service, Service::echo);
  EXPECT_EQ(plain.verification.kind, Kind::none);

  EXPECT_EQ(of("a:port=7").server_port, 7);
  const Options sized = of("a:size=64");
  EXPECT_EQ(sized.sizes->front().bytes, 64U);
  EXPECT_EQ(sized.sizes_file, "");
  EXPECT_EQ(sized.requests_file, "");
  EXPECT_EQ(sized.verification.kind, Kind::none);
  const Options recorded = of("a:requests=file");
  EXPECT_EQ(recorded.requests_file, "file");
  EXPECT_EQ(recorded.verification.kind, Kind::recorded);
  const Options served = of("a:service=crc32c");
  EXPECT_EQ(served.service, Service::crc32c);
  EXPECT_EQ(served.verification.kind, Kind::builtin);
  EXPECT_EQ(of("a:requests=file,verify=length").verification.kind, Kind::length);
}

TEST(ClientOptions, APercentileIsBetweenNoneAndAll) {
  EXPECT_DOUBLE_EQ(accepted({"--duration", "1s", "--search", "p0.5:1ms"}).search->quantile, 0.005);
  EXPECT_DOUBLE_EQ(accepted({"--duration", "1s", "--search", "p99.99:1ms"}).search->quantile,
                   0.9999);
  for (const char* const search : {"p0:1ms", "p100:1ms", "p-1:1ms"}) {
    support::expect_refused(parse({"-s", "h", "--duration", "1s", "--search", search}),
                            "offload-client", search);
  }
}

TEST(ClientOptions, KindsAreTakenInTheirOrder) {
  const auto kinds =
      accepted({"--connections", "2", "--kind", "a:size=64", "--kind", "b:size=8"}).kinds;
  ASSERT_EQ(kinds.size(), 2U);
  EXPECT_EQ(kinds[0].name, "a");
  EXPECT_EQ(kinds[1].name, "b");
}

TEST(ClientOptions, TheVerificationIsNamed) {
  Options options;
  options.service = Service::echo;
  EXPECT_EQ(verification_of(options), "builtin (service echo)");
  options.verification = *Verification::parse("length:7");
  EXPECT_EQ(verification_of(options), "length:7");
  options.kinds = {*RequestKind::parse("a"), *RequestKind::parse("b:service=crc32c")};
  EXPECT_EQ(verification_of(options), "a: length:7, b: builtin (service crc32c)");
  options.kinds.clear();
  options.expected_response = "text";
  EXPECT_EQ(verification_of(options), "text of --expected-response");
}

TEST(ClientOptions, AuthoritiesAndRevocationsAreForTls) {
  EXPECT_EQ(accepted({"--tls", "--tls-ca", "file"}).tls_ca, "file");
  EXPECT_EQ(accepted({"--tls", "--tls-crl", "file"}).tls_crl, "file");
  EXPECT_EQ(accepted({"--tls", "--tls-server-name", "name"}).tls_server_name, "name");
}

TEST(ClientOptions, AThousandStepsAndTheDeepestScanAreTaken) {
  std::string steps = "1:1ms";
  for (int i = 1; i < 1000; ++i) steps += ",1:1ms";
  EXPECT_EQ(accepted({"--rate", steps.c_str()}).rate_steps.size(), 1000U);
  steps += ",1:1ms";
  EXPECT_TRUE(std::holds_alternative<cli::Leave>(parse({"-s", "h", "--rate", steps.c_str()})));
  EXPECT_TRUE(accepted({"--scan", "depth=65536"}).scan);
  EXPECT_EQ(accepted({"-t", "100", "--rate", "1000m"}).rate, 1e9);
}

TEST(ClientOptions, TheServersFiguresHaveAnAddress) {
  EXPECT_EQ(accepted({"--scrape", "h:9100"}).scrape, "h:9100");
}

TEST(ClientOptions, MetricsHaveAnAddress) {
  EXPECT_FALSE(accepted({}).metrics);
  const auto metrics = accepted({"--metrics", "127.0.0.2:9100"}).metrics.value();
  EXPECT_EQ(metrics.host, "127.0.0.2");
  EXPECT_EQ(metrics.port, 9100);
}

TEST(ClientOptions, AStartIsAtMostADayAway) {
  EXPECT_EQ(accepted({"--start-at", "0"}).start_at, 0);
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
  const std::string within = std::to_string((now + 24h - 60s).count());
  const std::string beyond = std::to_string((now + 24h + 60s).count());
  EXPECT_TRUE(accepted({"--start-at", within.c_str()}).start_at);
  support::expect_refused(parse({"-s", "h", "--start-at", beyond.c_str()}), "offload-client",
                          "at most a day from now");
}

TEST(ClientOptions, ScansAndSearches) {
  const auto scan = accepted({"--scan", "rate=10k,20k"}).scan.value();
  EXPECT_EQ(scan.of, Scan::Of::rate);
  EXPECT_EQ(scan.values, (std::vector<double>{10e3, 20e3}));
  EXPECT_EQ(accepted({"--scan", "depth=1,128"}).scan->of, Scan::Of::depth);
  const auto search = accepted({"--search", "p99.9:500us", "--duration", "1"}).search.value();
  EXPECT_EQ(search.percentile, "p99.9");
  EXPECT_DOUBLE_EQ(search.quantile, 0.999);
  EXPECT_EQ(search.bound, 500us);
}

TEST(ClientOptions, Sizes) {
  const auto mix = accepted({"--mix", "64k:10,64:90"}).sizes.value();
  ASSERT_EQ(mix.size(), 2U);
  EXPECT_EQ(mix[0].bytes, 64U);
  EXPECT_EQ(mix[0].weight, 90);
  EXPECT_EQ(accepted({"--uniform-size", "1-4"}).sizes->size(), 4U);
  EXPECT_EQ(accepted({"--payload", "file:data"}).payload.path, "data");
}

TEST(ClientOptions, TextIsTakenAsItIs) {
  for (const char* text : {"", "{}", "[]", "[a,b]", "\"quoted\"", "-x", "--size", "a\nb", "%s"}) {
    const auto options = accepted({"-m", text, "-e", text});
    EXPECT_EQ(options.message, text);
    EXPECT_EQ(options.expected_response, text);
  }
}

TEST(ClientOptions, TheAddressMayHaveThePort) {
  const auto target = [](std::vector<const char*> arguments) {
    const auto options = support::accepted(parse(std::move(arguments)));
    return options.server_address + " " + std::to_string(options.server_port);
  };
  EXPECT_EQ(target({"-s", "10.0.0.2:7000"}), "10.0.0.2 7000");
  EXPECT_EQ(target({"-s", "host", "-p", "7000"}), "host 7000");
  EXPECT_EQ(target({"-s", "host:7000", "-p", "7000"}), "host 7000");
  EXPECT_EQ(target({"-s", "[::1]:7000"}), "[::1] 7000");
  EXPECT_EQ(target({"-s", "[::1]"}), "[::1] 12345");
  EXPECT_EQ(target({"-s", "::1"}), "::1 12345");
  EXPECT_EQ(target({"-s", "::1:7000"}), "::1:7000 12345") << "an IPv6 address";
}

TEST(ClientOptions, HelpAndVersion) {
  const auto help = std::get<cli::Leave>(parse({"--help"}));
  EXPECT_EQ(help.status, 0);
  for (const char* option :
       {"--server-ip-address", "--server-ip-port", "--thread-count", "--iteration-count",
        "--duration", "--message-string", "--expected-response", "--size",
        "--max-concurrent-messages", "--service", "--output", "--connect-timeout",
        "--response-timeout", "--log-level"}) {
    EXPECT_NE(help.text.find(option), std::string::npos) << option;
  }
  EXPECT_EQ(std::get<cli::Leave>(parse({"--version"})).status, 0);
}

class BadOptions : public testing::TestWithParam<BadCase> {};

TEST_P(BadOptions, OneLineSaysWhatIsWrong) {
  support::expect_refused(parse(GetParam().arguments), "offload-client", GetParam().says);
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
        BadCase{{"-s", "http://h:1/"}, "'http://h:1/' is a URL; allowed: an address or a name"},
        BadCase{{"-s", "h:"}, "'h:' is not an address, a name, or one with a port from 1 to 65535"},
        BadCase{{"-s", ":7000"}, "':7000' is not an address"},
        BadCase{{"-s", "[::1]:70000"}, "'[::1]:70000' is not an address"},
        BadCase{{"-s", "h:7000", "-p", "8000"}, "has port 7000, and --server-ip-port is 8000"},
        BadCase{{"-s", "h", "-t", "0"}, "--thread-count: '0' is not a whole number from 1 to 1024"},
        BadCase{{"-s", "h", "-t", "1025"}, "--thread-count"},
        BadCase{{"-s", "h", "-t", "-1"}, "--thread-count"},
        BadCase{{"-s", "h", "-t", "4x"}, "--thread-count"},
        BadCase{{"-s", "h", "-t", "1", "-t", "2"}, "--thread-count"},
        BadCase{{"-s", "h", "-i", "0"}, "--iteration-count"},
        BadCase{{"-s", "h", "-i", "99999999999999999999"}, "--iteration-count"},
        BadCase{{"-s", "h", "-i", "1000000000000001"}, "from 1 to 1000000000000000"},
        BadCase{{"-s", "h", "--connections", "65537"}, "from 1 to 65536"},
        BadCase{{"-s", "h", "--reconnect-every", "0"}, "from 1 to 1000000000000"},
        BadCase{{"-s", "h", "--reconnect-every", "1000000000001"}, "from 1 to 1000000000000"},
        BadCase{{"-s", "h", "--rate", "1", "--burst", "0"}, "from 1 to 1000000"},
        BadCase{{"-s", "h", "--seed", "1000000001"}, "from 0 to 1000000000"},
        BadCase{{"-s", "h", "--repeat", "0"}, "from 1 to 1000"},
        BadCase{{"-s", "h", "--repeat", "1001"}, "from 1 to 1000"},
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
        BadCase{{"-s", "h", "--output"}, "--output"},
        BadCase{{"-s", "h", "--rate", "0.000999"}, "--rate: '0.000999' is not a rate from 0.001"},
        BadCase{{"-s", "h", "--rate", "20.1m", "-t", "2"},
                "--rate: a thread sends at most 10000000 requests a second (increase -t)"},
        BadCase{{"-s", "h", "--rate", "0"}, "--rate: '0' is not a rate from 0.001"},
        BadCase{{"-s", "h", "--rate", "10g"}, "--rate"},
        BadCase{{"-s", "h", "--rate", "nan"}, "--rate"},
        BadCase{{"-s", "h", "--rate", "1", "--schedule", "f"}, "excludes"},
        BadCase{{"-s", "h", "--arrivals", "bursty"}, "one of constant, poisson"},
        BadCase{{"-s", "h", "--mix", "64:90,64k"}, "sizes with weights, such as 64:90,64k:10"},
        BadCase{{"-s", "h", "--mix", "64:0"}, "--mix"}, BadCase{{"-s", "h", "--mix", ""}, "--mix"},
        BadCase{{"-s", "h", "--mix", "1:1", "--size", "1"}, "excludes"},
        BadCase{{"-s", "h", "--uniform-size", "9-1"}, "a range of sizes, such as 64-4k"},
        BadCase{{"-s", "h", "--payload", "constant:256"}, "one of random, constant:BYTE"},
        BadCase{{"-s", "h", "--scan", "rate=1,"}, "such as rate=10k,20k,40k or depth=1,16,128"},
        BadCase{{"-s", "h", "--scan", "depth=1.5"}, "--scan"},
        BadCase{{"-s", "h", "--search", "p99:1ms"}, "requires --duration"},
        BadCase{{"-s", "h", "--search", "99:1ms", "--duration", "1"}, "a percentile and its bound"},
        BadCase{{"-s", "h", "--search", "p100:1ms", "--duration", "1"}, "--search"},
        BadCase{{"-s", "h", "--search", "p99:", "--duration", "1"}, "--search: 'p99:' is not"},
        BadCase{{"-s", "h", "--search", "p:1ms", "--duration", "1"}, "--search: 'p:1ms' is not"},
        BadCase{{"-s", "h", "--search", "px:y", "--duration", "1"}, "--search: 'px:y' is not"},
        BadCase{{"-s", "h", "--tls", "--tls-certificate", "c"}, "requires --tls-key"},
        BadCase{{"-s", "h", "--tls", "--tls-key", "k"}, "requires --tls-certificate"},
        BadCase{{"-s", "h", "--in-order"}, "--in-order requires --requests"},
        BadCase{{"-s", "h", "--schedule", "f", "--burst", "2"}, "--burst excludes --schedule"},
        BadCase{{"-s", "h", "--rate", "1e-11"}, "--rate"},
        BadCase{{"-s", "h", "--scan", "rate=1k,20m"}, "--scan: a thread sends at most"},
        BadCase{{"-s", "h", "--rate", "20m:1s,1:1s"}, "a thread sends at most 10000000 requests"},
        BadCase{{"-s", "h", "--rate", "1:1s,20m:1ms"}, "a thread sends at most 10000000 requests"},
        BadCase{{"-s", "h", "--rate", "1:1s,"}, "--rate"},
        BadCase{{"-s", "h", "--rate", "1:1s,2"}, "--rate"},
        BadCase{{"-s", "h", "--rate", "1,2:1s"}, "--rate"},
        BadCase{{"-s", "h", "--rate", "1:999us"}, "--rate"},
        BadCase{{"-s", "h", "--rate", ":1s"}, "--rate"},
        BadCase{{"-s", "h", "--scan", "depth=0.5"}, "--scan"},
        BadCase{{"-s", "h", "--scan", "depth=65537"}, "--scan"},
        BadCase{{"-s", "h", "--scan", "depth=x"}, "--scan"},
        BadCase{{"-s", "h", "--rate", "20m"}, "a thread sends at most 10000000 requests"},
        BadCase{{"-s", "h", "--arrivals", "poisson"}, "requires an open loop"},
        BadCase{{"-s", "h", "--lag-tolerance", "1ms"}, "requires an open loop"},
        BadCase{{"-s", "h", "--payload", "constant:7"}, "--payload requires a size"},
        BadCase{{"-s", "h", "--warmup", "1"}, "--warmup requires --duration"},
        BadCase{{"-s", "h", "--start-at", "1", "--repeat", "2"}, "--start-at excludes --repeat"},
        BadCase{{"-s", "h", "--rate", "1", "--scan", "rate=1"}, "--scan rate excludes --rate"},
        BadCase{{"-s", "h", "--schedule", "f", "--scan", "rate=1"}, "excludes --scan rate"},
        BadCase{{"-s", "h", "--output", "f", "--csv", "f"}, "'f' is given for two results"},
        BadCase{{"-s", "h", "--hlog", "f", "--csv", "f"}, "'f' is given for two results"},
        BadCase{{"-s", "h", "--hlog", "-"}, "only --output can be standard output"},
        BadCase{{"-s", "h", "--on-error", "shrug"}, "one of stop, count"},
        BadCase{{"-s", "h", "--deadline", "0"}, "a time from 1us to 1000h"},
        BadCase{{"-s", "h", "--start-at", "noon"}, "a time in seconds since the epoch"},
        BadCase{{"-s", "h", "--start-at", "1763879556000"}, "at most a day from now"},
        BadCase{{"-s", "h", "--kind", "a:size=1", "--kind", "b:size=1", "--kind", "b:size=2"},
                "--kind b is given twice; each kind needs another name"},
        BadCase{{"-s", "h", "-t", "a\nb"}, "'a?b'"}));

TEST(ClientOptions, DatagramsAreAwaitedForASecond) {
  EXPECT_EQ(accepted({"--udp"}).response_timeout, 1s);
  EXPECT_EQ(accepted({"--udp", "--response-timeout", "100ms"}).response_timeout, 100ms);
  EXPECT_EQ(accepted({"--udp", "--response-timeout", "30s"}).response_timeout, 30s);
}

}  // namespace
}  // namespace offload::client
