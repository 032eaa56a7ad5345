#pragma once

#include <sys/socket.h>

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "core/fd.hpp"
#include "core/intrusive_list.hpp"
#include "core/log.hpp"

struct MHD_Daemon;

namespace offload::telemetry {

struct HttpRequest {
  std::string_view method;
  std::string_view path;
  std::string_view host;    ///< the header of that name; empty: there is none
  std::string_view accept;  ///< the same
  bool per_thread;          ///< ?per_thread=1
  std::string_view value;   ///< ?value=..., unescaped; empty without it
};

struct HttpResponse {
  unsigned status;
  const char* content_type;
  std::string body;
  const char* allowed = "GET, HEAD";  ///< the methods that a refused one could have been
};

/// A small HTTP server for requests without a body, with one epoll and a separate thread
/// (libmicrohttpd). A peer that sends half of a request, or reads nothing, does not delay others:
/// if there are too many connections, the source with the most loses one, first the oldest one
/// without a request in progress, and last the newest one.
class HttpServer {
 public:
  /// Called on the server's thread, for any method. If it throws, the answer is 500.
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  /// Connections at a time; and how long one may do nothing, in seconds. One whose request has not
  /// come whole within that time ends as soon as another connection comes.
  static constexpr unsigned kMostConnections = 128;
  static constexpr unsigned kPatience = 10;
  /// The descriptors that it uses, with the listener and its epoll.
  static constexpr int kDescriptors = static_cast<int>(kMostConnections) + 4;

  /// `listener`: bound and listening, TCP or UNIX, non-blocking. `most` and `patience`: instead of
  /// kMostConnections and kPatience. Throws Error.
  HttpServer(core::Fd listener, Handler handler, unsigned most = kMostConnections,
             unsigned patience = kPatience);
  /// Takes no more connections, and ends the thread once those who asked have their answers, within
  /// a second.
  ~HttpServer();
  HttpServer& operator=(HttpServer&&) = delete;

  // For libmicrohttpd's calls, on its thread.

  [[nodiscard]] HttpResponse answer(const HttpRequest& request) noexcept;
  /// A connection of libmicrohttpd's.
  struct Connection;
  void begin_request(Connection* connection);
  void end_request(Connection* connection);
  /// Null if there is no memory for it: it is shut down.
  Connection* add(int socket, const sockaddr* peer) noexcept;
  void remove(Connection* connection) noexcept;

 private:
  void make_room(Connection& newest);
  static void move(Connection* connection, core::IntrusiveList<Connection>& to) noexcept;
  void shut_down(Connection& connection, std::string_view reason) noexcept;

  struct Stop {
    void operator()(MHD_Daemon* daemon) const noexcept;
  };

  Handler handler_;
  unsigned most_;
  core::Duration patience_;
  core::IntrusiveList<Connection> idle_;  ///< without a request, the oldest first
  core::IntrusiveList<Connection> busy_;  ///< the same, with one
  std::size_t connections_ = 0;           ///< in both lists: those that were not shut down
  core::RateLimit log_limit_;
  std::mutex mutex_;
  std::condition_variable answered_;
  unsigned under_way_ = 0;  ///< requests that came and are not answered; under the mutex
  std::unique_ptr<MHD_Daemon, Stop> daemon_;  ///< ends before the handler does
};

}  // namespace offload::telemetry
