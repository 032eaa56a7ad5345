#include "apps/client/options.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "apps/client/contradictions.hpp"
#include "cli/options.hpp"

namespace offload::client {
namespace {

constexpr double kLowestRate = 0.001;
constexpr double kHighestRate = 1e9;
constexpr std::uint32_t kDeepest = 65536;
/// Seconds until --start-at: nobody waits longer, and a time in milliseconds is refused.
constexpr double kLongestWait = 86'400;
/// Of a request by UDP, where what is lost is no fault of anybody's.
constexpr core::Duration kDatagramTimeout = std::chrono::seconds(1);

constexpr const char* kDescription =
    "Load client: sends requests to an offload server, checks every byte of every response, and\n"
    "ends with throughput and latency.";

constexpr const char* kFooter =
    "\nBYTES may end in k, m or g (binary multiples), SECONDS in us, ms, s, m or h, RATE "
    "(requests\n"
    "a second of all threads) in k or m (thousands and millions).\n"
    "Exit status: 0 every response was right; 1 a wrong, missing or refused response, a "
    "connection\n"
    "error, or a search that found no rate; 2 a wrong command line; 3 the server did not keep up\n"
    "with --rate or --schedule; 4 this client was too late to tell; 5 there were too few requests\n"
    "to tell; 130 stopped by SIGINT or SIGTERM.\n\n"
    "Examples:\n"
    "  offload-client -s 127.0.0.1 -t 4 -i 100000 -m hello -e olleh\n"
    "  offload-client -s ::1 -p 7000 --mix 64:90,64k:10 --rate 20k --arrivals poisson \\\n"
    "    --warmup 2s --duration 10s --output result.json\n"
    "  offload-client -s ::1 --size 64 --connections 16 --duration 2s --search p99:500us";

std::optional<double> read_rate(const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{}) return std::nullopt;
  const std::string_view suffix(rest, static_cast<std::size_t>(end - rest));
  if (suffix == "k") value *= 1e3;
  if (suffix == "m") value *= 1e6;
  if (!suffix.empty() && suffix != "k" && suffix != "m") return std::nullopt;
  if (!std::isfinite(value) || value < kLowestRate || value > kHighestRate) return std::nullopt;
  return value;
}

std::optional<double> read_depth(const std::string& text) {
  const auto value = read_rate(text);
  if (!value || *value > kDeepest || *value != std::floor(*value)) return std::nullopt;
  return value;
}

/// Of "rate=1k,2k,4k" or "depth=1,16,128".
std::optional<Scan> read_scan(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) return std::nullopt;
  const std::string what = text.substr(0, equals);
  if (what != "rate" && what != "depth") return std::nullopt;
  Scan scan{what == "rate" ? Scan::Of::rate : Scan::Of::depth, {}};
  for (std::size_t at = equals + 1; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, end - at);
    const auto value = scan.of == Scan::Of::rate ? read_rate(word) : read_depth(word);
    if (!value) return std::nullopt;
    scan.values.push_back(*value);
    at = end + 1;
  }
  return scan;
}

/// Of "p99:500us".
std::optional<Search> read_search(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || text[0] != 'p') return std::nullopt;
  double percent = 0;
  const auto [rest, error] = std::from_chars(text.data() + 1, text.data() + colon, percent);
  if (error != std::errc{} || rest != text.data() + colon) return std::nullopt;
  const auto bound = cli::read_time(text.substr(colon + 1), std::chrono::microseconds(1));
  if (!bound || !(percent > 0 && percent < 100)) return std::nullopt;
  return Search{text.substr(0, colon), percent / 100, *bound};
}

std::optional<std::optional<double>> read_unix_time(const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || rest != end || !std::isfinite(value) || value < 0) return {};
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  if (value > now.count() + kLongestWait) return {};
  return value;
}

/// An optional value that is read by `read`.
template <class Value, class Read>
cli::Option add_optional(cli::CommandLine& line, const std::string& names,
                         std::optional<Value>& value, Read read, const std::string& allowed,
                         const std::string& description) {
  const auto take = [&value, read](const std::string& text) {
    value = read(text);
    return value.has_value();
  };
  return cli::add_value(line, names, take, allowed, description);
}

void add_target(cli::CommandLine& line, Options& options) {
  line.begin_group("Server");
  cli::add_text(line, "-s,--server-ip-address", options.server_address,
                "The server: a name, an IPv4 or an IPv6 address")
      .type_name("ADDRESS")
      .required();
  cli::add_integer<std::uint16_t>(line, "-p,--server-ip-port", options.server_port, 1, 65535,
                                  "The server's TCP port")
      .type_name("PORT");
  cli::add_time(line, "--connect-timeout", options.connect_timeout, core::Duration{},
                "How long to keep trying until all are connected, or one is again that broke")
      .default_str("10");
}

