#include "rdma/cm/route.hpp"

#include <arpa/inet.h>

#include <algorithm>

#include "core/error.hpp"
#include "rdma/cm/cm_id.hpp"

namespace offload::rdma {

sockaddr_storage CmAddress::native() const {
  sockaddr_storage storage{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
  if (::inet_pton(AF_INET, address.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
  } else if (::inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(port);
  } else {
    throw core::Error(core::ErrorCode::invalid_value,
                      "'" + address + "' is no IPv4 or IPv6 address");
  }
  return storage;
}

Route Route::of(const rdma_cm_id& id) {
  Route route;
  route.device = id.verbs->device->name;
  route.port = id.port_num;
  const ibv_gid& own = id.route.addr.addr.ibaddr.sgid;
  if (!is_unspecified(own)) route.gid.address = own;
  return route;
}

Route route_to(const CmAddress& to, core::Duration limit) {
  sockaddr_storage address = to.native();
  // Without a channel of events, librdmacm waits by itself.
  rdma_cm_id* id = nullptr;
  check(rdma_create_id(nullptr, &id, nullptr, RDMA_PS_TCP), "use librdmacm");
  const NativeCmId owner(id, "an identifier of librdmacm");
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(limit).count();
  check(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&address),
                          static_cast<int>(std::clamp<std::int64_t>(milliseconds, 1, 1 << 30))),
        "find an RDMA device that leads to " + to.address);
  if (id->verbs == nullptr) {
    throw core::Error(core::ErrorCode::not_supported, "no RDMA device leads to " + to.address);
  }
  return Route::of(*id);
}

}  // namespace offload::rdma
