#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/fd.hpp"

struct MHD_Daemon;

namespace offload::telemetry {

struct HttpRequest {
  std::string_view method;
  std::string_view path;
  bool per_thread;         ///< ?per_thread=1
  std::string_view value;  ///< ?value=..., unescaped; empty without it
};

struct HttpResponse {
  unsigned status;
  const char* content_type;
  std::string body;
  const char* allowed = "GET";  ///< the methods that a refused one could have been
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

  /// `listener`: bound and listening, TCP or UNIX, non-blocking. Throws Error.
  HttpServer(core::Fd listener, Handler handler);
  /// Ends the thread; who waits for an answer has none.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] HttpResponse answer(const HttpRequest& request) noexcept;

 private:
  struct Stop {
    void operator()(MHD_Daemon* daemon) const noexcept;
  };

  Handler handler_;
  std::unique_ptr<MHD_Daemon, Stop> daemon_;  ///< ends before the handler does
};

}  // namespace offload::telemetry
