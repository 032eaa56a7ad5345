#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/fd.hpp"

namespace offload::softcard {

/// A socket for UDP datagrams between cards, which all have one port. One thread.
class Datagrams {
 public:
  /// The options that set the size of a socket's buffers, and that size.
  struct Buffers {
    int receive_option;
    int send_option;
    int bytes;
  };

  /// Throws Error.
  Datagrams(std::uint16_t port, const Buffers& buffers);

  /// Takes an address of IPv4 as this end's. Returns false if another socket has it. Throws Error.
  [[nodiscard]] bool bind(std::uint32_t address);
  /// A datagram that cannot be sent is lost, as on the way.
  void send(std::uint32_t address, std::span<const std::byte> datagram) noexcept;
  /// Hands the datagrams that have come to `handler(address, datagram)`, 64 of them at most, so
  /// that queues get their turn too. Returns whether there were any.
  template <class Handler>
  bool receive(Handler handler) {
    for (int count = 0; count < kMostInTurn; ++count) {
      std::uint32_t from = 0;
      const auto datagram = receive_one(from);
      if (datagram.data() == nullptr) return count != 0;
      handler(from, datagram);
    }
    return true;
  }

 private:
  static constexpr int kMostInTurn = 64;

  /// Without a pointer if there is none.
  std::span<const std::byte> receive_one(std::uint32_t& from) noexcept;

  core::Fd fd_;
  std::uint16_t port_;
  std::vector<std::byte> room_;
};

}  // namespace offload::softcard
