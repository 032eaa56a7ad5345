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
    "Offload server (DPU): accepts TCP clients, forwards their requests to the worker attached to\n"
    "--comch, and returns the responses in order. It listens immediately, and accepts clients\n"
    "once a worker is attached.";

constexpr const char* kFooter =
    "\nBYTES may end in k, m or g (binary multiples), SECONDS in us, ms, s, m or h.\n"
    "SIGINT or SIGTERM: answers the requests that it has read, detaches the workers and exits; a\n"
    "second one exits immediately. SIGHUP: rereads --config and the files that it names.\n"
    "Exit status: 0 after a shutdown; 1 an error; 2 an invalid command line.\n\n"
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
      line, "-p,--server-listen-port PORT", options.listen_port, 0, 65535,
      "Listen on this TCP port; 0: any free one, named in the log");
  std::vector<std::string> services;
  for (const auto name : kernels::service_names()) services.emplace_back(name);
  const auto service =
      cli::add(line, "--service NAME", options.service, read_service, kServiceNames,
               fmt::format("Process requests with this service of the worker, "
                           "from a module (docs/reference/services.md) or built in: {}",
                           cli::listed(services)));
  cli::add_each(line, "--listen PORT=NAME", options.listens, read_listen,
                "PORT=NAME, a port and the name of a service",
                "Instead of -p and --service: listen on this TCP port for this service, with "
                "separate I/O threads and channels. May be repeated")
      .excludes(port)
      .excludes(service);
}

void add_tcp(cli::CommandLine& line, Options& options) {
  add_ports(line, options);
  cli::add_text(line, "--listen-address ADDRESS", options.listen_address,
                "Listen on this address: an IPv4 or IPv6 address, or a name, for all its "
                "addresses. Any address other than loopback opens the server to the network");
  cli::add_each(line, "--proxy-from CIDR", options.proxies, &net::AddressRange::parse,
                "an IPv4 or IPv6 address, or a prefix such as 10.0.0.0/8",
                "Expect a PROXY header (version 2) at the start of each connection from these "
                "addresses, and treat the connection as one of the client that it names. May be "
                "repeated. Default: clients connect directly");
  const auto threads = cli::add_integer<std::uint32_t>(
      line, "--threads", options.threads, 1, kMostThreads,
      "Run this number of I/O threads, for each --listen, each with its own connections and "
      "channel; a new connection goes to the thread with the fewest");
  std::vector<std::string> cpus;
  for (const int cpu : core::allowed_cpus()) cpus.push_back(std::to_string(cpu));
  const auto read_cpu = [cpus](const std::string& text) {
    const bool there = std::ranges::find(cpus, text) != cpus.end();
    return there ? core::parse_number<int>(text) : std::nullopt;
  };
  cli::add_each(line, "--cpu CPU", options.cpus, read_cpu,
                "an allowed processor: " + cli::listed(cpus),
                "Instead of --threads: run one I/O thread on this processor, with its memory on "
                "the same NUMA node. May be repeated")
      .excludes(threads);
}

void add_tls(cli::CommandLine& line, Options& options) {
  const auto certificate =
      cli::add_text(line, "--tls-certificate FILE", options.tls_certificate,
                    "Require TLS 1.3 of clients: the server's certificate, followed by "
                    "intermediate certificates, PEM. Default: plain TCP");
  const auto key = cli::add_text(line, "--tls-key FILE", options.tls_key,
                                 "The certificate's private key, PEM; not accessible to others")
                       .needs(certificate);
  certificate.needs(key);
  const auto authorities =
      cli::add_text(line, "--tls-client-ca FILE", options.tls_client_ca,
                    "Require a client certificate signed by an authority in this file, PEM. "
                    "Default: no client certificate")
          .needs(certificate);
  cli::add_text(line, "--tls-client-crl FILE", options.tls_client_crl,
                "Refuse the client certificates that the revocation lists in this file, PEM, "
                "revoke. Each authority of a client needs a list. Default: no list")
      .needs(authorities);
}

