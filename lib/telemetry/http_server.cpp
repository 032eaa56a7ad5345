#include "telemetry/http_server.hpp"

#include <microhttpd.h>

#include <cerrno>
#include <new>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/process/thread.hpp"
#include "net/peer_address.hpp"
#include "net/socket.hpp"
#include "net/source/make_room.hpp"

namespace offload::telemetry {
namespace {

/// The memory of a connection for its header lines: scrapers send some hundred bytes.
constexpr std::size_t kRequestMemory = 8 * 1024;
/// The time that clients get to read their answers at the end.
constexpr core::Duration kFarewell = core::seconds(1);

struct FreeResponse {
  void operator()(MHD_Response* response) const noexcept { MHD_destroy_response(response); }
};

MHD_Result send_response(MHD_Connection* connection, const HttpResponse& answer) {
  const std::unique_ptr<MHD_Response, FreeResponse> response(MHD_create_response_from_buffer(
      answer.body.size(), const_cast<char*>(answer.body.data()), MHD_RESPMEM_MUST_COPY));
  if (!response) return MHD_NO;
  MHD_add_response_header(response.get(), MHD_HTTP_HEADER_CONTENT_TYPE, answer.content_type);
  MHD_add_response_header(response.get(), MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  if (answer.status == MHD_HTTP_METHOD_NOT_ALLOWED) {
    MHD_add_response_header(response.get(), MHD_HTTP_HEADER_ALLOW, answer.allowed);
  }
  return MHD_queue_response(connection, answer.status, response.get());
}

/// The state of a request points to it from its first call on, so that its end is reported.
char is_known;

/// Null where there was no memory for it.
HttpServer::Connection* state_of(MHD_Connection* connection) {
  return static_cast<HttpServer::Connection*>(
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context);
}

void change_of_connection(void* self, MHD_Connection* connection, void** state,
                          MHD_ConnectionNotificationCode what) {
  auto& server = *static_cast<HttpServer*>(self);
  if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
    return server.remove(static_cast<HttpServer::Connection*>(*state));
  }
  const auto info = [&](MHD_ConnectionInfoType of) {
    return MHD_get_connection_info(connection, of);
  };
  *state = server.add(info(MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd,
                      info(MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr);
}

/// The answer was written, or the connection is gone.
void end_of_request(void* self, MHD_Connection* connection, void** state,
                    MHD_RequestTerminationCode) {
  if (*state != nullptr) static_cast<HttpServer*>(self)->end_request(state_of(connection));
}

/// Called with the header, and again when all of a request was read. An immediate answer ends the
/// connection, because an unwanted body may follow.
MHD_Result handle(void* self, MHD_Connection* connection, const char* url, const char* method,
                  const char*, const char*, std::size_t* body, void** state) {
  const std::string_view name(method);
  const bool may_have_body = name != MHD_HTTP_METHOD_GET && name != MHD_HTTP_METHOD_HEAD;
  if (*state == nullptr) {
    *state = &is_known;
    static_cast<HttpServer*>(self)->begin_request(state_of(connection));
    if (!may_have_body) return MHD_YES;
  }
  if (*body != 0) return MHD_NO;
  const auto value_of = [&](MHD_ValueKind kind, const char* key) {
    const char* const value = MHD_lookup_connection_value(connection, kind, key);
    return value == nullptr ? std::string_view() : std::string_view(value);
  };
  const HttpRequest request{name,
                            url,
                            value_of(MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST),
                            value_of(MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT),
                            value_of(MHD_GET_ARGUMENT_KIND, "per_thread") == "1",
                            value_of(MHD_GET_ARGUMENT_KIND, "value")};
  return send_response(connection, static_cast<HttpServer*>(self)->answer(request));
}

}  // namespace

struct HttpServer::Connection : core::ListNode<Connection> {
  Connection(int of, const net::PeerAddress& from) : socket(of), peer(from) {}

  int socket;
  net::PeerAddress peer;
  core::TimePoint since = core::Clock::now();  ///< that it has no request, or has one
};

HttpServer::HttpServer(core::Fd listener, Handler handler, unsigned most, unsigned patience)
    : handler_(std::move(handler)), most_(most), patience_(std::chrono::seconds(patience)) {
  errno = 0;
  daemon_.reset(MHD_start_daemon(
      MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC, 0, nullptr, nullptr, &handle, this,
      MHD_OPTION_LISTEN_SOCKET, listener.get(), MHD_OPTION_NOTIFY_COMPLETED, &end_of_request, this,
      MHD_OPTION_NOTIFY_CONNECTION, &change_of_connection, this, MHD_OPTION_CONNECTION_LIMIT, most,
      MHD_OPTION_CONNECTION_TIMEOUT, patience, MHD_OPTION_CONNECTION_MEMORY_LIMIT, kRequestMemory,
      MHD_OPTION_END));
  if (!daemon_ && errno != 0) core::throw_thread_error("libmicrohttpd cannot be started", errno);
  if (!daemon_) throw core::Error(core::ErrorCode::driver, "libmicrohttpd cannot be started");
  (void)listener.release();  // the daemon closes it
}

HttpServer::~HttpServer() {
  // The listener is this object's again.
  const core::Fd listener(MHD_quiesce_daemon(daemon_.get()));
  {
    std::unique_lock lock(mutex_);
    answered_.wait_for(lock, kFarewell, [this] { return under_way_ == 0; });
  }
  daemon_.reset();  // its thread may use the listener until then
}

HttpServer::Connection* HttpServer::add(int socket, const sockaddr* peer) noexcept {
  auto* const added = new (std::nothrow)
      Connection(socket, net::PeerAddress(net::SocketAddress::from(peer).storage));
  if (added == nullptr) {
    ::shutdown(socket, SHUT_RDWR);
    return nullptr;
  }
  idle_.push_back(*added);
  ++connections_;
  try {
    make_room(*added);
  } catch (const std::bad_alloc&) {
    shut_down(*added, "there is no memory to choose another connection");
  }
  return added;
}

void HttpServer::remove(Connection* connection) noexcept {
  if (connection == nullptr) return;
  if (core::IntrusiveList<Connection>::is_linked(*connection)) --connections_;
  delete connection;
}

/// For one more after `newest`, so that libmicrohttpd goes on to accept: it stops at that many.
/// `newest` is the last of its source to pay: others of it had their chance.
void HttpServer::make_room(Connection& newest) {
  const core::TimePoint now = core::Clock::now();
  while (idle_.front()->since + patience_ < now) {
    shut_down(*idle_.front(), "its request did not arrive in time");
  }
  if (connections_ < most_) return;
  std::vector<Connection*> all;
  for (auto* const list : {&idle_, &busy_}) {
    for (Connection* each = list->front(); each != nullptr; each = list->next(*each)) {
      if (each != &newest) all.push_back(each);
    }
  }
  all.push_back(&newest);
  const auto source_of = [](const Connection& of) { return of.peer.source(); };
  net::limited_sources.add(net::Door::http);
  shut_down(*net::choose_to_make_room(all, 1, source_of).front(),
            "it is closed to make room for another, because its address has the most");
}

/// libmicrohttpd finds that its peer is gone, and closes it.
void HttpServer::shut_down(Connection& connection, std::string_view reason) noexcept {
  ::shutdown(connection.socket, SHUT_RDWR);
  core::IntrusiveList<Connection>::remove(connection);
  --connections_;
  if (!log_limit_.allow(core::Clock::now())) return;
  core::log_warning("an HTTP connection, {}, was closed: {} ({} more were not logged)",
                    std::string_view(connection.peer.text()), reason, log_limit_.suppressed());
}

void HttpServer::begin_request(Connection* connection) {
  move(connection, busy_);
  const std::lock_guard lock(mutex_);
  ++under_way_;
}

void HttpServer::end_request(Connection* connection) {
  move(connection, idle_);
  const std::lock_guard lock(mutex_);
  --under_way_;
  answered_.notify_all();
}

/// Unless it was shut down.
void HttpServer::move(Connection* connection, core::IntrusiveList<Connection>& to) noexcept {
  using List = core::IntrusiveList<Connection>;
  if (connection == nullptr || !List::is_linked(*connection)) return;
  List::remove(*connection);
  connection->since = core::Clock::now();
  to.push_back(*connection);
}

void HttpServer::Stop::operator()(MHD_Daemon* daemon) const noexcept {
  MHD_stop_daemon(daemon);
}

HttpResponse HttpServer::answer(const HttpRequest& request) noexcept {
  try {
    return handler_(request);
  } catch (const std::exception&) {
    return {MHD_HTTP_INTERNAL_SERVER_ERROR, "text/plain", {}};
  }
}

}  // namespace offload::telemetry
