#include "apps/client/options.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "apps/client/server_address.hpp"
#include "cli/options.hpp"
#include "core/units.hpp"

namespace offload::client {
namespace {

constexpr double kLowestRate = 0.001;
constexpr double kHighestRate = 1e9;
constexpr std::size_t kMostSteps = 1000;
constexpr std::uint32_t kDeepest = 65536;
/// The maximum number of seconds until --start-at, so that a time in milliseconds is refused.
constexpr double kLongestWait = 86'400;
/// The time-out of a request over UDP, which may be lost without an error.
constexpr core::Duration kDatagramTimeout = std::chrono::seconds(1);

constexpr const char* kDescription =
    "Load client: sends requests to an offload server, checks every response, and reports\n"
    "throughput and latency.";

constexpr const char* kFooter =
    "\nBYTES may end in k, m or g (binary multiples), SECONDS in us, ms, s, m or h, RATE "
    "(requests\n"
    "a second of all threads) in k or m (thousands and millions).\n"
    "Exit status: 0 every response was right; 1 a wrong, missing or refused response, a\n"
    "connection error, or a search that found no rate; 2 an invalid command line; 3 the server\n"
    "did not keep up with --rate or --schedule; 4 no verdict: this client was late; 5 no verdict:\n"
    "there were too few requests; 130 stopped by SIGINT or SIGTERM.\n\n"
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

/// Parses "20k" or steps such as "10k:5s,20k:5s" into `options`. Returns whether it is valid.
bool take_rate(Options& options, const std::string& text) {
  options.rate = read_rate(text);
  if (options.rate || text.find(':') == std::string::npos) return options.rate.has_value();
  double requests = 0;
  core::Duration sum{};
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::size_t colon = text.find(':', at);
    if (colon >= end || options.rate_steps.size() == kMostSteps) return false;
    const auto rate = read_rate(text.substr(at, colon - at));
    const auto length =
        cli::read_time(text.substr(colon + 1, end - colon - 1), std::chrono::milliseconds(1));
    if (!rate || !length) return false;
    options.rate_steps.push_back({*rate, *length});
    requests += *rate * core::to_seconds(*length);
    sum += *length;
    at = end + 1;
  }
  options.rate_steps_text = text;
  options.rate = requests / core::to_seconds(sum);
  options.duration = sum;
  return true;
}

std::optional<double> read_depth(const std::string& text) {
  const auto value = read_rate(text);
  if (!value || *value > kDeepest || *value != std::floor(*value)) return std::nullopt;
  return value;
}

/// Parses "rate=1k,2k,4k" or "depth=1,16,128".
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

/// Parses "p99:500us".
std::optional<Search> read_search(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos || text[0] != 'p') return std::nullopt;
  const auto percent = core::parse_number<double>(text.substr(1, colon - 1));
  const auto bound = cli::read_time(text.substr(colon + 1), std::chrono::microseconds(1));
  if (!bound || !percent || !(*percent > 0 && *percent < 100)) return std::nullopt;
  return Search{text.substr(0, colon), *percent / 100, *bound};
}

std::optional<double> read_unix_time(const std::string& text) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  const auto value = core::parse_number<double>(text);
  const bool is_near = value && *value >= 0 && *value <= now.count() + kLongestWait;
  return is_near ? value : std::nullopt;
}

void add_target(cli::CommandLine& line, Options& options) {
  line.begin_group("Server");
  cli::add_text(line, "-s,--server-ip-address ADDRESS", options.server_address,
                "Connect to the server at this address: a name, an IPv4 or an IPv6 address, also "
                "with its port, such as 10.0.0.2:7000 or [fd00::2]:7000")
      .required();
  cli::add_integer<std::uint16_t>(line, "-p,--server-ip-port PORT", options.server_port, 1, 65535,
                                  "Connect to this port of the server");
  cli::add_time(line, "--connect-timeout", options.connect_timeout, core::Duration{},
                "Try for this time to connect all connections, or to reconnect one that broke");
}

void add_udp(cli::CommandLine& line, Options& options) {
  const auto udp = cli::add_flag(line, "--udp", options.udp,
                                 "Send each request as a UDP datagram to a worker with --udp; "
                                 "lost, duplicate and late answers are counted");
  cli::add_integer<std::uint32_t>(line, "--udp-retries", options.udp_retries, 0, 1000,
                                  "Send a request again up to this number of times, each after "
                                  "--response-timeout without an answer, before it counts as lost")
      .needs(udp);
}