void add_channel(cli::CommandLine& line, Options& options) {
  comch::add_address_options(line, options.comch, options.comch_security,
                             "Accept workers at this address");
  comch::add_allow_option(line, options.comch_security);
  comch::add_path_options(line, options.comch_path);
  cli::add_integer<std::uint32_t>(
      line, "--max-concurrent-messages", options.max_concurrent_messages, 1, kernels::kMaxDepth,
      "Give each thread's channel to the worker this number of slots, rounded up to a power of "
      "two. A request in flight takes one slot; up to 32 short requests share one. Further "
      "requests of clients wait");
  cli::add_size(line, "--max-message-length", options.max_message_length, 0,
                kernels::kMaxMessageLength, "Accept requests of up to this length");
  cli::add_size(line, "--max-response-length", options.max_response_length, kernels::kLongestDigest,
                kernels::kMaxMessageLength,
                "Allow responses of up to this length, or of up to the length of the request if "
                "that is longer. Above the default, fewer short messages share a slot");
}

/// Returns whether both texts name, or include, the same address of this machine, as far as the
/// texts show it: names are not resolved.
bool overlap(std::string_view one, std::string_view other) {
  const auto is_v6 = [](std::string_view text) { return text.find(':') != std::string_view::npos; };
  // The listener on :: takes IPv4, too.
  const auto includes = [&](std::string_view text, std::string_view it) {
    return text == "::" || text == "[::]" || (text == "0.0.0.0" && !is_v6(it));
  };
  const auto is_loopback = [](std::string_view text) {
    return text == "localhost" || text == "127.0.0.1";
  };
  return one == other || includes(one, other) || includes(other, one) ||
         (is_loopback(one) && is_loopback(other));
}

/// Returns the error about an option whose address has one of the clients' ports, if there is one.
std::optional<std::string> taken_port(const Options& options, std::string_view name,
                                      std::string_view host, std::uint16_t port) {
  const bool is_taken = std::ranges::any_of(
      options.listens, [&](const Listen& listen) { return listen.port == port && port != 0; });
  if (!is_taken || !overlap(options.listen_address, host)) return std::nullopt;
  return fmt::format("{}: {}:{} is a port for clients (-p or --listen); choose another one", name,
                     host, port);
}

/// The complaint about ports and threads, if there is one.
std::optional<std::string> wrong_ports(const Options& options) {
  const std::size_t ports = options.listens.size();
  std::set<std::uint16_t> distinct;
  for (const Listen& listen : options.listens) {
    if (listen.port == 0 || distinct.insert(listen.port).second) continue;
    return fmt::format("--listen: port {} is given twice; each service needs its own port",
                       listen.port);
  }
  if (options.metrics) {
    const auto& [host, port] = *options.metrics;
    if (auto wrong = taken_port(options, "--metrics", host, port)) return wrong;
  }
  const auto comch = comch::Address::parse(options.comch);
  if (auto wrong = taken_port(options, "--comch", comch.host, comch.port)) return wrong;
  if (ports > protocol::kMaxServices) {
    return fmt::format("--listen: given {} times; at most {} times are allowed", ports,
                       protocol::kMaxServices);
  }
  const std::size_t threads = options.cpus.empty() ? options.threads : options.cpus.size();
  if (ports * threads <= kMostThreads) return std::nullopt;
  return fmt::format("--listen: {} ports with {} I/O threads each; at most {} threads are allowed",
                     ports, threads, kMostThreads);
}

void add_times(cli::CommandLine& line, Options& options) {
  cli::add_time(line, "--worker-timeout", options.worker_timeout, core::Duration{},
                "Refuse requests after this time without a worker; treat a worker that answers "
                "nothing for this time (at least 1 s) as stuck, and take its channels away");
  cli::add_time(
      line, "--request-timeout", options.request_timeout, core::Duration{},
      "Answer a request with an error if a worker has not answered it within this time; 0: never");
  cli::add_time(line, "--shutdown-timeout", options.shutdown_timeout, core::Duration{},
                "Limit a shutdown to this time");
  cli::add_time(line, "--spin", options.spin, core::Duration{},
                "Poll for due responses for this time before an I/O thread sleeps");
}

void add_log_limits(cli::CommandLine& line, Options& options) {
  cli::add_time(line, "--slow-request", options.slow_request, core::Duration{},
                "Count and log each request that takes at least this time, from the arrival of its "
                "last bytes until its response is given to the client's socket; 0: none");
  cli::add_time(line, "--stall-limit", options.stall_limit, core::Duration{},
                "Count and log each turn of an I/O thread that takes at least this time; 0: none");
}

