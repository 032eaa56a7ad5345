#pragma once

#include <memory>
#include <string_view>

#include "core/log.hpp"
#include "progress/engine.hpp"
#include "rdma/cm/cm_id.hpp"
#include "rdma/connection/pairing.hpp"
#include "rdma/verbs/async_events.hpp"
#include "rdma/verbs/device_context.hpp"
#include "rdma/verbs/protection_domain.hpp"

namespace offload::comch {

/// An RDMA device, open for the control and data connections of its peers, by whichever of its
/// ports and addresses each of them is reached.
struct Adapter {
  /// Throws Error.
  explicit Adapter(std::string_view name) : device(name), domain(device), registrar(domain) {}

  rdma::DeviceContext device;
  rdma::ProtectionDomain domain;
  rdma::Registrar registrar;
};

/// The path of a connection by `route`.
inline rdma::PathOptions path_of(const rdma::Route& route) {
  rdma::PathOptions path;
  path.port_num = route.port_num;
  path.gid = route.gid;
  return path;
}

/// Logs the asynchronous events of `device` as long as the result lives. `fatal`, if it is not
/// null, is set when the device can be used no longer (IBV_EVENT_DEVICE_FATAL).
inline std::unique_ptr<rdma::AsyncEvents> log_events(const rdma::DeviceContext& device,
                                                     progress::Engine& engine,
                                                     bool* fatal = nullptr) {
  return std::make_unique<rdma::AsyncEvents>(
      device, engine, [name = device.name(), fatal](const ibv_async_event& event) {
        core::log_warning("{} reports: {}", name, ibv_event_type_str(event.event_type));
        if (fatal != nullptr && event.event_type == IBV_EVENT_DEVICE_FATAL) *fatal = true;
      });
}

}  // namespace offload::comch
