#include "apps/server/options.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "cli/options.hpp"
#include "comch/address.hpp"
#include "core/cpu.hpp"
#include "core/units.hpp"
#include "kernels/services.hpp"
#include "protocol/control.hpp"

namespace offload::server {
namespace {

constexpr std::uint32_t kMostThreads = 256;
/// More than that for one channel's memory is a mistake in the command line.
constexpr std::uint64_t kMostChannelBytes = std::uint64_t{4} << 30;

/// Less holds no client's rest of a round.
constexpr std::uint64_t kLeastClientMemory = std::uint64_t{1} << 20;
constexpr std::uint32_t kMostClients = 1'000'000'000;

constexpr const char* kDescription =
    "Offload server (DPU): accepts TCP clients, forwards their requests to the worker that "
    "attached\n"
    "to --comch, and sends the responses back in order. It listens at once, and accepts clients "
    "once "
    "a worker is there.";

constexpr const char* kFooter =
    "\nBYTES may end in k, m or g (binary multiples), SECONDS in us, ms, s, m or h.\n"
    "SIGINT or SIGTERM: answers what it has read, tells the workers, leaves; a second one leaves "
    "at\n"
    "once. SIGHUP: rereads --config and the files that it names. Exit status: 0 after a shutdown; "
    "1 an error; 2 a wrong "
    "command line.\n\n"
    "Example:\n"
    "  offload-server -p 12345 --cpu 2 --cpu 3 --max-message-length 64k";

constexpr const char* kServiceNames = "a name of 1 to 32 of a-z, 0-9, - and _";

std::optional<std::string> read_service(const std::string& text) {
  return protocol::is_service_name(text) ? std::optional(text) : std::nullopt;
}

std::optional<Listen> read_listen(const std::string& text) {
  Listen listen{};
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), listen.port);
  const auto digits = static_cast<std::size_t>(rest - text.data());
  if (error != std::errc{} || digits == text.size() || text[digits] != '=') return std::nullopt;
  listen.service = text.substr(digits + 1);
  return read_service(listen.service) ? std::optional(listen) : std::nullopt;
}

/// Where clients connect to, and what for.
void add_ports(cli::CommandLine& line, Options& options) {
  const auto port = cli::add_integer<std::uint16_t>(
                        line, "-p,--server-listen-port", options.listen_port, 0, 65535,
                        "TCP port for clients; 0: any free one, named in the log")
                        .type_name("PORT");
  std::vector<std::string> services;
  for (const auto name : kernels::service_names()) services.emplace_back(name);
  const auto service =
      cli::add(
          line, "--service", options.service, read_service, kServiceNames,
          fmt::format("What is done to each request: the name of a service that the worker has, of "
                      "a module (docs/reference/services.md) or built in: {}",
                      cli::listed(services)))
          .type_name("NAME")
          .default_str(options.service);
  const auto take_listen = [&options](const std::string& text) {
    const auto listen = read_listen(text);
    if (listen) options.listens.push_back(*listen);
    return listen.has_value();
  };
  cli::add_values(line, "--listen", take_listen, "a port, = and the name of a service",
                  "Instead of -p and --service: a TCP port with a service of its own, which has "
                  "its own I/O threads and channels. May be repeated")
      .type_name("PORT=NAME")
      .excludes(port)
      .excludes(service);
}

void add_tcp(cli::CommandLine& line, Options& options) {
  add_ports(line, options);
  cli::add_text(line, "--listen-address", options.listen_address,
                "Where clients connect to: a name, with all its addresses, an IPv4 or an IPv6 "
                "address. Anything but loopback opens the server to the network")
      .type_name("ADDRESS")
      .default_str(options.listen_address);
  const auto threads = cli::add_integer<std::uint32_t>(
      line, "--threads", options.threads, 1, kMostThreads,
      "I/O threads, each with its own connections and channel; a new "
      "connection goes to that with the fewest. So many for each --listen");
  std::vector<std::string> cpus;
  for (const int cpu : core::allowed_cpus()) cpus.push_back(std::to_string(cpu));
  const auto take_cpu = [&options, cpus](const std::string& text) {
    const bool there = std::find(cpus.begin(), cpus.end(), text) != cpus.end();
    if (there) options.cpus.push_back(std::stoi(text));
    return there;
  };
  cli::add_values(line, "--cpu", take_cpu, "a processor of this process: " + cli::listed(cpus),
                  "Instead of --threads: one I/O thread on this processor, its memory near it. "
                  "May be repeated")
      .type_name("CPU")
      .excludes(threads);
}

