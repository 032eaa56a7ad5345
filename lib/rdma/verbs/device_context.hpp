#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "device/device.hpp"
#include "rdma/verbs/gid.hpp"
#include "rdma/verbs/handle.hpp"
#include "rdma/verbs/transport.hpp"

namespace offload::rdma {

/// What atomic operations of peers are atomic with respect to.
enum class Atomics : std::uint8_t {
  none,    ///< there are none
  device,  ///< each other, through this device
  global,  ///< the processors and other devices too
};

/// The most that a device takes.
struct Limits {
  std::uint32_t queue_pairs = 0;
  std::uint32_t work_requests = 0;  ///< of one queue
  std::uint32_t gather = 0;         ///< pieces of memory in one request
  std::uint32_t completions = 0;    ///< of one completion queue
  std::uint32_t shared_receives = 0;
  std::uint32_t regions = 0;
  std::uint64_t region_bytes = 0;
  /// Reads and atomics under way of one queue pair: as the one who asks, and as the one who
  /// answers.
  std::uint8_t reads_out = 0;
  std::uint8_t reads_in = 0;
};

struct Port {
  std::uint8_t number = 1;
  ibv_port_state state = IBV_PORT_NOP;
  ibv_mtu mtu = IBV_MTU_256;
  bool ethernet = false;  ///< RoCE, where a path is a GID; else InfiniBand
  std::uint16_t lid = 0;

  [[nodiscard]] bool active() const noexcept { return state == IBV_PORT_ACTIVE; }
};

/// A device that is open for use. What is made on it must end before it. Move-only; the questions
/// may be asked by any thread.
class DeviceContext {
 public:
  /// `name`: as libibverbs lists it, "mlx5_0". Throws Error: not_found, with what there is;
  /// whatever opening says.
  explicit DeviceContext(std::string_view name);
  /// Throws Error: invalid_value for a device of another kind, else as above.
  explicit DeviceContext(const device::Device& device);
  /// One that another library has open, such as librdmacm, and closes. Throws Error.
  static DeviceContext import(ibv_context* native);

  [[nodiscard]] ibv_context* get() const noexcept { return native_.get(); }
  [[nodiscard]] std::string name() const { return native_->device->name; }

  [[nodiscard]] const Limits& limits() const noexcept { return limits_; }
  [[nodiscard]] Atomics atomics() const noexcept { return atomics_; }
  [[nodiscard]] std::uint8_t ports() const noexcept { return ports_; }

  /// Whether it has queue pairs of that kind.
  [[nodiscard]] device::Support supports(Transport transport) const;
  /// Whether memory need not be locked to be registered (on-demand paging).
  [[nodiscard]] device::Support supports_on_demand_paging() const;

  /// Its state now. Throws Error.
  [[nodiscard]] Port port(std::uint8_t number = 1) const;
  /// Its addresses now. Throws Error.
  [[nodiscard]] std::vector<Gid> gids(std::uint8_t port = 1) const;

 private:
  using Native = Handle<ibv_context, ibv_close_device>;
  explicit DeviceContext(Native native);

  Native native_;
  Limits limits_;
  Atomics atomics_ = Atomics::none;
  std::uint8_t ports_ = 0;
};

}  // namespace offload::rdma
