#pragma once

#include <cstdint>

#include "doca/device.hpp"
#include "doca/eth/port.hpp"
#include "doca/include/doca_eth_rxq.h"
#include "doca/include/doca_eth_txq.h"

namespace offload::doca {

/// The most entries of a queue: far more than a card has.
inline constexpr std::uint32_t kMostBurst = 32768;

/// Returns whether contexts of Ethernet can be made of a device.
inline bool has_eth(const doca_devinfo& devinfo) noexcept {
  return EthPort::is_supported() && !devinfo.interface.empty();
}

}  // namespace offload::doca