void add_tls(cli::CommandLine& line, Options& options) {
  const auto certificate =
      cli::add_text(line, "--tls-certificate", options.tls_certificate,
                    "Clients speak TLS 1.3: the server's certificate and those between it and its "
                    "authority, PEM. Default: they speak plain TCP")
          .type_name("FILE");
  const auto key = cli::add_text(line, "--tls-key", options.tls_key,
                                 "The certificate's private key, PEM, which others cannot read")
                       .type_name("FILE")
                       .needs(certificate);
  certificate.needs(key);
  cli::add_text(line, "--tls-client-ca", options.tls_client_ca,
                "Clients need a certificate that an authority in this file has signed, PEM. "
                "Default: they need none")
      .type_name("FILE")
      .needs(certificate);
}

void add_channel(cli::CommandLine& line, Options& options) {
  comch::add_address_options(line, options.comch, options.comch_security,
                             "Where the worker attaches");
  comch::add_allow_option(line, options.comch_security);
  comch::add_path_options(line, options.comch_path);
  cli::add_integer<std::uint32_t>(
      line, "--max-concurrent-messages", options.max_concurrent_messages, 1, kernels::kMaxDepth,
      "Slots of each thread's channel to the worker, rounded up to a "
      "power of two. A request in flight takes one; short ones share "
      "them, up to 32 each. Clients may have more under way: they wait");
  cli::add_size(line, "--max-message-length", options.max_message_length, 0,
                kernels::kMaxMessageLength, "Longest request")
      .default_str(std::to_string(options.max_message_length));
  cli::add_size(line, "--max-response-length", options.max_response_length, kernels::kLongestDigest,
                kernels::kMaxMessageLength,
                "Longest response to a request that is shorter. Beyond the default, short messages "
                "share slots with fewer others")
      .default_str(std::to_string(options.max_response_length));
}

/// The complaint about ports and threads, if there is one.
std::optional<std::string> wrong_ports(const Options& options) {
  const std::size_t ports = options.listens.size();
  if (ports > protocol::kMaxServices) {
    return fmt::format("--listen: said {} times; {} times is allowed", ports,
                       protocol::kMaxServices);
  }
  const std::size_t threads = options.cpus.empty() ? options.threads : options.cpus.size();
  if (ports * threads <= kMostThreads) return std::nullopt;
  return fmt::format("--listen: {} ports with {} I/O threads each; {} threads are allowed", ports,
                     threads, kMostThreads);
}

void add_times(cli::CommandLine& line, Options& options) {
  cli::add_time(line, "--worker-timeout", options.worker_timeout, core::Duration{},
                "Without a worker for so long, requests are answered with an error; a worker that "
                "answers nothing for so long (1 s at least) is stuck, and loses its channels")
      .default_str("10");
  cli::add_time(
      line, "--request-timeout", options.request_timeout, core::Duration{},
      "A request that a worker has not answered for so long is answered with an error; 0: "
      "never")
      .default_str("30");
  cli::add_time(line, "--shutdown-timeout", options.shutdown_timeout, core::Duration{},
                "A shutdown takes no longer than this")
      .default_str("5");
  cli::add_time(line, "--spin", options.spin, core::Duration{},
                "How long a thread polls for due responses before it sleeps")
      .default_str("50us");
}

void add_stall_limit(cli::CommandLine& line, Options& options) {
  cli::add_time(
      line, "--stall-limit", options.stall_limit, core::Duration{},
      "A turn of an I/O thread that takes so long is counted, and logged with what it did; "
      "0: none")
      .default_str("100ms");
}

