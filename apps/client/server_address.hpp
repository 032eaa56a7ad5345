#pragma once

#include <string>

#include "apps/client/options.hpp"

namespace offload::client {

/// Takes the port of a server's address such as 10.0.0.2:7000 or [fd00::2]:7000; any other text is
/// an address or a name. Returns the error, empty if there is none. `has_port_option`: the port was
/// given by --server-ip-port, too.
std::string take_port_of_address(Options& options, bool has_port_option);

}  // namespace offload::client