void add_udp(cli::CommandLine& line, Options& options) {
  const auto udp = cli::add_flag(line, "--udp", options.udp,
                                 "Send each request as a UDP datagram to a worker with --udp; "
                                 "answers may be lost, come twice or late, which is counted");
  cli::add_integer<std::uint32_t>(line, "--udp-retries", options.udp_retries, 0, 1000,
                                  "How often a request is sent again that has no answer after "
                                  "--response-timeout, before it is lost")
      .needs(udp);
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

void add_load(cli::CommandLine& line, Options& options) {
  line.begin_group("Load");
  cli::add_integer<std::uint32_t>(line, "-t,--thread-count", options.thread_count, 1, 1024,
                                  "Threads");
  cli::add_integer<std::uint32_t>(line, "--connections", options.connections, 1, 65536,
                                  "Connections of each thread");
  cli::add_integer<std::uint32_t>(line, "--max-concurrent-messages",
                                  options.max_concurrent_messages, 1, kDeepest,
                                  "Requests in flight per connection");
  cli::add_integer<std::uint64_t>(line, "--reconnect-every", options.reconnect_every, 1,
                                  1'000'000'000'000,
                                  "Connect anew after so many requests of a connection")
      .default_str("never");
  const auto rate =
      add_optional(
          line, "--rate", options.rate, [](const std::string& text) { return read_rate(text); },
          "a rate from 0.001, such as 500, 20k or 1.5m",
          "Open loop: requests become due by the clock, whatever the server does. Default: a "
          "closed loop, which always has --max-concurrent-messages in flight")
          .type_name("RATE");
  cli::add(
      line, "--arrivals", options.arrivals,
      [](const std::string& name) -> std::optional<ArrivalKind> {
        if (name == "constant") return ArrivalKind::constant;
        if (name == "poisson") return ArrivalKind::poisson;
        return std::nullopt;
      },
      "one of constant, poisson", "Gaps of an open loop: constant, poisson")
      .type_name("NAME")
      .default_str("constant");
  cli::add_text(line, "--schedule", options.schedule,
                "Open loop that replays a file, once: an offset from the start and a size a line, "
                "such as '0.25 64' or '1500us 4k'")
      .type_name("FILE")
      .excludes(rate);
  cli::add_integer<std::uint64_t>(line, "--seed", options.seed, 0, 1'000'000'000,
                                  "Of Poisson arrivals and of the choice of requests: another one "
                                  "for each of several clients");
  cli::add_time(line, "--lag-tolerance", options.lag_tolerance, core::Duration{},
                "Of an open loop: what this client may be late in noticing a request that is due")
      .default_str("1ms");
}

void add_runs(cli::CommandLine& line, Options& options) {
  line.begin_group("Runs");
  const auto count =
      cli::add_integer<std::uint64_t>(line, "-i,--iteration-count", options.iteration_count, 1,
                                      1'000'000'000'000'000, "Requests per connection");
  const auto duration =
      cli::add_time(line, "--duration", options.duration, std::chrono::milliseconds(1),
                    "Send for so long, instead of a number of requests")
          .excludes(count);
  cli::add_time(line, "--warmup", options.warmup, core::Duration{},
                "Send for so long before what is counted")
      .default_str("0");
  add_optional(
      line, "--start-at", options.start_at,
      [](const std::string& text) { return read_unix_time(text).value_or(std::nullopt); },
      "a time in seconds since the epoch, at most a day from now",
      "Begin to send at this time of the wall clock, in seconds since the epoch, as other clients "
      "do. Default: once connected")
      .type_name("TIME");
  const auto repeat = cli::add_integer<std::uint32_t>(
      line, "--repeat", options.repeat, 1, 1000,
      "Runs of the same load; from 3 on, medians with their confidence intervals");
  const auto scan = add_optional(line, "--scan", options.scan, read_scan,
                                 "such as rate=10k,20k,40k or depth=1,16,128",
                                 "A run for each value: rate=RATE,... or depth=COUNT,... (requests "
                                 "in flight per connection)")
                        .type_name("VALUES");
  add_optional(line, "--search", options.search, read_search,
               "a percentile and its bound, such as p99:500us",
               "Find the highest rate whose response time stays within a bound, by runs of "
               "--duration each, from --rate on")
      .type_name("PERCENTILE:SECONDS")
      .needs(duration)
      .excludes(repeat)
      .excludes(scan);
}

void add_content(cli::CommandLine& line, Options& options) {
  line.begin_group("Requests");
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
  const auto add_sizes = [&](const std::string& name, auto read, const std::string& allowed,
                             const std::string& description, const std::string& type) {
    const auto take = [&options, read](const std::string& text) {
      options.sizes = read(text);
      options.sizes_text = text;
      return options.sizes.has_value();
    };
    return cli::add_value(line, name, take, allowed, description).type_name(type).excludes(message);
  };
  const auto size = add_sizes(
      "--size",
      [](const std::string& text) -> std::optional<SizeMix> {
        const auto bytes = cli::read_size(text, 0, kLongestMessage);
        if (!bytes) return std::nullopt;
        return SizeMix{{*bytes, 1}};
      },
      "a size from 0 to 16777216 bytes, such as 4096 or 64k",
      "Requests of so many bytes (0 to 16m) instead of -m; the responses are computed", "BYTES");
  const auto mix =
      add_sizes("--mix", parse_mix, "sizes with weights, such as 64:90,64k:10",
                "Requests of several sizes, drawn by their weights", "BYTES:WEIGHT,...")
          .excludes(size);
  const auto uniform =
      add_sizes("--uniform-size", parse_uniform_sizes, "a range of sizes, such as 64-4k",
                "Requests of all sizes of a range alike (of 256 spread over it, if it has more)",
                "BYTES-BYTES")
          .excludes(size)
          .excludes(mix);
  cli::add_text(line, "--size-file", options.sizes_file,
                "Requests of sizes drawn from a file, one size a line")
      .type_name("FILE")
      .excludes(message)
      .excludes(size)
      .excludes(mix)
      .excludes(uniform);
  const auto take_payload = [&options](const std::string& text) {
    const auto payload = Payload::parse(text);
    if (payload) options.payload = *payload;
    options.payload_text = text;
    return payload.has_value();
  };
  cli::add_value(line, "--payload", take_payload, "one of random, constant:BYTE, file:PATH",
                 "The bytes of requests that have a size: random, constant:BYTE (0 to 255), or "
                 "file:PATH, repeated as needed; without a size, the file is the request")
      .type_name("WHAT")
      .default_str("random")
      .excludes(message);
  cli::add(
      line, "--service", options.service,
      [](const std::string& name) { return service_named(name); },
      "one of " + cli::listed(service_names()),
      "What the server was told to do with requests: " + cli::listed(service_names()))
      .type_name("NAME")
      .default_str(std::string(name_of(options.service)));
}

void add_errors(cli::CommandLine& line, Options& options) {
  line.begin_group("Errors");
  const auto read = [](const std::string& name) -> std::optional<bool> {
    if (name != "stop" && name != "count") return std::nullopt;
    return name == "count";
  };
  cli::add(line, "--on-error", options.count_errors, read, "one of stop, count",
           "The first error stops the run, or errors are counted by kind and connections that "
           "broke are made again: stop, count")
      .type_name("NAME")
      .default_str("stop");
  cli::add_time(line, "--response-timeout", options.response_timeout, std::chrono::milliseconds(1),
                "An error if nothing comes for so long while responses are due; of each request "
                "with --udp, where 1 is the default")
      .default_str("30");
  const auto read_deadline = [](const std::string& text) {
    return cli::read_time(text, std::chrono::microseconds(1));
  };
  add_optional(line, "--deadline", options.deadline, read_deadline, "a time from 1us to 1000h",
               "A right response is an error if it comes later than this after the request was "
               "due. Default: none")
      .type_name("SECONDS");
}

void add_output(cli::CommandLine& line, Options& options) {
  line.begin_group("Output");
  cli::add_text(line, "--scrape", options.scrape,
                "The server's --metrics: its own figures of the time of all runs, in the results")
      .type_name("HOST:PORT");
  cli::add_text(line, "--output", options.output,
                "Also write the results to this file, as JSON; - is standard output. Default: none")
      .type_name("FILE");
  cli::add_text(line, "--hlog", options.histogram_log,
                "Write a latency histogram of each second, as an HdrHistogram log")
      .type_name("FILE");
  cli::add_text(line, "--csv", options.csv, "Write a line for each second, as CSV")
      .type_name("FILE");
  cli::add_text(line, "--log-requests", options.request_log,
                "Write a line for each request, as CSV: intended, sent and completed, in ns")
      .type_name("FILE");
  cli::add_flag(line, "--quiet", options.quiet,
                "No live table, which is only shown on a terminal, and no log but warnings");
  cli::add_log_options(line, options.log);
}

}  // namespace

std::variant<Options, cli::Leave> parse_options(int argc, const char* const* argv) {
  Options options;
  cli::CommandLine line("offload-client", kDescription, kFooter);
  add_target(line, options);
  add_udp(line, options);
  add_tls(line, options);
  add_load(line, options);
  add_runs(line, options);
  add_content(line, options);
  add_errors(line, options);
  add_output(line, options);
  if (auto leave = line.parse(argc, argv)) return *leave;
  if (options.quiet) options.log.level = "warning";
  if (options.udp && !line.has("--response-timeout")) options.response_timeout = kDatagramTimeout;
  if (const auto wrong = contradiction_in(line, options); !wrong.empty()) return line.refuse(wrong);
  return options;
}

}  // namespace offload::client
