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

/// Asks once, without a proxy, and waits for at most `limit`. Throws Error: not_connected if no
/// answer arrives, with the errno of connect() if that failed; not_permitted if the UNIX socket
/// belongs to a user other than this one and root. Root also trusts the owner of the socket's
/// folder, if no one else may write there: a service with a separate user.
HttpAnswer ask(const HttpQuestion& question, core::Duration limit);

}  // namespace offload::net
