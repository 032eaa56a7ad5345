#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/fd.hpp"
#include "softcard/card/card.hpp"

namespace offload::softcard {

/// The port's Ethernet: frames of queue pairs for raw packets as they are, through a network
/// interface of this machine (packet(7)). The kernel of Linux gets the frames of the wire too. One
/// thread.
class Ethernet {
 public:
  /// Throws Error.
  explicit Ethernet(const std::string& interface);

  [[nodiscard]] const std::array<std::uint8_t, 6>& address() const noexcept { return address_; }
  /// A frame that cannot be sent is lost, as on the way.
  void send(std::span<const std::byte> frame) noexcept;
  /// Hands the frames that have come to the card. Returns whether there were any.
  bool receive(rdma::model::Card& card);

 private:
  core::Fd fd_;
  std::array<std::uint8_t, 6> address_{};
  std::vector<std::byte> room_;
};

}  // namespace offload::softcard
