#pragma once

#include <array>
#include <memory>
#include <string>

#include "core/clock.hpp"
#include "net/socket.hpp"
#include "telemetry/endpoint.hpp"
#include "telemetry/exposition.hpp"
#include "telemetry/http_server.hpp"

namespace offload::telemetry {

/// What a probe hears: whether it is so, and a sentence that explains it.
struct Condition {
  bool holds;
  std::string why;
};

/// What a program tells of itself. Called on the view's thread, beside all others: it reads
/// counters and what a mutex guards, and waits for no thread.
class Source {
 public:
  /// Its own metrics; the process's are the view's.
  virtual void collect(Exposition& page) const = 0;
  /// Whether its control thread turns.
  [[nodiscard]] virtual Condition health() const = 0;
  /// Whether it can do its work now.
  [[nodiscard]] virtual Condition readiness() const = 0;
  /// A JSON value for /status: what is no number that grows.
  [[nodiscard]] virtual std::string status() const = 0;

 protected:
  ~Source() = default;
};

/// The door through which a program may be looked at, and not changed: /metrics, /status, /healthz
/// and /readyz over HTTP. A page is made at most ten times a second; who asks more often gets the
/// last one.
class View {
 public:
  static constexpr core::Duration kPageAge = std::chrono::milliseconds(100);

  /// `source` outlives it. `program`: its name. Throws Error if it cannot listen there.
  View(const Endpoint& endpoint, std::string program, const Source& source);

  [[nodiscard]] const net::SocketAddress& address() const noexcept { return address_; }

 private:
  struct Page {
    core::TimePoint made{};
    std::string text{};
  };

  [[nodiscard]] HttpResponse answer(const HttpRequest& request);
  const std::string& page(bool per_thread);
  const std::string& status();
  [[nodiscard]] std::string make_page(bool per_thread) const;
  [[nodiscard]] std::string make_status() const;

  std::string program_;
  const Source* source_;
  std::chrono::system_clock::time_point started_ = std::chrono::system_clock::now();
  std::array<Page, 2> pages_;  ///< summed, and per thread; the server's thread's, as is the next
  Page status_;
  net::SocketAddress address_;
  std::unique_ptr<HttpServer> server_;  ///< ends before what it reads
};

}  // namespace offload::telemetry
