#include "apps/client/options.hpp"

#include "cli/options.hpp"

namespace offload::client {
namespace {

constexpr std::uint32_t kLongestMessage = std::uint32_t{16} << 20;

constexpr const char* kDescription =
    "Load client: sends requests to an offload server, checks every byte of every response, and\n"
    "ends with throughput and latency.";

constexpr const char* kFooter =
    "\nBYTES may end in k, m or g (binary multiples), SECONDS in us, ms, s, m or h.\n"
    "Exit status: 0 every response was right; 1 a wrong, missing or refused response, or a\n"
    "connection error; 2 a wrong command line; 130 stopped by SIGINT or SIGTERM.\n\n"
    "Examples:\n"
    "  offload-client -s 127.0.0.1 -t 4 -i 100000 -m hello -e olleh\n"
    "  offload-client -s ::1 -p 7000 --size 4k --duration 10s --json result.json";

void add_target(cli::CommandLine& line, Options& options) {
  cli::add_text(line, "-s,--server-ip-address", options.server_address,
                "The server: a name, an IPv4 or an IPv6 address")
      .type_name("ADDRESS")
      .required();
  cli::add_integer<std::uint16_t>(line, "-p,--server-ip-port", options.server_port, 1, 65535,
                                  "The server's TCP port")
      .type_name("PORT");
  cli::add_time(line, "--connect-timeout", options.connect_timeout, core::Duration{},
                "How long to keep trying until all are connected")
      .default_str("10");
  cli::add_time(line, "--response-timeout", options.response_timeout, std::chrono::milliseconds(1),
                "An error if nothing comes for so long while responses are due")
      .default_str("30");
}

void add_tls(cli::CommandLine& line, Options& options) {
  const auto tls =
      cli::add_flag(line, "--tls", options.tls, "Speak TLS 1.3 and check the server's certificate");
  cli::add_text(line, "--tls-ca", options.tls_ca,
                "The authorities of the server's certificate, PEM. Default: the system's")
      .type_name("FILE")
      .needs(tls);
  cli::add_text(line, "--tls-server-name", options.tls_server_name,
                "Whom the server's certificate has to be for. Default: the server's ADDRESS")
      .type_name("NAME")
      .needs(tls);
  const auto certificate =
      cli::add_text(line, "--tls-certificate", options.tls_certificate,
                    "The client's certificate, for a server that asks for one, PEM. Default: none")
          .type_name("FILE")
          .needs(tls);
  const auto key = cli::add_text(line, "--tls-key", options.tls_key,
                                 "The certificate's private key, PEM, which others cannot read")
                       .type_name("FILE")
                       .needs(certificate);
  certificate.needs(key);
}

void add_amount(cli::CommandLine& line, Options& options) {
  cli::add_integer<std::uint32_t>(line, "-t,--thread-count", options.thread_count, 1, 1024,
                                  "Threads");
  cli::add_integer<std::uint32_t>(line, "--connections", options.connections, 1, 65536,
                                  "Connections of each thread");
  const auto count =
      cli::add_integer<std::uint64_t>(line, "-i,--iteration-count", options.iteration_count, 1,
                                      1'000'000'000'000'000, "Requests per connection");
  cli::add_time(line, "--duration", options.duration, std::chrono::milliseconds(1),
                "Send for so long, instead of a number of requests")
      .excludes(count);
  cli::add_integer<std::uint32_t>(line, "--max-concurrent-messages",
                                  options.max_concurrent_messages, 1, 65536,
                                  "Requests in flight per connection");
}

void add_content(cli::CommandLine& line, Options& options) {
  const auto message =
      cli::add_text(line, "-m,--message-string", options.message, "What every request says")
          .type_name("TEXT")
          .default_str(options.message);
  cli::add(
      line, "-e,--expected-response", options.expected_response,
      [](const std::string& text) { return std::optional(text); }, "a text",
      "What every response must say, whatever --service is. Default: computed")
      .type_name("TEXT")
      .needs(message);
  cli::add_size(
      line, "--size", options.size, 0, kLongestMessage,
      "Random requests of so many bytes (0 to 16m) instead of -m; the responses are computed")
      .excludes(message);
  cli::add(
      line, "--service", options.service,
      [](const std::string& name) { return service_named(name); },
      "one of " + cli::listed(service_names()),
      "What the server was told to do with requests: " + cli::listed(service_names()))
      .type_name("NAME")
      .default_str(std::string(name_of(options.service)));
}

void add_output(cli::CommandLine& line, Options& options) {
  cli::add_text(line, "--json", options.json_file,
                "Also write the results to this file, as JSON. Default: no file")
      .type_name("FILE");
  cli::add_log_level(line, options.log_level);
}

}  // namespace

std::variant<Options, cli::Leave> parse_options(int argc, const char* const* argv) {
  Options options;
  cli::CommandLine line("offload-client", kDescription, kFooter);
  add_target(line, options);
  add_tls(line, options);
  add_amount(line, options);
  add_content(line, options);
  add_output(line, options);
  if (auto leave = line.parse(argc, argv)) return *leave;
  return options;
}

}  // namespace offload::client