void add_clients(cli::CommandLine& line, ClientLimits& limits) {
  const auto read_bytes = [](const std::string& text) -> std::optional<std::uint64_t> {
    const auto bytes = core::parse_size(text);
    return bytes && *bytes >= kLeastClientMemory ? bytes : std::nullopt;
  };
  cli::add(line, "--client-memory BYTES", limits.memory, read_bytes,
           "a size from 1m, such as 512m or 4g",
           "Limit the memory that all clients together use for unfinished requests, unread "
           "responses and TLS; above it, disconnect the clients that use the most")
      .default_str("a quarter of the memory that the process can have");
  cli::add_integer<std::uint32_t>(
      line, "--max-clients", limits.connections, 0, kMostClients,
      "Allow this number of clients at a time; 0: as many as the limit of open files allows");
  cli::add_integer<std::uint32_t>(
      line, "--max-clients-per-address", limits.per_address, 0, kMostClients,
      "Allow this number of clients of one IPv4 address or one IPv6 /64; 0: three quarters of all");
  cli::add_time(
      line, "--frame-timeout", limits.frame_timeout, core::Duration{},
      "Disconnect a client that has sent only a part of a request for this time; 0: never");
  cli::add_time(line, "--idle-timeout", limits.idle_timeout, core::Duration{},
                "Disconnect a client that has sent no request for this time; 0: never");
  cli::add_time(line, "--client-timeout", limits.output_timeout, core::Duration{},
                "Disconnect a client that has not read, within this time, the data pending when it "
                "began; 0: never");
}

}  // namespace

std::variant<Options, cli::Leave> parse_options(int argc, const char* const* argv) {
  Options options;
  cli::CommandLine line("offload-server", kDescription, kFooter);
  line.begin_group("Ports for clients");
  add_tcp(line, options);
  add_tls(line, options);
  line.begin_group("Workers and their channels");
  add_channel(line, options);
  line.begin_group("Time limits");
  add_times(line, options);
  line.begin_group("Limits of clients");
  add_clients(line, options.clients);
  line.begin_group("Operation");
  cli::add_flag(line, "--shutdown-together", options.shutdown_together,
                "Shut down with the worker: a worker that shuts down ends the server, and the "
                "server ends its workers, as in the reference application");
  telemetry::add_metrics_option(line, options.metrics);
  telemetry::add_admin_option(line, options.admin);
  add_log_limits(line, options);
  cli::add_log_options(line, options.log);
  cli::add_configuration(line, options.configuration);
  cli::add_foreign(line, "-d,--device-id",
                   "use --comch rdma:ADDRESS:PORT, whose address names the device");
  cli::add_foreign(line, "-r,--representor-id",
                   "use --comch, which names the address where workers attach, not a representor");
  if (auto leave = line.parse(argc, argv)) return *leave;

  const std::string& address = options.listen_address;
  const std::size_t colon = address.rfind(':');
  const bool is_plain = colon != std::string::npos && address.find(':') == colon;
  if (is_plain || address.find("]:") != std::string::npos) {
    return line.refuse(fmt::format(
        "--listen-address: '{}' has a port; name the port with -p: --listen-address {} -p {}",
        address, address.substr(0, colon), address.substr(colon + 1)));
  }
  const std::set<int> distinct(options.cpus.begin(), options.cpus.end());
  if (distinct.size() != options.cpus.size()) {
    return line.refuse(
        "--cpu: a processor is given twice; at most one I/O thread is allowed on each");
  }
  if (options.listens.empty()) options.listens.push_back({options.listen_port, options.service});
  if (const auto wrong = wrong_ports(options)) return line.refuse(*wrong);
  std::uint32_t depth = 1;
  while (depth < options.max_concurrent_messages) depth *= 2;
  options.max_concurrent_messages = depth;
  const auto bytes =
      kernels::make_layout(depth, options.max_message_length, options.max_response_length).bytes();
  if (bytes > kMostChannelBytes) {
    return line.refuse(
        fmt::format("--max-concurrent-messages times --max-message-length needs {} bytes for each "
                    "thread; at most {} are allowed",
                    bytes, kMostChannelBytes));
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
