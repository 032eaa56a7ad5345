#include "memory/region_blob.hpp"

#include <limits>

#include "core/error.hpp"
#include "protocol/bytes.hpp"

namespace offload::memory {
namespace {

using core::Error;
using protocol::Reader;
using protocol::Writer;

enum class Audience : std::uint8_t { process = 1, rdma = 2 };

void require(bool condition, const char* why) {
  kRegionEnvelope.require(condition, why);
}

void write(Writer& to, const PassedRange& range) {
  to.integer(static_cast<std::uint8_t>(range.kind)).integer(range.offset).integer(range.length);
}

void write(Writer& to, const RemoteRange& range) {
  to.integer(range.address).integer(range.length).integer(range.key);
}

void read(Reader& from, PassedRange& range) {
  range.kind = static_cast<DescriptorKind>(from.integer<std::uint8_t>());
  range.offset = from.integer<std::uint64_t>();
  range.length = from.integer<std::uint64_t>();
  require(range.kind == DescriptorKind::memfd || range.kind == DescriptorKind::dma_buf,
          "a descriptor has an unknown kind");
  require(range.kind != DescriptorKind::memfd || range.offset == 0, "a range is part of a memfd");
  // off_t is signed.
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  require(range.length != 0 && range.length <= kMost && range.offset <= kMost - range.length,
          "a range is empty or too long");
}

void read(Reader& from, RemoteRange& range) {
  range.address = from.integer<std::uint64_t>();
  range.length = from.integer<std::uint64_t>();
  range.key = from.integer<std::uint32_t>();
  require(range.address != 0 && range.length != 0, "a range is empty");
  require(range.length - 1 <= std::numeric_limits<std::uint64_t>::max() - range.address,
          "a range exceeds the address space");
}

template <class RangeType>
std::vector<RangeType> read_ranges(Reader& from) {
  const auto count = from.integer<std::uint16_t>();
  require(count != 0 && count <= kMaxRanges, "it has no ranges, or too many");
  std::vector<RangeType> ranges(count);
  for (RangeType& range : ranges) read(from, range);
  require(from.finished(), "its body has the wrong length");
  return ranges;
}

void require_process_access(Access access) {
  try {
    check_access(access);
  } catch (const Error& error) {
    require(false, error.what());
  }
}

}  // namespace

std::vector<std::byte> RegionBlob::encode() const {
  const bool is_remote = std::holds_alternative<std::vector<RemoteRange>>(ranges);
  Writer body;
  body.integer(static_cast<std::uint8_t>(is_remote ? Audience::rdma : Audience::process))
      .integer(static_cast<std::uint32_t>(access));
  std::visit(
      [&](const auto& list) {
        body.integer(static_cast<std::uint16_t>(list.size()));
        for (const auto& range : list) write(body, range);
      },
      ranges);
  return kRegionEnvelope.wrap(body.take());
}

RegionBlob RegionBlob::decode(std::span<const std::byte> bytes) {
  Reader reader(kRegionEnvelope.unwrap(bytes));
  const auto audience = static_cast<Audience>(reader.integer<std::uint8_t>());
  RegionBlob blob;
  blob.access = static_cast<Access>(reader.integer<std::uint32_t>());
  switch (audience) {
    case Audience::process:
      require_process_access(blob.access);
      blob.ranges = read_ranges<PassedRange>(reader);
      return blob;
    case Audience::rdma:
      require(blob.access != Access::none && includes(kRemoteAccess, blob.access),
              "the access of a peer must have remote flags, and no others");
      blob.ranges = read_ranges<RemoteRange>(reader);
      return blob;
  }
  require(false, "its kind of importer is unknown");
  return blob;
}

}  // namespace offload::memory