void add_tls(cli::CommandLine& line, Options& options) {
  const auto tls =
      cli::add_flag(line, "--tls", options.tls, "Use TLS 1.3 and verify the server's certificate");
  cli::add_text(line, "--tls-ca FILE", options.tls_ca,
                "Trust the authorities in this file, PEM. Default: the authorities of the system")
      .needs(tls);
  cli::add_text(line, "--tls-crl FILE", options.tls_crl,
                "Refuse a server's certificate that the revocation lists in this file, PEM, "
                "revoke. Each authority of the server needs a list. Default: no list")
      .needs(tls);
  cli::add_text(line, "--tls-server-name NAME", options.tls_server_name,
                "Expect this name in the server's certificate. Default: the server's ADDRESS")
      .needs(tls);
  const auto certificate =
      cli::add_text(line, "--tls-certificate FILE", options.tls_certificate,
                    "Send this certificate to a server that asks for one, PEM. Default: none")
          .needs(tls);
  const auto key = cli::add_text(line, "--tls-key FILE", options.tls_key,
                                 "The certificate's private key, PEM; not accessible to others")
                       .needs(certificate);
  certificate.needs(key);
}

void add_load(cli::CommandLine& line, Options& options) {
  line.begin_group("Load");
  cli::add_integer<std::uint32_t>(line, "-t,--thread-count", options.thread_count, 1, 1024,
                                  "Threads");
  cli::add_integer<std::uint32_t>(line, "--connections", options.connections, 1, 65536,
                                  "Open this number of connections in each thread");
  cli::add_integer<std::uint32_t>(line, "--max-concurrent-messages",
                                  options.max_concurrent_messages, 1, kDeepest,
                                  "Keep this number of requests in flight on each connection");
  cli::add_integer<std::uint64_t>(line, "--reconnect-every", options.reconnect_every, 1,
                                  1'000'000'000'000,
                                  "Reconnect after this number of requests on a connection")
      .default_str("never");
  cli::add_time(line, "--think", options.think, core::Duration{},
                "Closed loop: wait for this time after each response before the next request");
  const auto rate = cli::add_value(
      line, "--rate RATE", [&options](const std::string& text) { return take_rate(options, text); },
      "a rate from 0.001, such as 500, 20k or 1.5m, or steps, such as 10k:5s,20k:5s",
      "Open loop: send requests at this rate, by the clock, however slow the server is, or in "
      "steps: RATE:SECONDS,.... Default: a closed loop, which always has "
      "--max-concurrent-messages in flight");
  cli::add_integer<std::uint64_t>(line, "--burst", options.burst, 1, 1'000'000,
                                  "Open loop: send this number of requests at once, as often as "
                                  "--rate takes");
  cli::add(
      line, "--arrivals NAME", options.arrivals,
      [](const std::string& name) -> std::optional<ArrivalKind> {
        if (name == "constant") return ArrivalKind::constant;
        if (name == "poisson") return ArrivalKind::poisson;
        return std::nullopt;
      },
      "one of constant, poisson", "Set the gaps of an open loop: constant, poisson")
      .default_str("constant");
  cli::add_text(line, "--schedule FILE", options.schedule,
                "Open loop: replay this file once; each line has an offset from the start and a "
                "size, such as '0.25 64' or '1500us 4k'")
      .excludes(rate);
  cli::add_integer<std::uint64_t>(line, "--seed", options.seed, 0, 1'000'000'000,
                                  "Seed Poisson arrivals and the choice of requests; give each of "
                                  "several clients another seed");
  cli::add_time(line, "--lag-tolerance", options.lag_tolerance, core::Duration{},
                "Open loop: allow this client to notice a due request this late");
}

