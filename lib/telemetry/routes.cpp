#include "telemetry/routes.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "core/escape.hpp"
#include "core/log.hpp"
#include "net/every_address.hpp"
#include "net/source/source.hpp"
#include "net/unix_socket.hpp"
#include "telemetry/process_metrics.hpp"
#include "telemetry/trace.hpp"

namespace offload::telemetry {

/// live_page.html, which CMake embeds: a page that reads /status every second.
extern const char* const kLivePage;

namespace {

/// Connections that wait to be accepted, of all sources; the kernel's own limit may be lower.
constexpr int kBacklog = 4096;
constexpr const char* kText = "text/plain; charset=utf-8";
constexpr const char* kPrometheus = "text/plain; version=0.0.4; charset=utf-8";
constexpr const char* kHtml = "text/html; charset=utf-8";
constexpr const char* kJson = "application/json";

std::string text_of(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

HttpResponse say(const Condition& condition) {
  return {condition.holds ? 200U : 503U, kText, condition.why + "\n"};
}

}  // namespace

Routes::Routes(const MetricsAddress& endpoint, std::string program, const Source& source)
    : program_(std::move(program)), source_(&source) {
  auto listeners = net::listen_tcp_at_each(net::resolve(endpoint.host, endpoint.port), kBacklog);
  address_ = net::local_address(listeners.front().get());
  if (std::ranges::all_of(listeners, [](const core::Fd& listener) {
        return net::local_address(listener.get()).is_loopback();
      })) {
    named_ = endpoint;
  }
  const auto most = static_cast<unsigned>(HttpServer::kMostConnections / listeners.size());
  for (core::Fd& listener : listeners) {
    const net::SocketAddress address = net::local_address(listener.get());
    serve(std::move(listener), std::max(most, 1U));
    core::log_info("metrics on http://{}/metrics", address.to_string());
    if (!address.is_loopback()) {
      core::log_warning("{} serves metrics to the network, unencrypted", address.to_string());
    }
  }
}

Routes::Routes(const std::string& path, std::string program, const Source& source,
               CommandQueue& commands)
    : program_(std::move(program)), source_(&source), commands_(&commands) {
  core::Fd listener = net::listen_unix(path, kBacklog);
  file_.emplace(path);
  serve(std::move(listener), HttpServer::kMostConnections);
  core::log_info("commands are accepted at unix:{}", path);
}

Routes::~Routes() {
  file_.reset();  // before its socket is closed
}

void Routes::serve(core::Fd listener, unsigned most_connections) {
  servers_.push_back(std::make_unique<HttpServer>(
      std::move(listener), [this](const HttpRequest& request) { return answer(request); },
      most_connections));
}

HttpResponse Routes::answer(const HttpRequest& request) {
  const std::lock_guard lock(mutex_);
  if (named_ && !request.host.empty() && !named_->is_named_by(request.host)) {
    return {421, kText,
            "the Host header must be an IP address, localhost or the name given to --metrics\n"};
  }
  if (request.method == "POST" && commands_ != nullptr) return command(request);
  if (request.method != "GET" && request.method != "HEAD") {
    const char* const allowed = commands_ == nullptr ? "GET, HEAD" : "GET, HEAD, POST";
    return {405, kText, fmt::format("allowed: {}\n", allowed), allowed};
  }
  if (request.path == "/healthz") return say(source_->health());
  if (request.path == "/readyz") return say(source_->readiness());
  if (request.path == "/metrics") return metrics(request);
  if (request.path == "/status") return {200, kJson, status()};
  if (request.path == "/trace") return {200, kJson, trace()};
  if (request.path == "/") return {200, kHtml, kLivePage};
  return {404, kText, "there are /, /metrics, /status, /trace, /healthz and /readyz\n"};
}

HttpResponse Routes::command(const HttpRequest& request) {
  using Status = CommandResult::Status;
  const std::string_view name = request.path.substr(request.path.starts_with('/') ? 1 : 0);
  const CommandResult result = commands_->ask({std::string(name), std::string(request.value)});
  core::log_info("command {} {}: {}", core::escaped(name), core::escaped(request.value),
                 result.text);
  const unsigned status = result.status == Status::done      ? 200U
                          : result.status == Status::refused ? 409U
                                                             : 404U;
  return {status, kText, result.text + "\n"};
}

HttpResponse Routes::metrics(const HttpRequest& request) {
  const bool open_metrics = prefers_open_metrics(request.accept);
  Page& page = pages_[open_metrics ? 1 : 0][request.per_thread ? 1 : 0];
  const auto now = core::Clock::now();
  if (page.text.empty() || now - page.made >= kPageAge) {
    page = {now, make_page(request.per_thread, open_metrics)};
  }
  return {200, open_metrics ? kOpenMetrics : kPrometheus, page.text};
}

const std::string& Routes::status() {
  const auto now = core::Clock::now();
  if (status_.text.empty() || now - status_.made >= kPageAge) status_ = {now, make_status()};
  return status_.text;
}

std::string Routes::make_page(bool per_thread, bool open_metrics) const {
  Exposition page(per_thread);
  add_build_info(page, program_);
  add_process(page, started_);
  for (std::size_t door = 0; door < net::kDoors.size(); ++door) {
    page.counter({"offload_limited_connections_total",
                  "Connections refused or closed because their address had too many."},
                 {{"door", net::kDoors[door]}},
                 static_cast<double>(net::limited_sources.count(static_cast<net::Door>(door))));
  }
  source_->collect(page);
  return open_metrics ? page.open_metrics() : page.text();
}

std::string Routes::make_status() const {
  const Condition health = source_->health();
  const Condition readiness = source_->readiness();
  const auto up = std::chrono::system_clock::now() - started_;
  const nlohmann::json status{
      {"program", program_},
      {"version", build().version},
      {"revision", build().revision},
      {"process", process_id()},
      {"uptime_seconds", std::chrono::duration<double>(up).count()},
      {"healthy", {{"holds", health.holds}, {"why", health.why}}},
      {"ready", {{"holds", readiness.holds}, {"why", readiness.why}}},
      {"state", source_->status()},
  };
  return text_of(status);
}

const std::string& Routes::trace() {
  const auto now = core::Clock::now();
  if (trace_.text.empty() || now - trace_.made >= kPageAge) {
    Trace made(program_);
    source_->trace(made);
    trace_ = {now, made.text()};
  }
  return trace_.text;
}

}  // namespace offload::telemetry