void add_clients(cli::CommandLine& line, ClientLimits& limits) {
  const auto read_bytes = [](const std::string& text) -> std::optional<std::uint64_t> {
    const auto bytes = core::parse_size(text);
    return bytes && *bytes >= kLeastClientMemory ? bytes : std::nullopt;
  };
  cli::add(line, "--client-memory", limits.memory, read_bytes, "a size from 1m, such as 512m or 4g",
           "What all clients together may hold in unfinished requests, unread responses and TLS; "
           "beyond it those that hold the most are disconnected")
      .type_name("BYTES")
      .default_str("a quarter of what the process can have");
  cli::add_integer<std::uint32_t>(line, "--max-clients", limits.connections, 0, kMostClients,
                                  "Clients at a time; 0: as many as files may be open");
  cli::add_integer<std::uint32_t>(line, "--max-clients-per-address", limits.per_address, 0,
                                  kMostClients,
                                  "Of one IPv4 address or one /64 of IPv6; 0: three quarters of "
                                  "all");
  cli::add_time(line, "--frame-timeout", limits.frame_timeout, core::Duration{},
                "A client whose request has begun and not come whole for so long is "
                "disconnected; 0: never")
      .default_str("30");
  cli::add_time(line, "--idle-timeout", limits.idle_timeout, core::Duration{},
                "A client that has sent no request for so long is disconnected; 0: never")
      .default_str("0");
  cli::add_time(line, "--client-timeout", limits.output_timeout, core::Duration{},
                "A client that has not taken within this time what it was owed at its beginning "
                "is closed; 0: never")
      .default_str("120");
}

}  // namespace

std::variant<Options, cli::Leave> parse_options(int argc, const char* const* argv) {
  Options options;
  cli::CommandLine line("offload-server", kDescription, kFooter);
  add_tcp(line, options);
  add_tls(line, options);
  add_channel(line, options);
  add_times(line, options);
  add_clients(line, options.clients);
  cli::add_flag(line, "--shutdown-together", options.shutdown_together,
                "A worker that leaves ends the server, and the server's end its workers: the "
                "reference application's way");
  telemetry::add_metrics_option(line, options.metrics);
  telemetry::add_admin_option(line, options.admin);
  add_stall_limit(line, options);
  cli::add_log_options(line, options.log);
  cli::add_configuration(line, options.configuration);
  cli::add_foreign(line, "-d,--device-id",
                   "here --comch rdma:ADDRESS:PORT names the device by its address");
  cli::add_foreign(line, "-r,--representor-id",
                   "here --comch names where the worker attaches, and no representor");
  if (auto leave = line.parse(argc, argv)) return *leave;

  const std::set<int> distinct(options.cpus.begin(), options.cpus.end());
  if (distinct.size() != options.cpus.size()) {
    return cli::Leave{cli::kUsageError,
                      "offload-server: --cpu: a processor is named twice; allowed is one I/O "
                      "thread on each (--help lists what is allowed)"};
  }
  if (options.listens.empty()) options.listens.push_back({options.listen_port, options.service});
  if (const auto wrong = wrong_ports(options)) return line.refuse(*wrong);
  std::uint32_t depth = 1;
  while (depth < options.max_concurrent_messages) depth *= 2;
  options.max_concurrent_messages = depth;
  const auto bytes =
      kernels::make_layout(depth, options.max_message_length, options.max_response_length).bytes();
  if (bytes > kMostChannelBytes) {
    return cli::Leave{
        cli::kUsageError,
        fmt::format("offload-server: --max-concurrent-messages times --max-message-length takes {} "
                    "bytes a thread; {} are allowed (--help lists what is allowed)",
                    bytes, kMostChannelBytes)};
  }
  if (options.configuration.print) return cli::Leave{0, cli::configuration_text(line)};
  options.configuration.take(line);
  options.configuration.argument_count = argc;
  options.configuration.arguments = argv;
  return options;
}

std::vector<int> io_thread_cpus(const Options& options) {
  const auto own = options.cpus.empty() ? std::vector<int>(options.threads, -1) : options.cpus;
  std::vector<int> cpus;
  for (std::size_t i = 0; i < options.listens.size(); ++i) {
    cpus.insert(cpus.end(), own.begin(), own.end());
  }
  return cpus;
}

std::vector<std::string> services_of(const Options& options) {
  std::vector<std::string> services;
  for (const Listen& listen : options.listens) services.push_back(listen.service);
  return services;
}

}  // namespace offload::server