void add_runs(cli::CommandLine& line, Options& options) {
  line.begin_group("Runs");
  const auto count =
      cli::add_integer<std::uint64_t>(line, "-i,--iteration-count", options.iteration_count, 1,
                                      1'000'000'000'000'000, "Requests per connection");
  const auto duration =
      cli::add_time(line, "--duration", options.duration, std::chrono::milliseconds(1),
                    "Send for this time, instead of a number of requests")
          .excludes(count);
  cli::add_time(line, "--warmup", options.warmup, core::Duration{},
                "Send for this time before the measurement begins");
  cli::add(line, "--start-at TIME", options.start_at, read_unix_time,
           "a time in seconds since the epoch, at most a day from now",
           "Begin to send at this wall clock time, in seconds since the epoch, together with other "
           "clients. Default: when connected");
  const auto repeat = cli::add_integer<std::uint32_t>(
      line, "--repeat", options.repeat, 1, 1000,
      "Repeat the load; from 3 runs on, report medians with confidence intervals");
  const auto scan = cli::add(line, "--scan VALUES", options.scan, read_scan,
                             "such as rate=10k,20k,40k or depth=1,16,128",
                             "Run once for each value: rate=RATE,... or depth=COUNT,... "
                             "(requests in flight per connection)");
  cli::add(line, "--search PERCENTILE:SECONDS", options.search, read_search,
           "a percentile and its bound, such as p99:500us",
           "Find the highest rate at which this percentile of the response time stays within "
           "this bound, by runs of --duration each, starting at --rate")
      .needs(duration)
      .excludes(repeat)
      .excludes(scan);
}

void add_content(cli::CommandLine& line, Options& options) {
  line.begin_group("Requests");
  const auto message = cli::add_text(line, "-m,--message-string TEXT", options.message,
                                     "Send this text in every request");
  cli::add(
      line, "-e,--expected-response TEXT", options.expected_response,
      [](const std::string& text) { return std::optional(text); }, "a text",
      "Expect this text in every response, whatever --service is. Default: the text is computed")
      .needs(message);
  const auto add_sizes = [&](const std::string& name, auto read, const std::string& allowed,
                             const std::string& description) {
    const auto take = [&options, read](const std::string& text) {
      options.sizes = read(text);
      options.sizes_text = text;
      return options.sizes.has_value();
    };
    return cli::add_value(line, name, take, allowed, description).excludes(message);
  };
  const auto size = add_sizes(
      "--size BYTES",
      [](const std::string& text) -> std::optional<SizeMix> {
        const auto bytes = cli::read_size(text, 0, kLongestMessage);
        if (!bytes) return std::nullopt;
        return SizeMix{{*bytes, 1}};
      },
      "a size from 0 to 16777216 bytes, such as 4096 or 64k",
      "Send requests of this size (0 to 16m) instead of -m; responses are computed");
  const auto mix =
      add_sizes("--mix BYTES:WEIGHT,...", parse_mix, "sizes with weights, such as 64:90,64k:10",
                "Send requests of several sizes, drawn by their weights")
          .excludes(size);
  const auto uniform =
      add_sizes("--uniform-size BYTES-BYTES", parse_uniform_sizes,
                "a range of sizes, such as 64-4k",
                "Draw request sizes from this range (256 of them spread over it, if it has more)")
          .excludes(size)
          .excludes(mix);
  cli::add_text(line, "--size-file FILE", options.sizes_file,
                "Send requests of sizes drawn from this file, which has one size on each line")
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
  cli::add_value(line, "--payload WHAT", take_payload, "one of random, constant:BYTE, file:PATH",
                 "Fill requests of a given size with random, constant:BYTE (0 to 255) or "
                 "file:PATH, repeated as needed; without a size, send the file as the request")
      .default_str("random")
      .excludes(message);
  const auto requests =
      cli::add_text(line, "--requests FILE", options.requests_file,
                    "Send the requests of this file, drawn by --seed: frames of the protocol, each "
                    "request (4) followed by the response that is expected (5), or none of them")
          .excludes(message)
          .excludes(size)
          .excludes(mix)
          .excludes(uniform);
  cli::add_flag(line, "--in-order", options.in_order,
                "Send the requests of the file in their order on each connection, again and again")
      .needs(requests);
  const auto service = cli::add(
      line, "--service NAME", options.service,
      [](const std::string& name) { return service_named(name); },
      "one of " + cli::listed(service_names()),
      "Expect the responses of this service of the server: " + cli::listed(service_names()));
  service.default_str(std::string(name_of(options.service)));
  cli::add(line, "--verify HOW", options.verification, Verification::parse,
           "one of builtin, none, length, length:BYTES, file:PATH, command:COMMAND, recorded",
           "Check responses: builtin, every byte, as --service computes them; none, only that they "
           "are responses of the protocol; length, that they have the length of the request, or "
           "length:BYTES; file:PATH, that they are the content of this file; command:COMMAND, that "
           "they are the output of this command of /bin/sh, which runs before the load, once for "
           "each different request, with the request on its standard input; recorded, that they "
           "are those in the file of --requests")
      .default_str("builtin, or recorded with --requests");
}

void add_kinds(cli::CommandLine& line, Options& options) {
  cli::add_each(
      line, "--kind NAME:KEY=VALUE,...", options.kinds, RequestKind::parse,
      "a name and keys, such as lookup:port=12346,weight=9,size=64,verify=length:12",
      "Send a kind of requests beside others, each with its own results; may be repeated. "
      "Keys: port; weight, its share of --rate and of the connections; size, or requests, "
      "a file as of --requests; service, or, as the last one, verify. The other options give "
      "the rest");
}

void add_errors(cli::CommandLine& line, Options& options) {
  line.begin_group("Errors");
  const auto read = [](const std::string& name) -> std::optional<bool> {
    if (name != "stop" && name != "count") return std::nullopt;
    return name == "count";
  };
  cli::add(line, "--on-error NAME", options.count_errors, read, "one of stop, count",
           "Stop the run at the first error, or count errors by kind and reconnect broken "
           "connections: stop, count")
      .default_str("stop");
  cli::add_time(line, "--response-timeout", options.response_timeout, std::chrono::milliseconds(1),
                "Report an error if nothing arrives for this time while responses are due; with "
                "--udp, for each request, with the default 1");
  const auto read_deadline = [](const std::string& text) {
    return cli::read_time(text, std::chrono::microseconds(1));
  };
  cli::add(line, "--deadline SECONDS", options.deadline, read_deadline, "a time from 1us to 1000h",
           "Count a right response as an error if it arrives later than this after the request "
           "was due. Default: no deadline");
}

void add_output(cli::CommandLine& line, Options& options) {
  line.begin_group("Output");
  telemetry::add_metrics_option(line, options.metrics);
  cli::add_text(line, "--scrape HOST:PORT", options.scrape,
                "Add the figures of the server's --metrics during all runs to the results")
      .check([](const std::string& text) {
        return text.find("://") == std::string::npos
                   ? std::string()
                   : fmt::format("'{}' is a URL; expected HOST:PORT, such as 10.0.0.2:9100", text);
      });
  cli::add_text(
      line, "--output FILE", options.output,
      "Also write the results to this file, as JSON; - is standard output. Default: none");
  cli::add_text(line, "--hlog FILE", options.histogram_log,
                "Write a latency histogram of each second, as an HdrHistogram log");
  cli::add_text(line, "--csv FILE", options.csv, "Write a line of figures for each second, as CSV");
  cli::add_text(line, "--log-requests FILE", options.request_log,
                "Write a line for each request, as CSV: intended, sent and completed, in ns");
  cli::add_flag(line, "--quiet", options.quiet,
                "Show no live table (terminals only), and log only warnings and errors");
  cli::add_log_options(line, options.log);
}

std::string wrong_load(const cli::CommandLine& line, const Options& options) {
  // A schedule gives the times, sizes and number of requests.
  for (const char* const option :
       {"--arrivals", "--iteration-count", "--search", "--message-string", "--size", "--mix",
        "--uniform-size", "--size-file"}) {
    if (!options.schedule.empty() && line.has(option)) {
      return fmt::format("--schedule excludes {}", option);
    }
  }
  const bool scans_rates = options.scan && options.scan->of == Scan::Of::rate;
  if (scans_rates && !options.schedule.empty()) return "--schedule excludes --scan rate";
  if (scans_rates && options.rate) return "--scan rate excludes --rate";
  for (const char* const option : {"--duration", "--iteration-count", "--scan", "--search"}) {
    if (!options.rate_steps.empty() && line.has(option)) {
      return fmt::format("--rate with steps excludes {}", option);
    }
  }
  if (line.has("--think") && options.is_open_loop()) return "--think requires a closed loop";
  if (line.has("--burst") && (!options.schedule.empty() || line.has("--arrivals"))) {
    return "--burst excludes --schedule and --arrivals";
  }
  for (const char* const option : {"--arrivals", "--lag-tolerance", "--burst"}) {
    if (line.has(option) && !options.is_open_loop()) {
      return fmt::format("{} requires an open loop (--rate)", option);
    }
  }
  const bool is_recorded = options.verification.kind == Verification::Kind::recorded;
  if (is_recorded && options.requests_file.empty()) return "--verify recorded requires --requests";
  for (const char* const option : {"--schedule", "--payload", "--size-file"}) {
    if (!options.requests_file.empty() && line.has(option)) {
      return fmt::format("--requests excludes {}", option);
    }
  }
  for (const char* const option : {"--service", "--expected-response"}) {
    if (line.has(option) && options.verification.kind != Verification::Kind::builtin) {
      return fmt::format("--verify {} excludes {}", options.verification.text, option);
    }
  }
  if (line.has("--payload") && !options.has_sizes()) return "--payload requires a size (--size)";
  if (line.has("--warmup") && !options.duration && options.schedule.empty()) {
    return "--warmup requires --duration";
  }
  for (const char* const option : {"--schedule", "--message-string"}) {
    if (!options.kinds.empty() && line.has(option))
      return fmt::format("--kind excludes {}", option);
  }
  if (auto wrong = options.wrong_kinds(); !wrong.empty()) return wrong;
  for (const char* const option : {"--repeat", "--scan", "--search"}) {
    if (options.start_at && line.has(option)) return fmt::format("--start-at excludes {}", option);
  }
  double highest = options.rate.value_or(0);
  for (const RateStep& step : options.rate_steps) highest = std::max(highest, step.rate);
  if (scans_rates) highest = *std::ranges::max_element(options.scan->values);
  if (highest > kHighestThreadRate * options.thread_count) {
    return fmt::format("{}: a thread sends at most {:.0f} requests a second (increase -t)",
                       scans_rates ? "--scan" : "--rate", kHighestThreadRate);
  }
  return {};
}

/// Checks options that apply to connections but not to datagrams.
std::string wrong_by_udp(const cli::CommandLine& line, const Options& options) {
  for (const char* const option : {"--tls", "--reconnect-every", "--connect-timeout", "--scrape"}) {
    if (options.udp && line.has(option)) return fmt::format("--udp excludes {}", option);
  }
  return {};
}

/// Two results in one file, or a text for people and one for programs on standard output.
std::string wrong_file(const Options& options) {
  const std::string* const files[] = {&options.output, &options.histogram_log, &options.csv,
                                      &options.request_log};
  for (std::size_t i = 0; i < std::size(files); ++i) {
    if (i != 0 && *files[i] == "-") return "only --output can be standard output";
    for (std::size_t other = 0; other < i; ++other) {
      if (!files[i]->empty() && *files[i] == *files[other]) {
        return fmt::format("'{}' is given for two results; each needs a separate file", *files[i]);
      }
    }
  }
  return {};
}

/// Returns why valid options contradict each other, which CLI11's needs and excludes cannot
/// express. One line; empty if they do not.
std::string contradiction_in(const cli::CommandLine& line, const Options& options) {
  std::string wrong = wrong_by_udp(line, options);
  if (wrong.empty()) wrong = wrong_load(line, options);
  return wrong.empty() ? wrong_file(options) : wrong;
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
  add_kinds(line, options);
  add_errors(line, options);
  add_output(line, options);
  if (auto leave = line.parse(argc, argv)) return *leave;
  if (const auto wrong = take_port_of_address(options, line.has("--server-ip-port"));
      !wrong.empty()) {
    return line.refuse(wrong);
  }
  if (!options.requests_file.empty() && !line.has("--verify") && !line.has("--service")) {
    options.verification = *Verification::parse("recorded");
  }
  if (options.quiet) options.log.level = "warning";
  if (options.udp && !line.has("--response-timeout")) options.response_timeout = kDatagramTimeout;
  if (const auto wrong = contradiction_in(line, options); !wrong.empty()) return line.refuse(wrong);
  return options;
}

}  // namespace offload::client
