#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "core/fd.hpp"

struct MHD_Daemon;

namespace offload::telemetry {

struct HttpRequest {
  std::string_view method;
  std::string_view path;
  std::string_view host;   ///< the header of that name; empty: there is none
  bool per_thread;         ///< ?per_thread=1
  std::string_view value;  ///< ?value=..., unescaped; empty without it
};

struct HttpResponse {
  unsigned status;
  const char* content_type;
  std::string body;
  const char* allowed = "GET, HEAD";  ///< the methods that a refused one could have been
};

/// A small HTTP server for requests without a body, on one epoll and a thread of its own
/// (libmicrohttpd). Who sends half of a request, or reads nothing, is dropped after kPatience and
/// keeps nobody else waiting.
class HttpServer {
 public:
  /// Called on the server's thread, for any method. What it throws is answered with 500.
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  /// Connections at a time; and how long one may do nothing, in seconds.
  static constexpr unsigned kMostConnections = 128;
  static constexpr unsigned kPatience = 10;
  /// What it takes of the process, with the listener and its epoll.
  static constexpr int kDescriptors = static_cast<int>(kMostConnections) + 4;

  /// `listener`: bound and listening, TCP or UNIX, non-blocking. `most`: connections at a time.
  /// Throws Error.
  HttpServer(core::Fd listener, Handler handler, unsigned most = kMostConnections);
  /// Takes no more connections, and ends the thread once those who asked have their answers, within
  /// a second.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // For libmicrohttpd's calls, on its thread.

  [[nodiscard]] HttpResponse answer(const HttpRequest& request) noexcept;
  void begin_request();
  void end_request();

 private:
  struct Stop {
    void operator()(MHD_Daemon* daemon) const noexcept;
  };

  Handler handler_;
  std::mutex mutex_;
  std::condition_variable answered_;
  unsigned under_way_ = 0;  ///< requests that came and are not answered; under the mutex
  std::unique_ptr<MHD_Daemon, Stop> daemon_;  ///< ends before the handler does
};

}  // namespace offload::telemetry
