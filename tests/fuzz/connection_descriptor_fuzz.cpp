#include <vector>

#include "core/error.hpp"
#include "kernels/services/crc32c.hpp"
#include "protocol/bytes.hpp"
#include "rdma/connection_descriptor.hpp"
#include "tests/fuzz/input.hpp"

/// Anything, taken as the description of a connection: it is refused with an Error of two kinds, or
/// it is exactly what encode() writes. Once as it is, and once with length and checksum put right,
/// as a forger would.
namespace offload::fuzz {
namespace {

using Bytes = std::vector<std::byte>;

void decode(const Bytes& bytes) {
  try {
    const auto descriptor = rdma::ConnectionDescriptor::decode(bytes);
    require(descriptor.encode() == bytes, "a description is what was decoded");
  } catch (const core::Error& error) {
    require(error.code() == core::ErrorCode::bad_message ||
                error.code() == core::ErrorCode::unsupported_version,
            "it is refused as a message");
  }
}

void put_right(Bytes& bytes) {
  constexpr std::size_t kLengthAt = 6;
  if (bytes.size() < rdma::kDescriptorHeader + rdma::kDescriptorTrailer) return;
  protocol::store_big_endian(bytes.data(), rdma::kDescriptorMagic);
  protocol::store_big_endian(bytes.data() + kLengthAt, static_cast<std::uint32_t>(bytes.size()));
  const std::size_t covered = bytes.size() - rdma::kDescriptorTrailer;
  protocol::store_big_endian(
      bytes.data() + covered,
      kernels::Crc32c::of(reinterpret_cast<const std::uint8_t*>(bytes.data()), covered));
}

void run(Input input) {
  Bytes bytes(input.rest().begin(), input.rest().end());
  decode(bytes);
  put_right(bytes);
  decode(bytes);
}

}  // namespace
}  // namespace offload::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  offload::fuzz::run({data, size});
  return 0;
}
