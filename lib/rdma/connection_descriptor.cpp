#include "rdma/connection_descriptor.hpp"

#include <algorithm>
#include <iterator>
#include <string>

#include "core/error.hpp"
#include "kernels/services/crc32c.hpp"
#include "protocol/bytes.hpp"

namespace offload::rdma {
namespace {

using core::Error;
using core::ErrorCode;
using protocol::Reader;
using protocol::Writer;

constexpr std::uint8_t kInfiniBand = 1;
constexpr std::uint8_t kEthernet = 2;

void require(bool condition, const char* why) {
  if (condition) return;
  throw Error(ErrorCode::bad_message, std::string("description of a connection: ") + why);
}

std::uint32_t checksum(std::span<const std::byte> bytes) {
  return kernels::Crc32c::of(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

/// The body of what is whole and of this version.
std::span<const std::byte> unwrap(std::span<const std::byte> bytes) {
  require(bytes.size() >= kDescriptorHeader + kDescriptorTrailer, "it is too short");
  Reader header(bytes.first(kDescriptorHeader));
  require(header.integer<std::uint32_t>() == kDescriptorMagic, "it does not begin like one");
  const auto version = header.integer<std::uint16_t>();
  require(header.integer<std::uint32_t>() == bytes.size(), "it is cut off, or has more behind it");
  const auto covered = bytes.first(bytes.size() - kDescriptorTrailer);
  require(Reader(bytes.last(kDescriptorTrailer)).integer<std::uint32_t>() == checksum(covered),
          "its checksum is wrong");
  if (version > kDescriptorVersion) {
    throw Error(ErrorCode::unsupported_version, "description of a connection: version " +
                                                    std::to_string(version) + ", known up to " +
                                                    std::to_string(kDescriptorVersion));
  }
  require(version == kDescriptorVersion, "there is no such version");
  require(bytes.size() == kDescriptorBytes, "its body is of another length");
  return covered.subspan(kDescriptorHeader);
}

void read_address(Reader& reader, ConnectionDescriptor& into) {
  const auto link_layer = reader.integer<std::uint8_t>();
  require(link_layer == kEthernet || link_layer == kInfiniBand, "a link layer that is unknown");
  into.ethernet = link_layer == kEthernet;
  into.lid = reader.integer<std::uint16_t>();
  for (std::uint8_t& byte : into.gid.raw) byte = reader.integer<std::uint8_t>();
  const bool has_gid = std::any_of(std::begin(into.gid.raw), std::end(into.gid.raw),
                                   [](std::uint8_t byte) { return byte != 0; });
  require(into.ethernet ? has_gid && into.lid == 0 : into.lid != 0,
          "an address that its link layer does not have");
}

}  // namespace

std::vector<std::byte> ConnectionDescriptor::encode() const {
  Writer writer;
  writer.integer(kDescriptorMagic)
      .integer(kDescriptorVersion)
      .integer(static_cast<std::uint32_t>(kDescriptorBytes))
      .integer(static_cast<std::uint8_t>(transport))
      .integer(ethernet ? kEthernet : kInfiniBand)
      .integer(lid);
  for (const std::uint8_t byte : gid.raw) writer.integer(byte);
  auto blob = writer.integer(queue_pair)
                  .integer(first_packet)
                  .integer(static_cast<std::uint8_t>(mtu))
                  .integer(reads_in)
                  .take();
  const auto trailer = Writer{}.integer(checksum(blob)).take();
  blob.insert(blob.end(), trailer.begin(), trailer.end());
  return blob;
}

ConnectionDescriptor ConnectionDescriptor::decode(std::span<const std::byte> bytes) {
  Reader reader(unwrap(bytes));
  ConnectionDescriptor result;
  result.transport = static_cast<Transport>(reader.integer<std::uint8_t>());
  require(result.transport == Transport::rc || result.transport == Transport::uc,
          "a transport that has no connections");
  read_address(reader, result);
  result.queue_pair = reader.integer<std::uint32_t>();
  result.first_packet = reader.integer<std::uint32_t>();
  require(result.queue_pair <= kMost24Bits && result.first_packet <= kMost24Bits,
          "a number of more than 24 bits");
  // 0 and 1 are the management's own.
  require(result.queue_pair > 1, "a queue pair that is nobody's");
  const auto mtu = reader.integer<std::uint8_t>();
  require(mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096, "an MTU that is unknown");
  result.mtu = static_cast<ibv_mtu>(mtu);
  result.reads_in = reader.integer<std::uint8_t>();
  require(reader.finished(), "its body is of another length");
  return result;
}

}  // namespace offload::rdma
