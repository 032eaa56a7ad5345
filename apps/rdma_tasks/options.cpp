#include "apps/rdma_tasks/options.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "apps/rdma_tasks/device/lane.hpp"
#include "cli/options.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "rdma/verbs/gid.hpp"

namespace offload::rdma_tool {
namespace {

constexpr std::uint32_t kLargest = std::uint32_t{64} << 20;
/// Bytes of all buffers of a process, so that a mistyped option does not exhaust the machine.
constexpr std::uint64_t kMostMemory = std::uint64_t{8} << 30;

constexpr const char* kDescription =
    "Runs an RDMA operation between two processes, checks every byte at both ends, and measures\n"
    "it as perftest does. Start it twice with the same options, once with --role responder and\n"
    "once with --role requester.";

constexpr const char* kFooter =
    "\n"
    "Subcommands:\n"
    "  bring-up           check a device on its first day, in one process; it has its own --help\n"
    "\n"
    "Operations:\n"
    "  send, send-imm     the requester sends, without or with immediate data\n"
    "  recv               the responder sends, the requester receives\n"
    "  write, write-imm   the requester writes to the responder's memory\n"
    "  read               the requester reads the responder's memory\n"
    "  atomic             the requester compares and swaps, then fetches and adds, 8 bytes there\n"
    "  sync-event         the requester sets, adds to and gets an event that the responder waits "
    "for\n"
    "  multi-conn         as send, on 8 connections of one completion queue\n"
    "  burst              as send, one message a doorbell, then many (64 in flight, --batch 32)\n"
    "  put-signal         a write, then an add to a word that the responder polls; only with\n"
    "                     --initiator gpu\n"
    "  ordered            one connection reads data, then another one sends it; the engine orders\n"
    "                     the two, as a graph\n"
    "  copy               the device copies memory of this process, without a peer; only with\n"
    "                     --initiator gpu\n"
    "With --initiator gpu, at both ends, a kernel posts the operations to queues in the format of\n"
    "mlx5, and the card itself or an emulator carries them out (--rings): one warp for each\n"
    "connection, or for each lane of --shared-queue. Without a GPU, CPU threads run the device\n"
    "functions; log and report name which. Operations: send, recv, write, read, write-imm,\n"
    "send-imm, atomic, put-signal, copy.\n\n"
    "With --in-flight 1 it measures latency: the whole operation for a read, half a round trip\n"
    "for the others, because the peer answers with the same operation. With more in flight it\n"
    "measures bandwidth. The peer does not answer one-sided operations other than write.\n\n"
    "The two ends connect by an address (--cm), or by two files that each writes for the other.\n"
    "Exit status: 0 everything was right; 1 wrong data or an error; 2 an invalid command line;\n"
    "130 stopped by SIGINT or SIGTERM.\n\n"
    "Examples:\n"
    "  offload-rdma send --role responder --cm 10.0.0.1\n"
    "  offload-rdma send --role requester --cm 10.0.0.1 --size 1,4k,1m\n"
    "  offload-rdma read --role requester --local-descriptor a --remote-descriptor b\n"
    "      --in-flight 64 --size 64k --no-verify\n"
    "  offload-rdma copy --initiator gpu --size 1m --in-flight 16";

/// Indexed by Operation.
constexpr std::array kNames = {"send",     "recv",       "write",      "read",       "write-imm",
                               "send-imm", "atomic",     "sync-event", "multi-conn", "burst",
                               "ordered",  "put-signal", "copy"};
static_assert(kNames.size() == static_cast<std::size_t>(Operation::copy) + 1);

std::optional<Operation> operation_named(std::string_view name) {
  const auto* const found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Operation>(found - kNames.begin());
}

std::optional<std::vector<std::uint32_t>> read_sizes(const std::string& text) {
  return cli::read_sizes(text, 1, kLargest);
}

void add_rendezvous(cli::CommandLine& line, Options& options) {
  cli::add_text(line, "--rdma-device,--device DEVICE", options.path.device,
                "Use this RDMA device: a name, rdma:INDEX or a PCI address. Default: first")
      .default_str("");
  cli::add_text(line, "--gid ADDRESS", options.gid,
                "Use this address of the device. Default: an IPv4 one of RoCE v2, else IPv6");
  rdma::add_path_options(line, options.path);
  const auto cm = cli::add_text(line, "--cm ADDRESS", options.cm_address,
                                "Connect by librdmacm to the responder's address, at both ends");
  cli::add_integer<std::uint16_t>(line, "--port PORT", options.cm_port, 1, 65535, "Port for --cm")
      .needs(cm);
  const auto local = cli::add_text(line, "--local-descriptor FILE", options.local_descriptor,
                                   "Connect by files: write this one")
                         .excludes(cm);
  const auto remote =
      cli::add_text(line, "--remote-descriptor FILE", options.remote_descriptor,
                    "and read this one of the other end; both are removed at the end");
  local.needs(remote);
  remote.needs(local);
}

void add_work(cli::CommandLine& line, Options& options) {
  cli::add(line, "-s,--size BYTES", options.sizes, read_sizes,
           fmt::format("a list of sizes from 1 to {} bytes, such as 4096 or 1,4k,1m", kLargest),
           "Transfer messages of this size; with several sizes, one after the other")
      .default_str("8");
  cli::add_integer<std::uint64_t>(line, "-n,--iterations", options.iterations, 1, 1'000'000'000'000,
                                  "Run this many operations of each size, on each connection");
  cli::add_integer<std::uint32_t>(
      line, "--in-flight", options.in_flight, 1, 4096,
      "Keep this many operations in flight on a connection: 1 for latency");
  cli::add_integer<std::uint32_t>(
      line, "--batch", options.batch, 1, 4096,
      "Post this many operations with one doorbell; at most --in-flight");
  cli::add_integer<std::uint32_t>(line, "--connections", options.connections, 1, 1024,
                                  "Use this number of connections, on one completion queue");
  cli::add_integer<std::uint32_t>(line, "--shared-queue LANES", options.queue_lanes, 1, kMostLanes,
                                  "Post to each queue from this number of lanes: with --initiator "
                                  "gpu, for read, atomic, put-signal and copy");
  cli::add_integer<std::uint32_t>(line, "--inline", options.max_inline_data, 0, 1024,
                                  "Send messages of up to this many bytes in the work request");
  cli::add_flag(line, "--srq", options.shared_receives,
                "Receive the messages of all connections of this end into shared receives");
  cli::add_flag(line, "--event-driven", options.event_driven,
                "Sleep until a completion arrives, instead of polling");
  cli::add_integer<std::uint64_t>(line, "--seed", options.seed, 0, UINT64_MAX,
                                  "Generate the data from this seed");
  cli::add_clearing_flag(line, "--no-verify", options.verify,
                         "Neither generate nor check data: measure only the operations");
  cli::add_time(line, "--timeout", options.timeout, std::chrono::milliseconds(1),
                "Report an error if the peer does not connect, or nothing happens, for this time");
}

void add_output(cli::CommandLine& line, Options& options) {
  cli::add_text(line, "--output FILE", options.output,
                "Also write the results to this file, as JSON. Default: no file");
  cli::add_log_options(line, options.log);
}

/// The defaults of the operation.
void set_defaults(const cli::CommandLine& line, Options& options) {
  if (options.operation == Operation::burst) {
    if (!line.has("--in-flight")) options.in_flight = 64;
    if (!line.has("--batch")) options.batch = 32;
  }
  if (!line.has("--connections")) {
    if (options.operation == Operation::multi_conn) options.connections = 8;
    if (options.operation == Operation::ordered) options.connections = 2;
  }
}

const std::vector<std::uint32_t> kWord = {8};

bool works_on_a_word(Operation operation) noexcept {
  return operation == Operation::atomic || operation == Operation::sync_event;
}

bool needs_rc(Operation operation) noexcept {
  return operation == Operation::read || operation == Operation::ordered ||
         operation == Operation::put_signal || operation == Operation::copy ||
         works_on_a_word(operation);
}

bool one_at_a_time(Operation operation) noexcept {
  return operation == Operation::sync_event || operation == Operation::ordered;
}

bool has_device_functions(Operation operation) noexcept {
  constexpr std::array kWithout = {Operation::sync_event, Operation::multi_conn, Operation::burst,
                                   Operation::ordered};
  return std::ranges::find(kWithout, operation) == kWithout.end();
}

bool shares_a_queue(Operation operation) noexcept {
  return operation == Operation::read || operation == Operation::atomic ||
         operation == Operation::put_signal || operation == Operation::copy;
}

bool is_the_devices(Operation operation) noexcept {
  return operation == Operation::put_signal || operation == Operation::copy;
}

/// Like wrong_with(), for the capabilities of the initiator.
std::string wrong_with_initiator(const Options& options) {
  const auto name = name_of(options.operation);
  if (options.initiator == Initiator::cpu) {
    if (is_the_devices(options.operation)) {
      return fmt::format("{} is allowed only with --initiator gpu", name);
    }
    if (options.queue_lanes != 1) return "--shared-queue is allowed only with --initiator gpu";
    if (options.rings != Rings::automatic) return "--rings is allowed only with --initiator gpu";
    return {};
  }
  if (!has_device_functions(options.operation))
    return fmt::format("{} does not support --initiator gpu", name);
  if (options.shared_receives) return "--srq does not support --initiator gpu";
  if (options.batch != 1) return "--batch does not support --initiator gpu";
  if (options.rings == Rings::card && options.qp_type != rdma::QpType::rc)
    return "--rings card does not support --transport uc";
  if (options.queue_lanes == 1) return {};
  if (!shares_a_queue(options.operation))
    return fmt::format("{} does not support --shared-queue", name);
  if (options.in_flight % options.queue_lanes != 0) {
    return "--in-flight must be a multiple of --shared-queue";
  }
  return {};
}

/// The conflict between options; empty if there is none.
std::string wrong_with(const Options& options) {
  const bool meets = !options.cm_address.empty() || !options.local_descriptor.empty();
  if (is_alone(options.operation) && meets) {
    return fmt::format("{} has no peer to connect to", name_of(options.operation));
  }
  if (!is_alone(options.operation) && !meets) {
    return "--cm, or --local-descriptor and --remote-descriptor, is required for the peer";
  }
  if (options.qp_type == rdma::QpType::uc && needs_rc(options.operation)) {
    return fmt::format("UC does not support {}", name_of(options.operation));
  }
  if (works_on_a_word(options.operation) && options.sizes != kWord) {
    return fmt::format("{} allows only --size 8", name_of(options.operation));
  }
  if (one_at_a_time(options.operation) && options.in_flight != 1) {
    return fmt::format("{} allows only --in-flight 1", name_of(options.operation));
  }
  if (options.operation == Operation::ordered && options.connections != 2) {
    return "ordered allows only --connections 2";
  }
  if (options.operation == Operation::burst && options.batch == 1) {
    return "burst needs a --batch of more than 1";
  }
  if (auto wrong = wrong_with_initiator(options); !wrong.empty()) return wrong;
  if (options.batch > options.in_flight) return "--batch must be at most --in-flight";
  const auto largest = *std::ranges::max_element(options.sizes);
  if (7ULL * options.connections * (options.in_flight + 4) * largest > kMostMemory) {
    return "--size, --in-flight and --connections need too much memory; at most 8 GiB are allowed";
  }
  try {
    if (!options.gid.empty()) static_cast<void>(rdma::parse_gid(options.gid));
  } catch (const core::Error& error) {
    return std::string("--gid: ") + error.what();
  }
  return {};
}

}  // namespace

std::string_view name_of(Operation operation) noexcept {
  return kNames[static_cast<std::size_t>(operation)];
}

std::string_view name_of(Role role) noexcept {
  return role == Role::requester ? "requester" : "responder";
}

bool is_alone(Operation operation) noexcept {
  return operation == Operation::copy;
}

std::string agreed(const Options& options) {
  std::string device;
  if (options.initiator == Initiator::gpu) device = " --initiator gpu";
  if (options.queue_lanes != 1) device += fmt::format(" --shared-queue {}", options.queue_lanes);
  return fmt::format(
      "{} {} --size {} --iterations {} --in-flight {} --connections {} --seed {}{}{}",
      name_of(options.operation), name_of(options.qp_type), fmt::join(options.sizes, ","),
      options.iterations, options.in_flight, options.connections, options.seed,
      options.verify ? "" : " --no-verify", device);
}

std::variant<Options, cli::Leave> parse_options(int argc, const char* const* argv) {
  Options options;
  std::string role;
  std::string transport = "rc";
  std::string initiator = "cpu";
  std::string rings = "auto";
  cli::CommandLine line("offload-rdma", kDescription, kFooter);
  cli::add(line, "operation OPERATION", options.operation, operation_named,
           "one of " + cli::listed({kNames.begin(), kNames.end()}), "Run this operation, see below")
      .required();
  cli::add_choice(line, "--role", role, {"requester", "responder"},
                  "Take this role; required except for copy");
  add_rendezvous(line, options);
  cli::add_choice(line, "--transport", transport, {"rc", "uc"},
                  "Use a reliable or an unreliable connection");
  cli::add_choice(line, "--initiator", initiator, {"cpu", "gpu"},
                  "Issue operations from tasks of the engine, or from a kernel, see below");
  cli::add_choice(line, "--rings", rings, {"auto", "card", "proxy"},
                  "With --initiator gpu: post to rings that an mlx5 card itself reads, or to rings "
                  "of an emulator; auto: the card's if it has them");
  add_work(line, options);
  add_output(line, options);
  if (auto leave = line.parse(argc, argv)) return *leave;
  if (is_alone(options.operation) == line.has("--role")) {
    return line.refuse(fmt::format("{}: --role is {}", name_of(options.operation),
                                   is_alone(options.operation) ? "not allowed" : "required"));
  }
  options.role = role == "responder" ? Role::responder : Role::requester;
  options.qp_type = transport == "uc" ? rdma::QpType::uc : rdma::QpType::rc;
  options.initiator = initiator == "gpu" ? Initiator::gpu : Initiator::cpu;
  if (rings != "auto") options.rings = rings == "card" ? Rings::card : Rings::proxy;
  set_defaults(line, options);
  if (const auto wrong = wrong_with(options); !wrong.empty()) {
    return line.refuse(wrong);
  }
  return options;
}

}  // namespace offload::rdma_tool
