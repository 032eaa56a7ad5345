#include "rdma/path/connection_descriptor.hpp"

#include "protocol/bytes.hpp"

namespace offload::rdma {
namespace {

using protocol::Reader;
using protocol::Writer;

constexpr std::uint8_t kInfiniBand = 1;
constexpr std::uint8_t kEthernet = 2;

void require(bool condition, const char* why) {
  kDescriptorEnvelope.require(condition, why);
}

void read_address(Reader& reader, ConnectionDescriptor& into) {
  const auto link_layer = reader.integer<std::uint8_t>();
  require(link_layer == kEthernet || link_layer == kInfiniBand, "the link layer is unknown");
  into.ethernet = link_layer == kEthernet;
  into.lid = reader.integer<std::uint16_t>();
  reader.fixed(std::as_writable_bytes(std::span(into.gid.raw)));
  require(into.ethernet ? !is_unspecified(into.gid) && into.lid == 0 : into.lid != 0,
          "the address is not valid for its link layer");
}

}  // namespace

std::vector<std::byte> ConnectionDescriptor::encode() const {
  Writer writer;
  writer.integer(static_cast<std::uint8_t>(qp_type))
      .integer(ethernet ? kEthernet : kInfiniBand)
      .integer(lid)
      .fixed(std::as_bytes(std::span(gid.raw)))
      .integer(qp_num)
      .integer(psn)
      .integer(static_cast<std::uint8_t>(mtu))
      .integer(max_dest_rd_atomic);
  return kDescriptorEnvelope.wrap(writer.take());
}

ConnectionDescriptor ConnectionDescriptor::decode(std::span<const std::byte> bytes) {
  Reader reader(kDescriptorEnvelope.unwrap(bytes));
  ConnectionDescriptor result;
  result.qp_type = static_cast<QpType>(reader.integer<std::uint8_t>());
  require(result.qp_type == QpType::rc || result.qp_type == QpType::uc,
          "the transport has no connections");
  read_address(reader, result);
  result.qp_num = reader.integer<std::uint32_t>();
  result.psn = reader.integer<std::uint32_t>();
  require(result.qp_num <= kMax24Bits && result.psn <= kMax24Bits, "a number exceeds 24 bits");
  // Queue pairs 0 and 1 are for management: SMI and GSI (IBTA volume 1, chapter 13).
  require(result.qp_num > 1, "queue pairs 0 and 1 are for management");
  const auto mtu = reader.integer<std::uint8_t>();
  require(mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096, "the MTU is unknown");
  result.mtu = static_cast<ibv_mtu>(mtu);
  result.max_dest_rd_atomic = reader.integer<std::uint8_t>();
  require(reader.finished(), "its body has the wrong length");
  return result;
}

}  // namespace offload::rdma
