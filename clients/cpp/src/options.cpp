#include <chrono>

#include "clients/cpp/src/client.hpp"
#include "core/error.hpp"

namespace offload::clients {
namespace {

constexpr std::uint16_t kPort = 12345;
constexpr std::uint32_t kRequests = 1024;
constexpr std::uint32_t kResponseLength = 16U << 20;  ///< what a server can be set to
constexpr std::uint32_t kMostResponseLength = 1U << 30;

core::Duration duration_of(std::int32_t time, core::Duration by_default) {
  if (time < 0) return core::Duration::max();
  return time == 0 ? by_default : std::chrono::milliseconds(time);
}

std::string text_of(const char* text) {
  return text != nullptr ? text : "";
}

[[noreturn]] void refuse(const std::string& why) {
  throw core::Error(core::ErrorCode::invalid_value, why);
}

std::optional<net::TlsContext> tls_of(const offload_client_options& options) {
  const bool has_certificate = options.tls_certificate != nullptr;
  if (has_certificate != (options.tls_key != nullptr)) {
    refuse("tls_certificate and tls_key need each other");
  }
  if (options.use_tls == 0) {
    if (has_certificate || options.tls_ca != nullptr || options.tls_server_name != nullptr ||
        options.tls_crl != nullptr) {
      refuse("options of TLS need use_tls");
    }
    return {};
  }
  std::optional<net::TlsCertificate> own;
  if (has_certificate) own = {options.tls_certificate, options.tls_key};
  const char* const name = options.tls_server_name;
  return net::TlsContext::client(name != nullptr ? name : options.host, text_of(options.tls_ca),
                                 own, text_of(options.tls_crl));
}

}  // namespace

Settings read_options(const offload_client_options& options) {
  using std::chrono::seconds;
  if (options.host == nullptr || *options.host == '\0') refuse("host is missing");
  if (options.use_tls > 1) refuse("use_tls is neither 0 nor 1");
  if (options.max_response_length > kMostResponseLength) {
    refuse("invalid max_response_length " + std::to_string(options.max_response_length) +
           "; at most " + std::to_string(kMostResponseLength) + " is allowed");
  }
  const core::Duration reconnect = duration_of(options.reconnect_timeout, {});
  return {
      .host = options.host,
      .port = options.port != 0 ? options.port : kPort,
      .limits = {.requests = options.max_in_flight != 0 ? options.max_in_flight : kRequests,
                 .response_length = options.max_response_length != 0 ? options.max_response_length
                                                                     : kResponseLength,
                 .retries = reconnect != core::Duration::zero()},
      .connect_timeout = duration_of(options.connect_timeout, seconds(10)),
      .timeout = duration_of(options.timeout, seconds(30)),
      .reconnect_timeout = reconnect,
      .tls = tls_of(options)};
}

}  // namespace offload::clients
