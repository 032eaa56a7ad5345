#include "rdma_tasks/cm/cm_id.hpp"

#include <arpa/inet.h>
#include <net/if.h>

#include <cstdlib>
#include <utility>

namespace offload::rdma {
namespace {

NativeCmId create(rdma_event_channel* channel) {
  rdma_cm_id* id = nullptr;
  check(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), "use librdmacm");
  return {id, "an identifier of librdmacm"};
}

/// An interface's index by its name or number (RFC 4007 11.2); 0: there is none.
std::uint32_t scope_of(const std::string& zone) {
  const unsigned index = ::if_nametoindex(zone.c_str());
  return index != 0 ? index : static_cast<std::uint32_t>(std::strtoul(zone.c_str(), nullptr, 10));
}

CmEvent copy_of(const rdma_cm_event& event) {
  CmEvent copy;
  copy.type = event.event;
  copy.status = event.status;
  if (event.event == RDMA_CM_EVENT_CONNECT_REQUEST) copy.id = event.id;
  const auto* const data = static_cast<const std::byte*>(event.param.conn.private_data);
  if (data != nullptr) {
    copy.private_data.assign(data, data + event.param.conn.private_data_len);
  }
  return copy;
}

}  // namespace

sockaddr_storage CmAddress::native() const {
  sockaddr_storage storage{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
  const std::size_t end = address.find('%');
  const bool has_scope = end != std::string::npos;
  if (!has_scope && ::inet_pton(AF_INET, address.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    return storage;
  }
  const std::uint32_t scope = has_scope ? scope_of(address.substr(end + 1)) : 0;
  if (::inet_pton(AF_INET6, address.substr(0, end).c_str(), &v6.sin6_addr) != 1 ||
      (has_scope && scope == 0)) {
    throw core::Error(core::ErrorCode::invalid_value,
                      "'" + address + "' is not an IP address of this machine's networks");
  }
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  v6.sin6_scope_id = scope;
  return storage;
}

Route Route::of(const rdma_cm_id& id) {
  Route route;
  route.device = id.verbs->device->name;
  route.port_num = id.port_num;
  const ibv_gid& own = id.route.addr.addr.ibaddr.sgid;
  if (!is_unspecified(own)) route.gid.address = own;
  return route;
}

CmId::CmId(progress::Engine& engine, CmEventHandler& handler, NativeCmId requested)
    : engine_(&engine),
      handler_(&handler),
      channel_(check_pointer(rdma_create_event_channel(), "make a channel of librdmacm")) {
  if (requested.get() == nullptr) {
    id_ = create(channel_.get());
  } else {
    id_ = std::move(requested);
    check(rdma_migrate_id(id_.get(), channel_.get()), "rdma_migrate_id");
  }
  set_nonblocking(channel_->fd);
  engine_->watch(channel_->fd, EPOLLIN, *this);
}

CmId::~CmId() {
  engine_->unwatch(channel_->fd, *this);
}

void CmId::on_events(std::uint32_t) {
  // One event a call: the descriptor stays readable while there are more.
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(channel_.get(), &event) != 0) return;
  const CmEvent copy = copy_of(*event);
  // Before the handler is called: rdma_destroy_id(3) wants all events acknowledged.
  rdma_ack_cm_event(event);
  handler_->on_cm_event(copy);
}

}  // namespace offload::rdma
