#include "telemetry/http_server.hpp"

#include <microhttpd.h>

#include <cerrno>
#include <utility>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/process/thread.hpp"

namespace offload::telemetry {
namespace {

/// Of one connection, for its header lines: scrapers send some hundred bytes.
constexpr std::size_t kRequestMemory = 8 * 1024;
/// What those who asked are given to get their answers at the end.
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

/// What a request's state points to from its first call on, so that its end is told.
char is_known;

/// The answer was written, or the connection is gone.
void end_of_request(void* self, MHD_Connection*, void** state, MHD_RequestTerminationCode) {
  if (*state != nullptr) static_cast<HttpServer*>(self)->end_request();
}

/// Called with the header, and once more when all of a request was read. What is answered at once
/// ends its connection, as there may be a body, which nobody wants.
MHD_Result handle(void* self, MHD_Connection* connection, const char* url, const char* method,
                  const char*, const char*, std::size_t* body, void** state) {
  const std::string_view name(method);
  const bool may_have_body = name != MHD_HTTP_METHOD_GET && name != MHD_HTTP_METHOD_HEAD;
  if (*state == nullptr) {
    *state = &is_known;
    static_cast<HttpServer*>(self)->begin_request();
    if (!may_have_body) return MHD_YES;
  }
  if (*body != 0) return MHD_NO;
  const auto value_of = [&](MHD_ValueKind kind, const char* key) {
    const char* const value = MHD_lookup_connection_value(connection, kind, key);
    return value == nullptr ? std::string_view() : std::string_view(value);
  };
  const HttpRequest request{name, url, value_of(MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST),
                            value_of(MHD_GET_ARGUMENT_KIND, "per_thread") == "1",
                            value_of(MHD_GET_ARGUMENT_KIND, "value")};
  return send_response(connection, static_cast<HttpServer*>(self)->answer(request));
}

}  // namespace

HttpServer::HttpServer(core::Fd listener, Handler handler, unsigned most)
    : handler_(std::move(handler)) {
  errno = 0;
  daemon_.reset(MHD_start_daemon(
      MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC, 0, nullptr, nullptr, &handle, this,
      MHD_OPTION_LISTEN_SOCKET, listener.get(), MHD_OPTION_NOTIFY_COMPLETED, &end_of_request, this,
      MHD_OPTION_CONNECTION_LIMIT, most, MHD_OPTION_CONNECTION_TIMEOUT, kPatience,
      MHD_OPTION_CONNECTION_MEMORY_LIMIT, kRequestMemory, MHD_OPTION_END));
  if (!daemon_ && errno != 0) core::throw_thread_error("libmicrohttpd does not start", errno);
  if (!daemon_) throw core::Error(core::ErrorCode::driver, "libmicrohttpd does not start");
  (void)listener.release();  // the daemon closes it
}

HttpServer::~HttpServer() {
  // The listener is this object's again.
  const core::Fd listener(MHD_quiesce_daemon(daemon_.get()));
  std::unique_lock lock(mutex_);
  answered_.wait_for(lock, kFarewell, [this] { return under_way_ == 0; });
}

void HttpServer::begin_request() {
  const std::lock_guard lock(mutex_);
  ++under_way_;
}

void HttpServer::end_request() {
  const std::lock_guard lock(mutex_);
  --under_way_;
  answered_.notify_all();
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
