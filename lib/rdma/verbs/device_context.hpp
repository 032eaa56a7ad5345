#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.hpp"
#include "rdma/verbs/error.hpp"
#include "rdma/verbs/gid.hpp"

namespace offload::rdma {

/// The transport service of a queue pair (ibv_qp_type, ibv_create_qp(3)).
enum class QpType : std::uint8_t {
  rc,  ///< reliable connection: every operation arrives once and in order, or ends with an error
  uc,  ///< unreliable connection: sends and writes; a loss is not reported
  ud,  ///< unreliable datagram: sends of at most the MTU, to any peer
  raw_packet,  ///< whole Ethernet frames; rules of the card choose those that are received
};

/// "RC", "UC", "UD", "raw packet".
constexpr std::string_view name_of(QpType type) noexcept {
  switch (type) {
    case QpType::rc: return "RC";
    case QpType::uc: return "UC";
    case QpType::ud: return "UD";
    case QpType::raw_packet: return "raw packet";
  }
  return "unknown";
}

constexpr ibv_qp_type to_native(QpType type) noexcept {
  switch (type) {
    case QpType::uc: return IBV_QPT_UC;
    case QpType::ud: return IBV_QPT_UD;
    case QpType::raw_packet: return IBV_QPT_RAW_PACKET;
    case QpType::rc: break;
  }
  return IBV_QPT_RC;
}

/// An open RDMA device (ibv_context). It outlives every object made on it. Move-only; any thread
/// may call the const functions.
class DeviceContext {
 public:
  /// `name`: libibverbs' name of the device, such as "mlx5_0". Throws Error: not_found, which lists
  /// the devices; the errno of ibv_open_device.
  explicit DeviceContext(std::string_view name);
  /// Throws Error: invalid_value for a device of another kind, else as the constructor by name.
  explicit DeviceContext(const device::Device& device);
  /// Borrows a context that another library, such as librdmacm, opened and closes. Throws Error.
  static DeviceContext import(ibv_context* native);

  [[nodiscard]] ibv_context* get() const noexcept { return native_.get(); }
  [[nodiscard]] std::string name() const { return native_->device->name; }

  /// Its limits and abilities, as of when it was opened (ibv_query_device(3)).
  [[nodiscard]] const ibv_device_attr& attributes() const noexcept { return attributes_; }
  /// Returns whether its queue pairs can issue and execute atomic operations.
  [[nodiscard]] bool has_atomics() const noexcept {
    // Some drivers leave max_res_rd_atom at 0.
    return attributes_.atomic_cap != IBV_ATOMIC_NONE && attributes_.max_qp_rd_atom != 0 &&
           attributes_.max_qp_init_rd_atom != 0;
  }
  /// Returns whether the device has queue pairs of this type.
  [[nodiscard]] device::Support supports(QpType type) const;
  /// Returns whether memory can be registered without locking it (on-demand paging).
  [[nodiscard]] device::Support supports_on_demand_paging() const;

  /// Queries a port, numbered from 1. Throws Error.
  [[nodiscard]] ibv_port_attr port(std::uint8_t number = 1) const;
  /// Queries the partition keys of a port, by index. Throws Error.
  [[nodiscard]] std::vector<std::uint16_t> pkeys(std::uint8_t port = 1) const;
  /// Queries the GID table of a port. Throws Error.
  [[nodiscard]] std::vector<ibv_gid_entry> gids(std::uint8_t port = 1) const;

 private:
  using Native = Handle<ibv_context, ibv_close_device>;
  explicit DeviceContext(Native native);

  Native native_;
  ibv_device_attr attributes_{};
};

}  // namespace offload::rdma
