#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "net/own_file.hpp"
#include "net/socket.hpp"
#include "telemetry/command_queue.hpp"
#include "telemetry/exposition.hpp"
#include "telemetry/http_server.hpp"
#include "telemetry/options.hpp"

namespace offload::telemetry {

class Trace;

/// The reply to a probe: whether the condition holds, and a sentence that explains it.
struct Condition {
  bool holds;
  std::string why;
};

/// The data that a program serves. Called on the thread that serves, beside all others: it reads
/// counters and data guarded by a mutex, and waits for no thread; health() may, see TurnWatch.
class Source {
 public:
  /// Its own metrics; those of the process come by themselves.
  virtual void collect(Exposition& page) const = 0;
  /// Returns whether its control thread turns.
  [[nodiscard]] virtual Condition health() const = 0;
  /// Returns whether it can do its work now.
  [[nodiscard]] virtual Condition readiness() const = 0;
  /// Returns the object of /status, with the data of the live page. Text may be invalid UTF-8.
  [[nodiscard]] virtual nlohmann::json status() const = 0;
  /// For /trace: its threads and their spans.
  virtual void trace(Trace& trace) const = 0;

 protected:
  ~Source() = default;
};

/// The HTTP routes of a program: /metrics, /status, /trace, /healthz, /readyz and a page for
/// people. A page is made at most ten times a second; in between, clients get the last one.
/// /metrics is OpenMetrics for clients whose Accept header prefers it.
class Routes {
 public:
  static constexpr core::Duration kPageAge = std::chrono::milliseconds(100);

  /// Listens on TCP, at each address of the endpoint's name, and takes GET and HEAD alone. If only
  /// this machine can connect, a request has to name it as MetricsAddress::is_named_by() says, else
  /// it is answered with 421. `source` outlives it. `program`: its name. Throws Error if it cannot
  /// listen there.
  Routes(const MetricsAddress& endpoint, std::string program, const Source& source);
  /// Listens at a UNIX socket, which it removes at its end, for this user and root. Takes commands
  /// as well: POST /NAME?value=ARGUMENT goes to `commands`, which outlives it. Throws Error.
  Routes(const std::string& path, std::string program, const Source& source,
         CommandQueue& commands);
  ~Routes();
  Routes& operator=(Routes&&) = delete;

  /// Returns the first address of the first kind.
  [[nodiscard]] const net::SocketAddress& address() const noexcept { return address_; }

 private:
  struct Page {
    core::TimePoint made{};
    std::string text{};
  };

  void serve(core::Fd listener, unsigned most_connections);
  [[nodiscard]] HttpResponse answer(const HttpRequest& request);
  [[nodiscard]] HttpResponse command(const HttpRequest& request);
  HttpResponse metrics(const HttpRequest& request);
  const std::string& status();
  const std::string& trace();
  [[nodiscard]] std::string make_page(bool per_thread, bool open_metrics) const;
  [[nodiscard]] std::string make_status() const;

  std::string program_;
  const Source* source_;
  CommandQueue* commands_ = nullptr;     ///< null: it takes none
  std::optional<net::OwnFile> file_;     ///< of the UNIX socket
  std::optional<MetricsAddress> named_;  ///< a request has to name it
  std::chrono::system_clock::time_point started_ = std::chrono::system_clock::now();
  std::mutex mutex_;  ///< of the servers' threads
  /// By format: summed, and per thread; under the mutex, as is the next.
  std::array<std::array<Page, 2>, 2> pages_;
  Page status_;
  Page trace_;
  net::SocketAddress address_;
  std::vector<std::unique_ptr<HttpServer>> servers_;  ///< by address; destroyed before the data
                                                      ///< that they read
};

}  // namespace offload::telemetry
