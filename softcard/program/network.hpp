#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "core/fd.hpp"
#include "softcard/card/card.hpp"
#include "softcard/program/link.hpp"

namespace offload::softcard {

/// The network to the cards of other machines: UDP datagrams. One thread.
class Network : public rdma::model::Wire {
 public:
  /// Not that of RoCE v2, which the kernel's Soft-RoCE holds.
  static constexpr std::uint16_t kPort = 14791;

  /// Loses `lost_percent` of the datagrams to be sent, selected by `seed`. Throws Error.
  Network(std::uint32_t lost_percent, std::uint32_t seed);

  void send(std::uint32_t address, std::span<const std::byte> datagram) override;
  /// Sends a message of the kernel's connection manager to the card of that address.
  void send(std::uint32_t address, const softcard_mad& message);
  /// Hands the datagrams that have come to the card or to the module. Returns whether there were
  /// any.
  bool receive(rdma::model::Card& card, Link& link);

 private:
  core::Fd fd_;
  std::uint32_t lost_percent_;
  std::minstd_rand random_;
  std::vector<std::byte> room_;
};

}  // namespace offload::softcard
