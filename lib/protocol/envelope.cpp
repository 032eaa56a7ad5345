#include "protocol/envelope.hpp"

#include <string>

#include "core/error.hpp"
#include "kernels/crc32c.hpp"
#include "protocol/bytes.hpp"

namespace offload::protocol {
namespace {

using core::Error;
using core::ErrorCode;

std::uint32_t checksum(std::span<const std::byte> bytes) {
  return kernels::crc32c(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

}  // namespace

std::vector<std::byte> Envelope::wrap(std::span<const std::byte> body) const {
  const std::size_t length = kEnvelopeHeader + body.size() + kEnvelopeTrailer;
  auto blob = Writer{}
                  .integer(magic)
                  .integer(version)
                  .integer(static_cast<std::uint32_t>(length))
                  .fixed(body)
                  .take();
  const auto trailer = Writer{}.integer(checksum(blob)).take();
  blob.insert(blob.end(), trailer.begin(), trailer.end());
  return blob;
}

std::span<const std::byte> Envelope::unwrap(std::span<const std::byte> blob) const {
  require(blob.size() >= kEnvelopeHeader + kEnvelopeTrailer, "it is too short");
  require(blob.size() <= most_bytes, "it is too long");
  Reader header(blob.first(kEnvelopeHeader));
  require(header.integer<std::uint32_t>() == magic, "it has the wrong magic number");
  const auto its_version = header.integer<std::uint16_t>();
  require(header.integer<std::uint32_t>() == blob.size(), "it is truncated or too long");
  const auto covered = blob.first(blob.size() - kEnvelopeTrailer);
  require(Reader(blob.last(kEnvelopeTrailer)).integer<std::uint32_t>() == checksum(covered),
          "its checksum is wrong");
  if (its_version > version) {
    throw Error(ErrorCode::unsupported_version,
                std::string(name) + ": version " + std::to_string(its_version) +
                    "; the newest known version is " + std::to_string(version));
  }
  require(its_version == version, "its version is unknown");
  return covered.subspan(kEnvelopeHeader);
}

void Envelope::require(bool condition, const char* why) const {
  if (!condition) throw Error(ErrorCode::bad_message, std::string(name) + ": " + why);
}

}  // namespace offload::protocol
