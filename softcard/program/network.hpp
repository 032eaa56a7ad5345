#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>

#include "softcard/card/card.hpp"
#include "softcard/program/datagrams.hpp"
#include "softcard/program/ethernet.hpp"
#include "softcard/program/link.hpp"

namespace offload::softcard {

/// The network to the cards of other machines: UDP datagrams, and Ethernet frames as they are. One
/// thread.
class Network : public rdma::model::Wire {
 public:
  /// Not that of RoCE v2, which the kernel's Soft-RoCE holds.
  static constexpr std::uint16_t kPort = 14791;

  /// Loses `lost_percent` of the datagrams to be sent, selected by `seed`. `interface`: for frames;
  /// empty: none leave the card. Throws Error.
  Network(std::uint32_t lost_percent, std::uint32_t seed, std::string interface);

  /// Lets frames come and go, and tells the card the port's address. Throws Error.
  void open_ethernet(rdma::model::Card& card);
  void close_ethernet() noexcept { ethernet_.reset(); }

  void send(std::uint32_t address, std::span<const std::byte> datagram) override;
  void send_frame(std::span<const std::byte> frame) override {
    if (ethernet_) ethernet_->send(frame);
  }
  /// Sends a message of the kernel's connection manager to the card of that address.
  void send(std::uint32_t address, const softcard_mad& message);
  /// Hands the datagrams and frames that have come to the card or to the module. Returns whether
  /// there were any.
  bool receive(rdma::model::Card& card, Link& link);

 private:
  bool receive_datagrams(rdma::model::Card& card, Link& link);

  Datagrams datagrams_;
  std::string interface_;
  std::optional<Ethernet> ethernet_;
  std::uint32_t lost_percent_;
  std::minstd_rand random_;
};

}  // namespace offload::softcard
