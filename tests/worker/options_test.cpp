#include "apps/worker/options.hpp"

#include <gtest/gtest.h>

#include <utility>

#include "tests/support/command_line.hpp"

namespace offload::worker {
namespace {

using namespace std::chrono_literals;

std::variant<Options, cli::Leave> parse(std::vector<const char*> arguments) {
  return support::parse<parse_options>(std::move(arguments), "offload-worker");
}

Options accepted(const std::vector<const char*>& arguments) {
  return support::accepted(parse(arguments));
}

TEST(WorkerOptions, EveryOneHasADefault) {
  const auto options = accepted({});
  EXPECT_EQ(options.comch, comch::default_address());
  EXPECT_EQ(options.backend, "auto");
  EXPECT_TRUE(options.gpu_pci_addresses.empty());
  EXPECT_EQ(options.warps_per_channel, std::nullopt);
  EXPECT_EQ(options.idle_sleep, 20us);
  EXPECT_EQ(options.spin, 20us);
  EXPECT_EQ(options.connect_timeout, 60s);
  EXPECT_EQ(options.shutdown_timeout, 10s);
  EXPECT_EQ(options.stuck_after, 2s);
  EXPECT_EQ(options.log.level, "info");
  EXPECT_FALSE(options.list_devices);
  EXPECT_EQ(options.max_memory, std::uint64_t{8} << 30);
  EXPECT_FALSE(options.stands_by || options.replaces || options.shutdown_together);
}

TEST(WorkerOptions, SeveralGpus) {
  const auto options = accepted({"-g", "01:00.0", "--backend", "cuda", "-g", "02:00.0"});
  EXPECT_EQ(options.gpu_pci_addresses, (std::vector<std::string>{"01:00.0", "02:00.0"}));
}

TEST(WorkerOptions, ItsPartBesideOtherWorkers) {
  EXPECT_TRUE(accepted({"--stand-by"}).stands_by);
  EXPECT_TRUE(accepted({"--replace"}).replaces);
  EXPECT_TRUE(accepted({"--shutdown-together"}).shutdown_together);
}

TEST(WorkerOptions, MemoryIsMoreThanThirtyTwoBits) {
  EXPECT_EQ(accepted({"--max-memory", "64g"}).max_memory, std::uint64_t{64} << 30);
  EXPECT_EQ(accepted({"--max-memory", "1"}).max_memory, 1U);
}

TEST(WorkerOptions, ListsDevices) {
  EXPECT_TRUE(accepted({"--list-devices"}).list_devices);
}

TEST(WorkerOptions, EachByItsName) {
  const auto options = accepted({"--comch",
                                 "unix:/run/x",
                                 "--backend",
                                 "cuda",
                                 "-g",
                                 "0000:01:00.0",
                                 "--warps-per-channel",
                                 "64",
                                 "--idle-sleep",
                                 "0",
                                 "--spin",
                                 "1ms",
                                 "--connect-timeout",
                                 "0",
                                 "--shutdown-timeout",
                                 "1h",
                                 "--stuck-after",
                                 "1ms",
                                 "--log-level",
                                 "off"});
  EXPECT_EQ(options.comch, "unix:/run/x");
  EXPECT_EQ(options.backend, "cuda");
  EXPECT_EQ(options.gpu_pci_addresses, std::vector<std::string>{"0000:01:00.0"});
  EXPECT_EQ(options.warps_per_channel, 64U);
  EXPECT_EQ(options.idle_sleep, 0us);
  EXPECT_EQ(options.spin, 1ms);
  EXPECT_EQ(options.connect_timeout, 0s);
  EXPECT_EQ(options.shutdown_timeout, 1h);
  EXPECT_EQ(options.stuck_after, 1ms);
  EXPECT_EQ(options.log.level, "off");
}

TEST(WorkerOptions, UdpHasAPlaceAServiceAndQueues) {
  const auto options = accepted({"--udp", "10.0.0.1:4000", "--udp-queues", "4"});
  ASSERT_TRUE(options.udp);
  EXPECT_EQ(options.udp->port, 4000);
  EXPECT_EQ(options.udp_service, "reverse");
  EXPECT_EQ(options.udp_queues, 4U);
  EXPECT_FALSE(accepted({}).udp);
  const auto with_gpu = accepted({"--udp", "eth1:1", "-g", "01:00.0", "--udp-service", "echo"});
  EXPECT_EQ(with_gpu.udp->interface, "eth1");
  EXPECT_EQ(with_gpu.udp_service, "echo");
  EXPECT_EQ(with_gpu.udp_queues, 1U);
  EXPECT_EQ(accepted({"--udp", "eth1:1", "--udp-queues", "16"}).udp_queues, 16U);
}

TEST(WorkerOptions, ServicesOfModulesAndSourcesHaveOptions) {
  const auto options =
      accepted({"--service-module", "a.so", "--service-source", "b.cu", "--service-source", "c.cpp",
                "--service-option", "key=1", "--service-option", "b.key=2"});
  EXPECT_EQ(options.service_modules, std::vector<std::string>{"a.so"});
  EXPECT_EQ(options.service_sources, (std::vector<std::string>{"b.cu", "c.cpp"}));
  EXPECT_EQ(options.configuration.argument_count, 11);  // with the program's name
  backend::ServiceOptions expected;
  ASSERT_TRUE(backend::add_service_option(expected, "key=1"));
  ASSERT_TRUE(backend::add_service_option(expected, "b.key=2"));
  EXPECT_EQ(options.service_options, expected);
}

TEST(WorkerOptions, GraphTakesAnAddressAndASpin) {
  const auto options = accepted({"--backend", "graph", "-g", "01:00.0", "--spin", "50us"});
  EXPECT_EQ(options.backend, "graph");
  EXPECT_EQ(options.gpu_pci_addresses, std::vector<std::string>{"01:00.0"});
  EXPECT_EQ(options.spin, 50us);
}

TEST(WorkerOptions, TheReferencesShortFormOfComch) {
  EXPECT_EQ(accepted({"-c", "dpu"}).comch, comch::address_of_name("dpu"));
}

TEST(WorkerOptions, PciAddressesInTheirForms) {
  for (const char* address : {"0000:01:00.0", "01:00.0", "1:0", "abcd:ef:1f.7", "AB:CD.0"}) {
    EXPECT_EQ(accepted({"--gpu-pci-addr", address}).gpu_pci_addresses.front(), address);
  }
}

TEST(WorkerOptions, OneLineSaysWhatIsWrong) {
  const char* const no_address = "is not a PCI address, such as 0000:01:00.0";
  const char* const no_warps = "is not a multiple of 4 up to 64";
  const support::BadCase cases[] = {
      {{"-c", "a/b"}, "--comch-channel-name: 'a/b' is not a name without '/'"},
      {{"-c", "dpu", "--comch", "unix:/run/x"}, "excludes"},
      {{"--backend", "cpu", "-g", "0000:01:00.0"}, "--gpu-pci-addr is for a GPU"},
      {{"--backend", "cpu", "--warps-per-channel", "4"}, "--warps-per-channel is for a GPU"},
      {{"--idle-sleep", "0", "--backend", "cpu"}, "--idle-sleep is for a GPU"},
      {{"--comch", "here"}, "'here' is not a comch address; allowed: unix:PATH"},
      {{"--udp", "eth1"}, "--udp: 'eth1' is not ADDRESS:PORT or INTERFACE:PORT"},
      {{"--udp", "eth1:1", "--admin", "unix:x"}, "--udp excludes --admin"},
      {{"--udp", "eth1:1", "-c", "dpu"}, "--udp excludes --comch-channel-name"},
      {{"--udp", "eth1:1", "--udp-queues", "17"}, "--udp-queues: '17' is not"},
      {{"--udp", "eth1:1", "--udp-queues", "0"}, "--udp-queues: '0' is not"},
      {{"--udp", "eth1:1", "--backend", "graph"}, "--udp excludes --backend graph"},
      {{"--service-source", "b.c"}, "--service-source: 'b.c' is not a file whose name ends in"},
      {{"--service-option", "key"}, "--service-option: 'key' is not KEY=VALUE"},
      {{"--data-path", "gpu"}, "--data-path gpu needs RDMA"},
      {{"-d", "0"}, "is an option of the reference application: use --comch rdma:ADDRESS:PORT"},
      {{"-t", "4"}, "is an option of the reference application: use --threads of the server"},
      {{"--udp", "eth1:1", "-g", "01:00.0", "-g", "02:00.0"},
       "--udp allows only one --gpu-pci-addr"},
      {{"--udp-service", "echo"}, "--udp-service requires --udp"},
      {{"--backend", "graph", "--idle-sleep", "0"},
       "--idle-sleep is for a GPU's persistent kernel"},
      {{"--backend", "graph", "--warps-per-channel", "4"},
       "allowed with --backend cuda or auto, not graph"},
      {{"--backend", "gpu"}, "--backend: 'gpu' is not one of auto, cuda, graph, cpu"},
      {{"--backend", ""}, "--backend: '' is not one of"},
      {{"-g", "first"}, no_address},
      {{"-g", ""}, no_address},
      {{"-g", "0000010000"}, no_address},
      {{"-g", "0:0:0:0"}, no_address},
      {{"-g", "0000:01:00.0 "}, no_address},
      {{"-g", "00000000:00000001:0000.0"}, no_address},
      {{"--warps-per-channel", "0"}, no_warps},
      {{"--warps-per-channel", "3"}, no_warps},
      {{"--warps-per-channel", "68"}, no_warps},
      {{"--warps-per-channel", "many"}, no_warps},
      {{"--idle-sleep", "2ms"}, "--idle-sleep: '2ms' is not a time from 0 to 1ms, such as 20us"},
      {{"--idle-sleep", "-1"}, "--idle-sleep"},
      {{"--spin", "forever"}, "--spin: 'forever' is not a time from 0"},
      {{"--connect-timeout", "x"}, "--connect-timeout"},
      {{"--shutdown-timeout", "x"}, "--shutdown-timeout"},
      {{"-g", "01:00.0", "-g", "01:00.0"}, "--gpu-pci-addr: a GPU is given twice"},
      {{"-g", "01:00.0", "-g", "second"}, no_address},
      {{"--max-memory", "0"}, "--max-memory: '0' is not a size of at least 1 byte"},
      {{"--max-memory", "much"}, "--max-memory: 'much' is not a size"},
      {{"--stand-by", "--replace"}, "--stand-by excludes --replace"},
      {{"--stuck-after", "0"}, "--stuck-after: '0' is not a time from 1ms"},
      {{"--log-level", "loud"}, "--log-level"},
      {{"--threads", "2"}, "--threads"},
      {{"stray"}, "stray"},
      {{"--backend", "cpu", "--backend", "cuda"}, "--backend"},
  };
  for (const auto& bad : cases) {
    support::expect_refused(parse(bad.arguments), "offload-worker", bad.says);
  }
}

TEST(WorkerOptions, HelpNamesThemAll) {
  const auto help = std::get<cli::Leave>(parse({"--help"}));
  EXPECT_EQ(help.status, 0);
  for (const char* option : {"--comch", "--backend", "-g,--gpu-pci-addr", "--warps-per-channel",
                             "--idle-sleep", "--spin", "--connect-timeout", "--shutdown-timeout",
                             "--stuck-after", "--log-level", "--stand-by", "--replace",
                             "--shutdown-together", "--max-memory", "auto, cuda, graph, cpu"}) {
    EXPECT_NE(help.text.find(option), std::string::npos) << option;
  }
  std::size_t at = 0;
  for (const char* const group : {"\nServer:\n", "\nBack end:\n", "\nServices:\n",
                                  "\nRequests by UDP:\n", "\nOperation:\n"}) {
    const std::size_t next = help.text.find(group, at);
    ASSERT_NE(next, std::string::npos) << group << " in " << help.text;
    at = next;
  }
}

}  // namespace
}  // namespace offload::worker
