#include "telemetry/http_server.hpp"

#include <microhttpd.h>

#include <utility>

#include "core/error.hpp"

namespace offload::telemetry {
namespace {

/// Of one connection, for its header lines: scrapers send some hundred bytes.
constexpr std::size_t kRequestMemory = 8 * 1024;

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

/// Called with the header, and once more when all of a request was read. What is answered at once
/// ends its connection, as there may be a body, which nobody wants.
MHD_Result handle(void* self, MHD_Connection* connection, const char* url, const char* method,
                  const char*, const char*, std::size_t* body, void** state) {
  static char header_was_read;
  const bool may_have_body = std::string_view(method) != MHD_HTTP_METHOD_GET;
  if (*state == nullptr && !may_have_body) {
    *state = &header_was_read;
    return MHD_YES;
  }
  if (*body != 0) return MHD_NO;
  const auto argument = [&](const char* name) {
    const char* const value = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
    return value == nullptr ? std::string_view() : std::string_view(value);
  };
  const HttpRequest request{method, url, argument("per_thread") == "1", argument("value")};
  return send_response(connection, static_cast<HttpServer*>(self)->answer(request));
}

}  // namespace

HttpServer::HttpServer(core::Fd listener, Handler handler) : handler_(std::move(handler)) {
  daemon_.reset(MHD_start_daemon(
      MHD_USE_EPOLL_INTERNAL_THREAD, 0, nullptr, nullptr, &handle, this, MHD_OPTION_LISTEN_SOCKET,
      listener.get(), MHD_OPTION_CONNECTION_LIMIT, kMostConnections, MHD_OPTION_CONNECTION_TIMEOUT,
      kPatience, MHD_OPTION_CONNECTION_MEMORY_LIMIT, kRequestMemory, MHD_OPTION_END));
  if (!daemon_) throw core::Error(core::ErrorCode::driver, "libmicrohttpd does not start");
  (void)listener.release();  // the daemon closes it
}

HttpServer::~HttpServer() = default;

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
