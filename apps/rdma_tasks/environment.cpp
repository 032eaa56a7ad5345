#include "apps/rdma_tasks/environment.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "core/log.hpp"
#include "device/device.hpp"
#include "rdma/path/local_path.hpp"

namespace offload::rdma_tool {
namespace {

rdma::PathOptions path_of(const rdma::DeviceContext& device, const Options& options) {
  rdma::PathOptions path;
  path.port_num = options.rdma_port;
  if (!options.gid.empty()) path.gid.address = rdma::parse_gid(options.gid);
  rdma::mark_path(device, options.path, path);
  core::log_info("the path of all connections: {}", rdma::describe(device, path));
  return path;
}

}  // namespace

rdma::DeviceContext open_rdma_device(const std::string& selector) {
  const auto devices = device::list_devices();
  if (const auto why = device::list_rdma_devices().why_none; !why.empty()) {
    throw core::Error(core::ErrorCode::not_found, why);
  }
  return rdma::DeviceContext(device::find(devices, selector));
}

Environment::Environment(const Options& options, core::Signals& signals, std::uint32_t completions)
    : signals_(signals),
      timeout_(options.timeout),
      event_driven_(options.event_driven),
      lanes_(options.initiator == Initiator::gpu ? make_launcher(options.gpu) : nullptr),
      device_(open_rdma_device(options.path.device)),
      path_(path_of(device_, options)),
      domain_(device_),
      registrar_(domain_),
      completions_(device_, engine_, completions) {
  engine_.watch(signals_.fd(), EPOLLIN, *this);
}

Environment::~Environment() {
  engine_.unwatch(signals_.fd(), *this);
}

memory::Access Environment::peer_access() const noexcept {
  using memory::Access;
  const Access remote = Access::remote_read | Access::remote_write;
  const bool atomics = device_.attributes().atomic_cap != IBV_ATOMIC_NONE;
  return atomics ? remote | Access::remote_atomic : remote;
}

void Environment::on_events(std::uint32_t) {
  interrupted_ = signals_.take() != 0 || interrupted_;
}

void Environment::check() const {
  if (failure_) throw core::Error(*failure_);
  if (interrupted_) throw core::Interrupted{};
}

void Environment::turn(core::Duration interval) {
  if (event_driven_) {
    engine_.run_once(core::Clock::now() + std::min(interval, timeout_));
  } else {
    engine_.progress();
  }
  check();
}

void Environment::pause(core::Duration time) {
  const auto end = core::Clock::now() + time;
  for (check(); core::Clock::now() < end; check()) engine_.run_once(end);
}

void Environment::throw_timeout(const char* what) const {
  throw core::Error(core::ErrorCode::timed_out, fmt::format("timed out after {1} s waiting for {0}",
                                                            what, core::to_seconds(timeout_)));
}

void Environment::on_peer_disconnected() noexcept {
  if (!closing_) fail({core::ErrorCode::connection_reset, "the peer has disconnected"});
}

}  // namespace offload::rdma_tool
