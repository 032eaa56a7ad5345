#include "comch/transport/transport.hpp"

#include <algorithm>

#include "comch/transport/local/control.hpp"
#include "comch/transport/rdma/control.hpp"
#include "comch/transport/tcp/control.hpp"
#include "core/error.hpp"

namespace offload::comch {
namespace {

constexpr Transport kTransports[] = {
    {"unix", "PATH", parse_path, connect_local, listen_local, true},
    {"tcp", "HOST:PORT", parse_host_and_port, connect_tcp, listen_tcp, false},
    {"rdma", "HOST:PORT", parse_host_and_port, connect_rdma, listen_rdma, false},
};

}  // namespace

std::span<const Transport> transports() noexcept {
  return kTransports;
}

const Transport* find_transport(std::string_view scheme) noexcept {
  const auto* const found = std::ranges::find(kTransports, scheme, &Transport::scheme);
  return found != std::end(kTransports) ? found : nullptr;
}

const Transport& transport_of(std::string_view scheme) {
  if (const Transport* const transport = find_transport(scheme)) return *transport;
  throw core::Error(core::ErrorCode::invalid_value,
                    "no transport has the scheme '" + std::string(scheme) + "'");
}

}  // namespace offload::comch
