#include "apps/server/options.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "core/cpu.hpp"
#include "tests/support/command_line.hpp"

namespace offload::server {
namespace {

using namespace std::chrono_literals;

std::variant<Options, cli::Leave> parse(std::vector<const char*> arguments) {
  return support::parse<parse_options>(std::move(arguments), "offload-server");
}

Options accepted(const std::vector<const char*>& arguments) {
  return support::accepted(parse(arguments));
}

TEST(ServerOptions, EveryOneHasADefault) {
  const auto options = accepted({});
  EXPECT_EQ(options.comch, comch::default_address());
  EXPECT_EQ(options.listen_address, "127.0.0.1");  // the network is for those who ask for it
  EXPECT_EQ(options.listen_port, 12345);
  EXPECT_EQ(options.threads, 1U);
  EXPECT_TRUE(options.cpus.empty());
  EXPECT_EQ(options.max_concurrent_messages, 128U);
  EXPECT_EQ(options.max_message_length, 256U);
  EXPECT_EQ(options.service, "reverse");
  EXPECT_EQ(options.worker_timeout, 10s);
  EXPECT_EQ(options.clients.output_timeout, 120s);
  EXPECT_EQ(options.shutdown_timeout, 5s);
  EXPECT_EQ(options.spin, 50us);
  EXPECT_EQ(options.log.level, "info");
}

TEST(ServerOptions, EachByItsName) {
  const auto options = accepted({"--comch",
                                 "unix:/run/x",
                                 "-p",
                                 "7000",
                                 "--listen-address",
                                 "::",
                                 "--threads",
                                 "4",
                                 "--max-concurrent-messages",
                                 "256",
                                 "--max-message-length",
                                 "64k",
                                 "--service",
                                 "crc32c",
                                 "--worker-timeout",
                                 "500ms",
                                 "--client-timeout",
                                 "0",
                                 "--shutdown-timeout",
                                 "0",
                                 "--spin",
                                 "1ms",
                                 "--log-level",
                                 "error"});
  EXPECT_EQ(options.comch, "unix:/run/x");
  EXPECT_EQ(options.listen_port, 7000);
  EXPECT_EQ(options.listen_address, "::");
  EXPECT_EQ(options.threads, 4U);
  EXPECT_EQ(options.max_concurrent_messages, 256U);
  EXPECT_EQ(options.max_message_length, 65536U);
  EXPECT_EQ(options.service, "crc32c");
  EXPECT_EQ(options.worker_timeout, 500ms);
  EXPECT_EQ(options.clients.output_timeout, 0s);
  EXPECT_EQ(options.shutdown_timeout, 0s);
  EXPECT_EQ(options.spin, 1ms);
  EXPECT_EQ(options.log.level, "error");
  EXPECT_EQ(accepted({"--server-listen-port", "0"}).listen_port, 0);
}

TEST(ServerOptions, DepthsAreRoundedUpToAPowerOfTwo) {
  const std::pair<const char*, std::uint32_t> depths[] = {
      {"1", 1}, {"2", 2}, {"3", 4}, {"100", 128}, {"128", 128}, {"129", 256}, {"4096", 4096}};
  for (const auto& [text, depth] : depths) {
    EXPECT_EQ(accepted({"--max-concurrent-messages", text}).max_concurrent_messages, depth);
  }
}

TEST(ServerOptions, EachCpuIsNamedOnce) {
  std::vector<std::string> texts;
  std::vector<const char*> arguments;
  const auto cpus = core::allowed_cpus();
  for (const int cpu : cpus) texts.push_back(std::to_string(cpu));
  for (const auto& text : texts) arguments.insert(arguments.end(), {"--cpu", text.c_str()});
  EXPECT_EQ(accepted(arguments).cpus, cpus);
  arguments.insert(arguments.end(), {"--cpu", texts.front().c_str()});
  const auto leave = std::get<cli::Leave>(parse(arguments));
  EXPECT_EQ(leave.status, 2);
  EXPECT_NE(leave.text.find("--cpu: a processor is given twice"), std::string::npos);
}

TEST(ServerOptions, OnePortHasOneService) {
  EXPECT_EQ(accepted({}).listens, (std::vector<Listen>{{12345, "reverse"}}));
  EXPECT_EQ(accepted({"-p", "7000", "--service", "my-own_1"}).listens,
            (std::vector<Listen>{{7000, "my-own_1"}}));
}

TEST(ServerOptions, SeveralPortsHaveAServiceEach) {
  EXPECT_EQ(accepted({"--listen", "7000=echo", "--listen", "0=lookup"}).listens,
            (std::vector<Listen>{{7000, "echo"}, {0, "lookup"}}));
}

TEST(ServerOptions, APortIsTakenOnlyOnItsAddress) {
  EXPECT_EQ(accepted({"--listen", "0=echo", "--listen", "0=echo"}).listens.size(), 2U);
  EXPECT_TRUE(accepted({"-p", "0", "--metrics", "0"}).metrics);
  EXPECT_TRUE(accepted({"-p", "7000", "--metrics", "10.0.0.1:7000"}).metrics);
  EXPECT_TRUE(accepted({"-p", "7000", "--metrics", "7001"}).metrics);
}

TEST(ServerOptions, ResponsesMayBeLongerThanRequests) {
  EXPECT_EQ(accepted({}).max_response_length, 48U);
  EXPECT_EQ(accepted({"--max-response-length", "4k"}).max_response_length, 4096U);
}

TEST(ServerOptions, TheReferencesShortFormOfComch) {
  EXPECT_EQ(accepted({"-c", "dpu"}).comch, comch::address_of_name("dpu"));
  EXPECT_EQ(accepted({"--comch-channel-name", "dpu"}).comch, comch::address_of_name("dpu"));
}

TEST(ServerOptions, TheLargestChannelsThereCanBe) {
  EXPECT_EQ(accepted({"--max-message-length", "16m", "--max-concurrent-messages", "64"})
                .max_message_length,
            16U << 20);
  EXPECT_EQ(accepted({"--max-message-length", "256k", "--max-concurrent-messages", "4096"})
                .max_concurrent_messages,
            4096U);
}

TEST(ServerOptions, OneLineSaysWhatIsWrong) {
  const std::string cpu = std::to_string(core::allowed_cpus().front());
  const support::BadCase cases[] = {
      {{"--comch", "/run/x"},
       "'/run/x' is not a comch address; allowed: unix:PATH, tcp:HOST:PORT, rdma:HOST:PORT; did "
       "you mean unix:/run/x?"},
      {{"--comch", "10.0.0.1:7000"}, "did you mean tcp:10.0.0.1:7000?"},
      {{"--listen", "7000=echo", "--listen", "7001=echo", "--listen", "7000=reverse"},
       "--listen: port 7000 is given twice; each service needs its own port"},
      {{"-p", "7000", "--listen", "7000=echo"}, "--server-listen-port excludes --listen"},
      {{"-p", "7000", "--metrics", "7000"}, "--metrics: 127.0.0.1:7000 is a port for clients"},
      {{"--listen", "7000=echo", "--listen-address", "::", "--metrics", "10.0.0.1:7000"},
       "--metrics: 10.0.0.1:7000 is a port for clients"},
      {{"-p", "7000", "--comch", "tcp:localhost:7000"}, "--comch: localhost:7000 is a port for"},
      {{"--comch", "unix:"}, "has no path"},
      {{"--comch", "tcp:1.2.3.4"}, "allowed: unix:PATH"},
      {{"--comch"}, "--comch"},
      {{"-c", "a/b"}, "--comch-channel-name: 'a/b' is not a name without '/'"},
      {{"-c", ""}, "--comch-channel-name: '' is not"},
      {{"-c", "dpu", "--comch", "unix:/run/x"}, "excludes"},
      {{"-p", "65536"}, "--server-listen-port: '65536' is not a whole number from 0 to 65535"},
      {{"-p", "-1"}, "'-1' is not"},
      {{"-p", "http"}, "'http' is not"},
      {{"-p", "1", "-p", "2"}, "--server-listen-port"},
      {{"--threads", "0"}, "--threads: '0' is not a whole number from 1 to 256"},
      {{"--threads", "257"}, "--threads: '257'"},
      {{"--threads", "2", "--cpu", cpu.c_str()}, "excludes"},
      {{"--cpu", "-1"}, "'-1' is not an allowed processor"},
      {{"--cpu", "99999"}, "'99999' is not an allowed processor"},
      {{"--cpu", "00"}, "'00' is not an allowed processor"},
      {{"--cpu", "all"}, "'all' is not an allowed processor"},
      {{"--cpu"}, "--cpu"},
      {{"--max-concurrent-messages", "0"}, "'0' is not a whole number from 1 to 4096"},
      {{"--max-concurrent-messages", "4097"}, "'4097' is not a whole number from 1 to 4096"},
      {{"--max-message-length", "16777217"}, "is not a size from 0 to 16777216 bytes"},
      {{"--max-message-length", "-1"}, "--max-message-length: '-1'"},
      {{"--max-message-length", "17m"}, "--max-message-length: '17m'"},
      {{"--max-message-length", "16m", "--max-concurrent-messages", "4096"},
       "bytes for each thread; at most 4294967296 are allowed"},
      {{"--service", "Rot13"}, "--service: 'Rot13' is not a name of 1 to 32 of a-z, 0-9, - and _"},
      {{"--worker-timeout", "-1"}, "--worker-timeout: '-1' is not a time from 0"},
      {{"--worker-timeout", "never"}, "--worker-timeout: 'never'"},
      {{"--shutdown-timeout", "1001h"}, "--shutdown-timeout"},
      {{"--spin", "x"}, "--spin: 'x'"},
      {{"--log-level", "loud"}, "--log-level: 'loud' is not one of trace, debug"},
      {{"--backend", "cpu"}, "--backend"},
      {{"stray"}, "stray"},
      {{"--listen-address"}, "--listen-address"},
  };
  for (const auto& bad : cases) {
    support::expect_refused(parse(bad.arguments), "offload-server", bad.says);
  }
}

TEST(ServerOptions, HelpNamesThemAll) {
  const auto help = std::get<cli::Leave>(parse({"--help"}));
  EXPECT_EQ(help.status, 0);
  for (const char* option :
       {"--comch", "-p,--server-listen-port", "--listen-address", "--threads", "--cpu",
        "--max-concurrent-messages", "--max-message-length", "--service", "--worker-timeout",
        "--shutdown-timeout", "--spin", "--log-level", "reverse, echo, crc32c"}) {
    EXPECT_NE(help.text.find(option), std::string::npos) << option;
  }
}

}  // namespace
}  // namespace offload::server
