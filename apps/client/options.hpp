#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "apps/client/service.hpp"
#include "cli/leave.hpp"
#include "core/clock.hpp"

namespace offload::client {

/// The options of the command line, checked. The help text in options.cpp says what each means.
struct Options {
  std::string server_address;
  std::uint16_t server_port = 12345;
  bool tls = false;
  std::string tls_ca;           ///< empty: the system's
  std::string tls_server_name;  ///< empty: the server's address
  std::string tls_certificate;  ///< empty: none
  std::string tls_key;
  std::uint32_t thread_count = 1;
  std::uint32_t connections = 1;           ///< of each thread
  std::uint64_t iteration_count = 10'000;  ///< requests per connection; unused with `duration`
  std::optional<core::Duration> duration;
  std::string message = "hello";  ///< unused with `size`
  std::optional<std::string> expected_response;
  std::optional<std::uint32_t> size;
  std::uint32_t max_concurrent_messages = 128;
  Service service = Service::reverse;
  std::string json_file;  ///< empty: none
  core::Duration connect_timeout = core::seconds(10);
  core::Duration response_timeout = core::seconds(30);
  std::string log_level = "info";
};

std::variant<Options, cli::Leave> parse_options(int argc, const char* const* argv);

}  // namespace offload::client
