#include "comch/transport/local/control.hpp"
#include "comch/transport/tcp/control.hpp"
#include "comch/transport/transport.hpp"
#include "tests/comch/conformance/example_transport/control.hpp"

namespace offload::comch {

/// Takes the place of the library's table (lib/comch/transport/schemes.cpp) when linked.
std::span<const Transport> transports() noexcept {
  using namespace example;
  static constexpr Transport kTransports[] = {
      {"unix", "PATH", parse_path, connect_local, listen_local, true},
      {"tcp", "HOST:PORT", parse_host_and_port, connect_tcp, listen_tcp, false},
      {"stream", "PATH", parse_path, connect_stream, listen_stream, false},
  };
  return kTransports;
}

}  // namespace offload::comch
