#include "apps/server/options.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/cpu.hpp"
#include "protocol/control.hpp"
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

TEST(ServerOptions, EachOfTheOthersByItsName) {
  const auto options = accepted({"--proxy-from",
                                 "10.0.0.0/8",
                                 "--proxy-from",
                                 "::1",
                                 "--tls-certificate",
                                 "chain.pem",
                                 "--tls-key",
                                 "key.pem",
                                 "--tls-client-ca",
                                 "ca.pem",
                                 "--tls-client-crl",
                                 "crl.pem",
                                 "--comch",
                                 "rdma:10.0.0.1:7000",
                                 "--comch-key-file",
                                 "key",
                                 "--comch-allow",
                                 "10.1.0.0/16",
                                 "--rdma-device",
                                 "mlx5_0",
                                 "--traffic-class",
                                 "106",
                                 "--request-timeout",
                                 "7s",
                                 "--slow-request",
                                 "8ms",
                                 "--stall-limit",
                                 "9ms",
                                 "--client-memory",
                                 "1m",
                                 "--max-clients",
                                 "11",
                                 "--max-clients-per-address",
                                 "12",
                                 "--frame-timeout",
                                 "13s",
                                 "--idle-timeout",
                                 "14s",
                                 "--shutdown-together",
                                 "--metrics",
                                 "9100",
                                 "--admin",
                                 "unix:/run/a",
                                 "--max-response-length",
                                 "48"});
  EXPECT_EQ(options.proxies.size(), 2U);
  EXPECT_EQ(options.tls_certificate, "chain.pem");
  EXPECT_EQ(options.tls_key, "key.pem");
  EXPECT_EQ(options.tls_client_ca, "ca.pem");
  EXPECT_EQ(options.tls_client_crl, "crl.pem");
  EXPECT_EQ(options.comch_security.key_files, std::vector<std::string>{"key"});
  EXPECT_EQ(options.comch_security.allowed.size(), 1U);
  EXPECT_EQ(options.comch_path.device, "mlx5_0");
  EXPECT_EQ(options.comch_path.traffic_class, 106);
  EXPECT_EQ(options.request_timeout, 7s);
  EXPECT_EQ(options.slow_request, 8ms);
  EXPECT_EQ(options.stall_limit, 9ms);
  EXPECT_EQ(options.clients.memory, std::uint64_t{1} << 20);
  EXPECT_EQ(options.clients.connections, 11U);
  EXPECT_EQ(options.clients.per_address, 12U);
  EXPECT_EQ(options.clients.frame_timeout, 13s);
  EXPECT_EQ(options.clients.idle_timeout, 14s);
  EXPECT_TRUE(options.shutdown_together);
  EXPECT_EQ(options.metrics->port, 9100);
  EXPECT_EQ(options.admin, "/run/a");
  EXPECT_EQ(options.max_response_length, 48U);
}

