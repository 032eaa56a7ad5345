#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

/// The commands of libmlx5 without a card: fake_mlx5.hpp's functions for devx. Commands are kept,
/// and objects are counted in fake().open.
namespace offload::rdma::test {

/// The words of a command that are not 0, in the host's byte order, by their first byte.
using DevxWords = std::map<std::uint32_t, std::uint32_t>;

struct DevxCall {
  std::uint32_t object = 0;  ///< that it changes; 0: none
  std::size_t size = 0;      ///< bytes
  DevxWords words;

  friend bool operator==(const DevxCall&, const DevxCall&) = default;
};

/// Memory that libmlx5 was asked to make known to the card.
struct DevxSpace {
  void* address = nullptr;
  std::size_t size = 0;
  std::uint32_t access = 0;
  std::uint64_t page_sizes = 0;
  bool is_dma_buf = false;
  int dma_buf = 0;

  friend bool operator==(const DevxSpace&, const DevxSpace&) = default;
};

struct FakeDevx {
  static constexpr std::uint32_t kDomain = 0x00d0'd1d2;
  static constexpr std::uint32_t kEvents = 0x2a;  ///< the card's queue of events
  static constexpr std::uint32_t kFirstSpace = 0x5a5a'0001;
  static constexpr std::uint32_t kFirstRegisters = 0x007a'0001;
  static constexpr std::uint32_t kFirstObject = 0x00c0'0001;
  static constexpr std::uint8_t kPeerMac[] = {0x02, 0x11, 0x22, 0x33, 0x44, 0x55};

  std::map<std::uint32_t, DevxWords> answers;  ///< to a query, by its mode
  std::vector<DevxCall> calls;
  std::vector<DevxSpace> spaces;
  std::vector<std::uint32_t> kinds;    ///< of registers
  std::uint32_t made = 0;              ///< objects
  alignas(64) std::byte page[4096]{};  ///< of registers, the same for all
};

/// The test assigns {} to begin.
FakeDevx& fake_devx();

}  // namespace offload::rdma::test
