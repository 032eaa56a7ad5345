// A client of offload-server in C++17: offload_client.h with owners, strings and exceptions. All of
// it is in this header, so the library's binary interface is that of C.
#ifndef OFFLOAD_CLIENT_CLIENT_HPP
#define OFFLOAD_CLIENT_CLIENT_HPP

#include <offload_client.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace offload {

/// A call or a request that failed: its offload_status, and the text for people.
class Error : public std::runtime_error {
 public:
  Error(int status, const std::string& text)
      : std::runtime_error(text.empty() ? offload_client_status_name(status) : text),
        status_(status) {}

  [[nodiscard]] int status() const noexcept { return status_; }
  /// "timed_out", "worker_unavailable", ...
  [[nodiscard]] const char* name() const noexcept { return offload_client_status_name(status_); }

 private:
  int status_;
};

/// How a submitted request ended.
struct Response {
  std::uint64_t tag;
  int status;             ///< offload_status
  std::string_view data;  ///< valid until the client's next call
  std::string error;      ///< why, unless status is OFFLOAD_OK
};

/// A request's own settings.
struct RequestOptions {
  std::chrono::milliseconds timeout{0};  ///< 0: that of the client; negative: none
  bool idempotent = false;               ///< may be sent again after a lost connection
};

/// A connection to an offload-server. Threads, processes and time limits: see offload_client.h.
class Client {
 public:
  /// The options, whose struct_size is set here. Throws Error.
  explicit Client(offload_client_options options) {
    options.struct_size = sizeof options;
    offload_client* opened = nullptr;
    const int status = offload_client_open(&options, &opened);
    client_.reset(opened);
    check(status);
  }
  explicit Client(const std::string& host, std::uint16_t port = 0)
      : Client(make_options(host.c_str(), port)) {}

  /// Returns the response to one request. Throws Error.
  std::string call(std::string_view request, const RequestOptions& options = {}) {
    const offload_client_request asked = make_request(request, 0, options);
    offload_client_response response;
    check(offload_client_call(client_.get(), &asked, &response));
    return {static_cast<const char*>(response.data), response.size};
  }

  /// Adds a request to those in flight. Returns false if too much is in flight: call wait() then.
  /// Throws Error.
  bool submit(std::string_view request, std::uint64_t tag = 0, const RequestOptions& options = {}) {
    const offload_client_request asked = make_request(request, tag, options);
    const int status = offload_client_submit(client_.get(), &asked);
    if (status != OFFLOAD_FULL) check(status);
    return status != OFFLOAD_FULL;
  }

  /// Returns the next request that is complete; nothing if none is in flight, or none was complete
  /// within `timeout` (negative: no limit). Throws Error.
  std::optional<Response> wait(std::chrono::milliseconds timeout = std::chrono::milliseconds(-1)) {
    offload_client_response response;
    const int status = offload_client_wait(client_.get(), limited(timeout), &response);
    if (status == OFFLOAD_NOTHING || status == OFFLOAD_IDLE) return std::nullopt;
    check(status);
    if (response.status != OFFLOAD_OK) {
      return Response{response.tag, response.status, {}, offload_client_error(client_.get())};
    }
    return Response{response.tag,
                    OFFLOAD_OK,
                    std::string_view(static_cast<const char*>(response.data), response.size),
                    {}};
  }

  /// Readable when wait() has work to do; see offload_client_fd().
  [[nodiscard]] int fd() const noexcept { return offload_client_fd(client_.get()); }

 private:
  struct Close {
    void operator()(offload_client* client) const noexcept { offload_client_close(client); }
  };

  static offload_client_options make_options(const char* host, std::uint16_t port) {
    offload_client_options options{};
    options.host = host;
    options.port = port;
    return options;
  }
  static int limited(std::chrono::milliseconds time) {
    return time.count() < 0 ? -1
                            : static_cast<int>(std::min<std::int64_t>(time.count(), INT32_MAX));
  }
  static offload_client_request make_request(std::string_view data, std::uint64_t tag,
                                             const RequestOptions& options) {
    return {data.data(), data.size(), tag, limited(options.timeout),
            options.idempotent ? OFFLOAD_IDEMPOTENT : 0U};
  }
  void check(int status) const {
    if (status == OFFLOAD_OK) return;
    // Another thread may be in a call, whose text it is.
    const bool is_ours = status != OFFLOAD_NOT_OWNER;
    throw Error(status, is_ours ? offload_client_error(client_.get()) : "");
  }

  std::unique_ptr<offload_client, Close> client_;
};

}  // namespace offload

#endif
