#include "comch/transport/rdma/adapter.hpp"

#include "core/log.hpp"

namespace offload::comch {

Adapter::Adapter(std::string_view name) : device(name), domain(device), registrar(domain) {}

rdma::PathOptions path_of(const rdma::Route& route) {
  rdma::PathOptions path;
  path.port_num = route.port_num;
  path.gid = route.gid;
  return path;
}

std::unique_ptr<rdma::AsyncEvents> log_events(const rdma::DeviceContext& device,
                                              progress::Engine& engine, bool* fatal) {
  return std::make_unique<rdma::AsyncEvents>(
      device, engine, [name = device.name(), fatal](const ibv_async_event& event) {
        core::log_warning("{} reports: {}", name, ibv_event_type_str(event.event_type));
        if (fatal != nullptr && event.event_type == IBV_EVENT_DEVICE_FATAL) *fatal = true;
      });
}

}  // namespace offload::comch
