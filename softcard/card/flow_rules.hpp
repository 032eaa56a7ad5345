#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace offload::rdma::model {

/// The fields of a frame by which a card chooses its queue, in network order. A field that the
/// frame does not have is 0.
struct FrameFields {
  std::array<std::uint8_t, 6> destination{};
  std::array<std::uint8_t, 6> source{};
  std::array<std::uint8_t, 2> ethertype{};        ///< behind VLAN tags
  std::array<std::uint8_t, 2> tag{};              ///< the first one
  std::array<std::uint8_t, 16> source_address{};  ///< of IPv4: the first four bytes
  std::array<std::uint8_t, 16> destination_address{};
  std::array<std::uint8_t, 2> source_port{};
  std::array<std::uint8_t, 2> destination_port{};
  std::uint8_t protocol = 0;   ///< of IP
  std::uint8_t is_tagged = 0;  ///< 1: it has a VLAN tag
  std::array<std::uint8_t, 2> unused{};
};

/// Reads a frame of at least kernels::rdma::kLeastFrame bytes. A wrong checksum changes nothing.
FrameFields fields_of(std::span<const std::byte> frame);

/// Steers frames whose fields have the bits of `value` where `mask` has ones.
struct FlowRule {
  std::uint32_t pair = 0;      ///< the number of the queue pair that takes them
  std::uint32_t priority = 0;  ///< a rule with a lower number is applied first
  FrameFields value{};
  FrameFields mask{};
};

/// The rules of a port. One thread.
class FlowRules {
 public:
  void add(std::uint32_t number, const FlowRule& rule);
  void remove(std::uint32_t number);
  [[nodiscard]] bool empty() const noexcept { return rules_.empty(); }

  /// Returns the queue pair that takes a frame; none: no rule matches. The oldest rule of a
  /// priority is applied.
  [[nodiscard]] std::optional<std::uint32_t> find(const FrameFields& fields) const;

 private:
  struct Numbered {
    std::uint32_t number;
    FlowRule rule;
  };
  std::vector<Numbered> rules_;  // in the order in which they are applied
};

}  // namespace offload::rdma::model
