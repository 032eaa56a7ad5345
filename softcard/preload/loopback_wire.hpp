#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "softcard/card/card.hpp"
#include "softcard/program/datagrams.hpp"

namespace offload::softcard {

/// The network between the cards of the processes of one machine: UDP datagrams, each card with its
/// own address in 127.0.0.0/8. One thread.
class LoopbackWire final : public rdma::model::Wire {
 public:
  /// Throws Error.
  LoopbackWire();

  /// Returns the card's address.
  [[nodiscard]] std::uint32_t address() const noexcept { return address_; }
  void send(std::uint32_t address, std::span<const std::byte> datagram) override;
  /// Hands the datagrams that have come to the card. Returns whether there were any.
  bool receive(rdma::model::Card& card);

  /// Return how many datagrams were sent and have come.
  [[nodiscard]] std::uint64_t sent() const noexcept { return sent_; }
  [[nodiscard]] std::uint64_t received() const noexcept { return received_; }

 private:
  Datagrams datagrams_;
  std::uint32_t address_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t received_ = 0;
};

}  // namespace offload::softcard
