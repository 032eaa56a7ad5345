#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <utility>

#include "rdma/verbs/gid.hpp"
#include "rdma/verbs/handle.hpp"
#include "rdma/verbs/protection_domain.hpp"

namespace offload::rdma {

/// How packets get to a peer: over RoCE by GID, over InfiniBand by LID, with a GID beyond the
/// subnet.
struct Path {
  std::uint8_t port = 1;  ///< of this device
  std::uint16_t lid = 0;  ///< the peer's; 0 over RoCE
  bool global = true;     ///< with the fields below (the global routing header); always over RoCE
  ibv_gid gid{};          ///< the peer's
  std::uint8_t source_gid = 0;  ///< index of one's own GID
  std::uint8_t hop_limit = 64;  ///< as IP's usual one
  std::uint8_t traffic_class = 0;
  std::uint32_t flow_label = 0;
  std::uint8_t service_level = 0;
};

/// The same in libibverbs's words.
inline ibv_ah_attr to_native(const Path& path) noexcept {
  ibv_ah_attr attributes{};
  attributes.port_num = path.port;
  attributes.dlid = path.lid;
  attributes.sl = path.service_level;
  attributes.is_global = path.global ? 1 : 0;
  if (path.global) {
    attributes.grh = {path.gid, path.flow_label, path.source_gid, path.hop_limit,
                      path.traffic_class};
  }
  return attributes;
}

/// A path that datagrams are sent by. Move-only; the domain outlives it.
class AddressHandle {
 public:
  /// Throws Error.
  AddressHandle(const ProtectionDomain& domain, const Path& path) {
    ibv_ah_attr attributes = to_native(path);
    native_ = {check_pointer(ibv_create_ah(domain.get(), &attributes),
                             "make a path to " + to_string(path.gid)),
               "a path"};
  }
  [[nodiscard]] ibv_ah* get() const noexcept { return native_.get(); }

 private:
  Handle<ibv_ah, ibv_destroy_ah> native_;
};

}  // namespace offload::rdma