TEST(ServerOptions, BothEndsOfARangeBelongToIt) {
  EXPECT_EQ(accepted({"--max-clients", "0"}).clients.connections, 0U);
  EXPECT_EQ(accepted({"--max-clients-per-address", "0"}).clients.per_address, 0U);
  const std::string most = std::to_string(1'000'000'000);
  EXPECT_EQ(accepted({"--max-clients", most.c_str()}).clients.connections, 1'000'000'000U);
  EXPECT_EQ(accepted({"--max-clients-per-address", most.c_str()}).clients.per_address,
            1'000'000'000U);
  std::vector<std::string> texts;
  for (std::uint32_t i = 0; i < protocol::kMaxServices; ++i) {
    texts.push_back(std::to_string(7000 + i) + "=echo");
  }
  std::vector<const char*> arguments;
  for (const auto& text : texts) arguments.insert(arguments.end(), {"--listen", text.c_str()});
  EXPECT_EQ(accepted(arguments).listens.size(), protocol::kMaxServices);
  arguments.insert(arguments.end(), {"--listen", "9000=echo"});
  support::expect_refused(parse(arguments), "offload-server", "--listen: given ");
  EXPECT_EQ(accepted({"--listen", "1=echo", "--listen", "2=echo", "--threads", "128"}).threads,
            128U);
  support::expect_refused(
      parse({"--listen", "1=echo", "--listen", "2=echo", "--threads", "129"}), "offload-server",
      "--listen: 2 ports with 129 I/O threads each; at most 256 threads are allowed");
}

TEST(ServerOptions, AreReadAgainAsTheyWereGiven) {
  const std::vector<const char*> arguments{"offload-server", "-p", "7000"};
  const auto result = parse_options(static_cast<int>(arguments.size()), arguments.data());
  const auto& configuration = std::get<Options>(result).configuration;
  EXPECT_EQ(configuration.argument_count, 3);
  EXPECT_EQ(configuration.arguments, arguments.data());
  EXPECT_EQ(configuration.to_string(), "server-listen-port 7000 (command line)");
}

TEST(ServerOptions, AreAlsoPrinted) {
  const auto printed = std::get<cli::Leave>(parse({"-p", "7000", "--print-config"}));
  EXPECT_EQ(printed.status, 0);
  EXPECT_NE(printed.text.find("\nserver-listen-port = 7000\n"), std::string::npos);
  EXPECT_NE(printed.text.find(
                "\n#client-memory = \"a quarter of the memory that the process can have\"\n"),
            std::string::npos);
}

TEST(ServerOptions, EachThreadHasItsProcessor) {
  EXPECT_EQ(io_thread_cpus(accepted({"--threads", "2"})), (std::vector<int>{-1, -1}));
  Options options;
  options.listens = {{1, "echo"}, {2, "crc32c"}};
  options.cpus = {4, 6};
  EXPECT_EQ(io_thread_cpus(options), (std::vector<int>{4, 6, 4, 6}));
  EXPECT_EQ(services_of(options), (std::vector<std::string>{"echo", "crc32c"}));
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
  EXPECT_TRUE(
      accepted({"-p", "7000", "--listen-address", "0.0.0.0", "--metrics", "[::1]:7000"}).metrics);
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
  const std::string too_many = std::to_string(1'000'000'001);
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
      {{"-p", "7000", "--listen-address", "0.0.0.0", "--metrics", "10.0.0.1:7000"},
       "--metrics: 10.0.0.1:7000 is a port for clients"},
      {{"-p", "7000", "--listen-address", "10.0.0.1", "--metrics", "[::]:7000"},
       "--metrics: [::]:7000 is a port for clients"},
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
      {{"--listen-address", "localhost:80"},
       "--listen-address: 'localhost:80' has a port; name the port with -p: --listen-address "
       "localhost -p 80"},
      {{"--listen-address", "[::1]:80"}, "--listen-address [::1] -p 80"},
      {{"--listen", "7000"}, "--listen: '7000' is not PORT=NAME"},
      {{"--listen", "=echo"}, "--listen: '=echo' is not PORT=NAME"},
      {{"--listen", "7000echo"}, "--listen: '7000echo' is not PORT=NAME"},
      {{"--listen", "65536=echo"}, "--listen: '65536=echo' is not PORT=NAME"},
      {{"--listen", "7000=Echo"}, "--listen: '7000=Echo' is not PORT=NAME"},
      {{"--tls-certificate", "a"}, "--tls-key"},
      {{"--tls-key", "a"}, "--tls-certificate"},
      {{"--client-memory", "1048575"}, "--client-memory: '1048575' is not a size from 1m"},
      {{"--client-memory", "lots"}, "--client-memory: 'lots' is not a size from 1m"},
      {{"--max-clients", too_many.c_str()}, "--max-clients: '"},
      {{"--max-clients-per-address", too_many.c_str()}, "--max-clients-per-address: '"},
      {{"--max-response-length", "47"}, "--max-response-length: '47' is not a size from 48 to"},
      {{"-d", "03:00.0"}, "use --comch rdma:ADDRESS:PORT, whose address names the device"},
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
  for (const char* begin_of_group :
       {"Ports for clients:\n  -p,--server-listen-port", "Workers and their channels:\n  ",
        "Time limits:\n  --worker-timeout", "Limits of clients:\n  --client-memory",
        "Operation:\n  --shutdown-together"}) {
    EXPECT_NE(help.text.find(begin_of_group), std::string::npos) << begin_of_group;
  }
}

}  // namespace
}  // namespace offload::server
