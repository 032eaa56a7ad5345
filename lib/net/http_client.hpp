#pragma once

#include <string>

#include "core/clock.hpp"

namespace offload::net {

struct HttpQuestion {
  std::string url;          ///< http://HOST:PORT/PATH
  std::string unix_socket;  ///< path of the socket instead of the host's address; empty: none
  std::string value;        ///< goes behind ?value=, escaped; empty: none
  bool posts = false;       ///< POST without a body, else GET
};

struct HttpAnswer {
  long status;  ///< 200, ...
  std::string body;
};

/// Asks once, past any proxy, and waits for at most `limit`. Throws Error: not_connected if no
/// answer comes; not_permitted if the UNIX socket belongs to another user than this one and root.
/// Root also trusts the owner of the socket's folder, if nobody else may write there: a service
/// that runs as a user of its own.
HttpAnswer ask(const HttpQuestion& question, core::Duration limit);

}  // namespace offload::net
