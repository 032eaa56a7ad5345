#include "comch/transport/rdma/adapters.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <netinet/in.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "device/device.hpp"
#include "net/source/source.hpp"

namespace offload::comch {
namespace {

using core::Error;
using core::ErrorCode;

void add_to(const core::Fd& epoll, int fd) {
  epoll_event event{EPOLLIN, {.fd = fd}};
  core::check_errno(::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
}

/// Returns the GID of an address: an IPv6 address, or an IPv4 address mapped into IPv6.
ibv_gid gid_of(const net::SocketAddress& address) {
  const net::IpBytes bytes = net::ip_bytes(address.storage);
  ibv_gid gid{};
  static_assert(sizeof gid.raw == sizeof bytes);
  std::memcpy(gid.raw, bytes.data(), bytes.size());
  return gid;
}

/// Returns the index of the interface of a link-local address; 0 for other addresses.
std::uint32_t interface_of(const net::SocketAddress& address) {
  sockaddr_in6 in6{};
  if (address.storage.ss_family != AF_INET6) return 0;
  std::memcpy(&in6, &address.storage, sizeof in6);
  return in6.sin6_scope_id;
}

}  // namespace

core::Fd watch_all(std::initializer_list<int> fds) {
  core::Fd epoll(core::check_errno(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1"));
  for (const int fd : fds) add_to(epoll, fd);
  return epoll;
}

Adapters::Open::Open(const std::string& name)
    : adapter(std::make_shared<Adapter>(name)),
      events(adapter->device, [this](const ibv_async_event& event) {
        core::log_warning("{} reports: {}", adapter->device.name(),
                          ibv_event_type_str(event.event_type));
        if (event.event_type == IBV_EVENT_DEVICE_FATAL) {
          adapter->has_failed.store(true, std::memory_order_relaxed);
        }
      }) {}

Adapters::Adapters(rdma::PathChoice choice) : choice_(std::move(choice)), epoll_(watch_all({})) {}

std::string Adapters::log_events() {
  std::string failed;
  for (const auto& each : open_) each->events.deliver();
  std::erase_if(open_, [&](const auto& each) {
    if (!each->adapter->has_failed.load(std::memory_order_relaxed)) return false;
    failed = each->adapter->device.name();
    // Connections may keep it open for longer.
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, each->events.fd(), nullptr);
    return true;
  });
  return failed;
}

/// Returns the names of the devices that may have an address.
std::vector<std::string> Adapters::candidates() const {
  const device::DeviceList found = device::list_rdma_devices();
  if (!found.why_none.empty()) throw Error(ErrorCode::not_supported, found.why_none);
  if (!choice_.device.empty()) {
    try {
      return {device::find(found.devices, choice_.device).name};
    } catch (const Error& error) {
      throw Error(ErrorCode::not_supported, std::string("--rdma-device: ") + error.what());
    }
  }
  std::vector<std::string> names;
  for (const device::Device& each : found.devices) names.push_back(each.name);
  return names;
}

std::shared_ptr<Adapter> Adapters::find_open(const std::string& name) const {
  const auto there = std::ranges::find_if(
      open_, [&](const auto& each) { return each->adapter->device.name() == name; });
  return there != open_.end() ? (*there)->adapter : nullptr;
}

std::shared_ptr<Adapter> Adapters::open(const std::string& name) {
  if (auto there = find_open(name)) return there;
  auto opened = std::make_unique<Open>(name);
  add_to(epoll_, opened->events.fd());
  return open_.emplace_back(std::move(opened))->adapter;
}

Adapters::Place Adapters::find(const net::SocketAddress& own) {
  std::vector<std::string> names = candidates();
  std::stable_partition(names.begin(), names.end(),
                        [this](const auto& name) { return find_open(name) != nullptr; });
  std::exception_ptr reason;
  for (const std::string& name : names) {
    try {
      const auto there = find_open(name);
      const auto path =
          there ? path_at(there->device, own) : path_at(rdma::DeviceContext(name), own);
      if (!path) continue;
      Place place{open(name), *path};
      log(own, rdma::describe(place.adapter->device, place.path));
      return place;
    } catch (const Error&) {
      if (!reason) reason = std::current_exception();
    }
  }
  // The reason of a device that may have the address.
  if (reason) std::rethrow_exception(reason);
  throw Error(ErrorCode::not_found,
              fmt::format("no RDMA device has the address {}, of {}: use an address of an RDMA "
                          "device, or name the device with --rdma-device",
                          own.host(), fmt::join(names, ", ")));
}

std::optional<rdma::PathOptions> Adapters::path_at(const rdma::DeviceContext& device,
                                                   const net::SocketAddress& own) const {
  return rdma::path_at(device, gid_of(own), interface_of(own), choice_);
}

void Adapters::check_choice() const {
  std::exception_ptr reason;
  for (const std::string& name : candidates()) {
    const rdma::DeviceContext device(name);
    for (unsigned port = 1; port <= device.attributes().phys_port_cnt; ++port) {
      rdma::PathOptions path;
      path.port_num = static_cast<std::uint8_t>(port);
      try {
        rdma::mark_path(device, choice_, path);
        return static_cast<void>(rdma::describe(device, path));
      } catch (const Error&) {
        reason = std::current_exception();
      }
    }
  }
  if (reason) std::rethrow_exception(reason);
}

void Adapters::log(const net::SocketAddress& own, const std::string& path) {
  if (path == described_) return;
  described_ = path;
  core::log_info("RDMA for {}: {}", own.host(), path);
}

}  // namespace offload::comch
