#include "apps/packets/options.hpp"

#include <algorithm>
#include <array>
#include <span>

#include "cli/options.hpp"
#include "core/log.hpp"
#include "packets/program/steering.h"

namespace offload::packets {
namespace {

constexpr const char* kDescription =
    "Receives and sends Ethernet frames on queues of a network interface that a GPU kernel or\n"
    "threads read and write themselves (AF_XDP). Frames that match no rule go to the network\n"
    "stack of Linux.";

constexpr const char* kFooter =
    "\nRules; the first rule that a frame matches applies:\n"
    "  [PROTOCOL] [vlan ID] [src|dst ADDRESS[/BITS]] [sport|dport PORT[-PORT]]\n"
    "  [type ICMP-TYPE] [flags SET/LOOKED-AT] to QUEUE[-QUEUE]|stack|drop\n"
    "  PROTOCOL is any, ip, ip6, udp, tcp, icmp or icmp6; flags are letters of FSRPAU or -\n\n"
    "This program needs CAP_NET_RAW, CAP_BPF and CAP_NET_ADMIN. Over veth and other software\n"
    "interfaces the sender must write complete checksums: ethtool -K PEER tx off.\n"
    "Exit status: 0 success; 1 an error; 2 an invalid command line.\n\n"
    "Examples:\n"
    "  offload-packets echo -i eth1 --port 4000 --backend cuda\n"
    "  offload-packets count -i eth1 --rule 'tcp flags S/SA to stack' --rule 'udp to stack'\n"
    "  offload-packets capture -i eth1 --rule 'udp dport 53 to 0' --file dns.pcap";

struct Known {
  Command command;
  const char* name;
  const char* description;
};
constexpr std::array kCommands = {
    Known{Command::count, "count", "Count frames by rule, and malformed frames per queue"},
    Known{Command::echo, "echo", "Answer UDP datagrams with their payload in reverse byte order"},
    Known{Command::ping, "ping", "Answer ICMP echo requests"},
    Known{Command::filter, "filter",
          "Print statistics of the queues' packets, and each HTTP GET among them"},
    Known{Command::send, "send", "Send UDP datagrams at a rate, and measure their spacing"},
    Known{Command::capture, "capture", "Write the packets of the queues to a pcap file"},
};

void add_common(cli::CommandLine& line, Options& options) {
  cli::add_text(line, "-i,--interface NAME", options.interface, "Use this network interface")
      .required();
  cli::add_choice(line, "--backend", options.backend, {"cpu", "cuda"},
                  "Process the queues with threads (cpu) or with a kernel of the GPU (cuda)");
  cli::add_integer<std::uint32_t>(line, "--queues", options.queues, 1, OFFLOAD_MOST_QUEUES,
                                  "Queues for each one of the interface, from which rules choose");
  cli::add_integer<std::uint32_t>(line, "--frames", options.frames, 64, 65536,
                                  "Give each queue this number of frames, a power of two");
  cli::add_flag(line, "--copy", options.only_copy, "Copy frames, even if the driver has zero copy");
  cli::add_time(line, "--duration", options.duration, std::chrono::milliseconds(1),
                "Run for this time. Default: until a signal");
  cli::add_text(line, "--output FILE", options.output,
                "Also write the results to this file, as JSON");
  cli::add_log_options(line, options.log);
}

void add_receiving(cli::CommandLine& line, Options& options) {
  const auto take = [&options](const std::string& text) {
    options.rules.push_back(text);
    return true;
  };
  cli::add_values(line, "--rule RULE", take, "a rule",
                  "Direct frames by this rule. May be repeated")
      .one_each();
  cli::add_integer<std::uint32_t>(line, "--batch", options.batch, 1, 1024,
                                  "Receive up to this number of packets at a time");
}

void add_sending(cli::CommandLine& line, Options& options) {
  cli::add_text(line, "--from ADDRESS:PORT", options.from, "Set the source of the datagrams")
      .required();
  cli::add_text(line, "--to ADDRESS:PORT", options.to, "Set their destination").required();
  cli::add_text(line, "--to-mac MAC", options.to_mac, "Set the Ethernet address of the next hop");
  const auto read = [](const std::string& text) { return cli::read_sizes(text, 8, 1458); };
  cli::add(line, "-s,--size BYTES", options.sizes, read, "a list of sizes from 8 to 1458 bytes",
           "Send payloads of this size; with several sizes, one after the other")
      .default_str("64");
  cli::add_integer<std::uint64_t>(
      line, "--rate", options.rate, 0, 1'000'000'000,
      "Send at this rate on each queue, datagrams a second; 0: no limit");
}

void add_of(cli::CommandLine& line, Options& options, Command command) {
  add_common(line, options);
  if (command == Command::send) {
    add_sending(line, options);
  } else {
    add_receiving(line, options);
  }
  if (command == Command::echo) {
    cli::add_integer<std::uint16_t>(line, "--port", options.port, 1, 65535,
                                    "Answer datagrams to this UDP port; without --rule, the rule "
                                    "is this port of the interface's addresses");
  }
  if (command == Command::filter) {
    cli::add_integer<std::uint64_t>(line, "--every", options.statistics_every, 1, 1'000'000'000,
                                    "Print statistics after this number of packets of each queue");
  }
  if (command == Command::capture) {
    cli::add_text(line, "--file FILE", options.file, "Write to this file").required();
  }
  if (command == Command::capture || command == Command::send) {
    cli::add_integer<std::uint64_t>(line, "-n,--count", options.most, 0, UINT64_MAX,
                                    "Stop after this number of packets; 0: no limit");
  }
}

}  // namespace

std::vector<std::string> rules_of(const Options& options,
                                  const std::vector<std::string>& addresses) {
  if (!options.rules.empty()) return options.rules;
  if (options.command == Command::count) {
    return {"udp to stack",   "tcp to stack", "icmp to stack",
            "icmp6 to stack", "ip to stack",  "ip6 to stack"};
  }
  std::vector<std::string> rules;
  if (addresses.size() > OFFLOAD_MOST_RULES) {
    core::log_warning("{} has {} addresses: only packets to the first {} are received",
                      options.interface, addresses.size(), +OFFLOAD_MOST_RULES);
  }
  const auto taken =
      std::span(addresses).first(std::min<std::size_t>(addresses.size(), OFFLOAD_MOST_RULES));
  for (const std::string& address : taken) {
    if (options.command == Command::echo) {
      rules.push_back(fmt::format("udp vlan 0 dst {} dport {} to 0", address, options.port));
    } else if (options.command == Command::ping) {
      const bool is_v6 = address.find(':') != std::string::npos;
      rules.push_back(fmt::format("{} vlan 0 dst {} type {} to 0", is_v6 ? "icmp6" : "icmp",
                                  address, is_v6 ? 128 : 8));
    }
  }
  return rules;
}

std::string_view name_of(Command command) noexcept {
  return kCommands.at(static_cast<std::size_t>(command)).name;
}

std::variant<Options, cli::Leave> parse_options(int argc, const char* const* argv) {
  cli::CommandLine line("offload-packets", kDescription, kFooter);
  std::array<Options, kCommands.size()> options;
  std::vector<cli::CommandLine*> commands;
  for (std::size_t i = 0; i < kCommands.size(); ++i) {
    options.at(i).command = kCommands.at(i).command;
    commands.push_back(&line.add_command(kCommands.at(i).name, kCommands.at(i).description));
    add_of(*commands.back(), options.at(i), kCommands.at(i).command);
  }
  if (auto leave = line.parse(argc, argv)) return *leave;
  for (std::size_t i = 0; i < kCommands.size(); ++i) {
    if (!commands[i]->said()) continue;
    Options& said = options.at(i);
    const bool takes = said.command == Command::filter || said.command == Command::capture;
    if (takes && said.rules.empty()) {
      return commands[i]->refuse("--rule is required: it selects frames from the kernel's");
    }
    if ((said.frames & (said.frames - 1)) != 0) {
      return commands[i]->refuse("--frames must be a power of two");
    }
    return said;
  }
  return line.refuse("a command is required");
}

}  // namespace offload::packets
