#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string_view>

namespace offload::rdma {

/// What a queue pair promises.
enum class Transport : std::uint8_t {
  rc,  ///< reliable connection: all operations, each arrives once and in order, or an error
  uc,  ///< unreliable connection: sends and writes; what is lost is not told
  ud,  ///< unreliable datagram: sends of at most the MTU, to any peer
};

constexpr std::string_view name_of(Transport transport) noexcept {
  switch (transport) {
    case Transport::rc: return "RC";
    case Transport::uc: return "UC";
    case Transport::ud: return "UD";
  }
  return "unknown";
}

constexpr ibv_qp_type to_native(Transport transport) noexcept {
  switch (transport) {
    case Transport::uc: return IBV_QPT_UC;
    case Transport::ud: return IBV_QPT_UD;
    case Transport::rc: break;
  }
  return IBV_QPT_RC;
}

}  // namespace offload::rdma
