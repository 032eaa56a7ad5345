#include "comch/transport/local/control.hpp"
#include "comch/transport/rdma/control.hpp"
#include "comch/transport/tcp/control.hpp"
#include "comch/transport/transport.hpp"

namespace offload::comch {

/// All transports, in the order in which messages name them.
std::span<const Transport> transports() noexcept {
  static constexpr Transport kTransports[] = {
      {"unix", "PATH", parse_path, connect_local, listen_local, true},
      {"tcp", "HOST:PORT", parse_host_and_port, connect_tcp, listen_tcp, false},
      {"rdma", "HOST:PORT", parse_host_and_port, connect_rdma, listen_rdma, false},
  };
  return kTransports;
}

}  // namespace offload::comch
