#include "memory/region_blob.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "protocol/bytes.hpp"
#include "tests/kernels/reference.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/memory.hpp"

namespace offload::memory {
namespace {

using core::ErrorCode;
using protocol::Writer;
using support::Bytes;
using support::bytes;
using support::thrown_by;

constexpr auto kMostSigned = std::uint64_t{std::numeric_limits<std::int64_t>::max()};

RegionBlob for_process() {
  return {kLocalAccess, std::vector<PassedRange>{{DescriptorKind::memfd, 0, 4096},
                                                 {DescriptorKind::dma_buf, 8192, 0x1'0000'0000}}};
}

RegionBlob for_peer() {
  return {Access::remote_read | Access::remote_write,
          std::vector<RemoteRange>{{0x7fff'0000'0000, 1, 0xffff'ffff}, {1, kMost, 0}}};
}

Bytes join(Bytes first, const Bytes& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// Returns the blob followed by its checksum.
Bytes with_checksum(const Bytes& blob) {
  kernels::test::Octets octets;
  for (const std::byte byte : blob) octets.push_back(std::to_integer<std::uint8_t>(byte));
  return join(blob, Writer{}.integer(kernels::test::crc32c_of(octets)).take());
}

/// A blob with that body, right in all else.
Bytes wrapped(const Bytes& body, std::uint16_t version = kRegionEnvelope.version) {
  const auto length = protocol::kEnvelopeHeader + body.size() + protocol::kEnvelopeTrailer;
  return with_checksum(join(Writer{}
                                .integer(kRegionEnvelope.magic)
                                .integer(version)
                                .integer(static_cast<std::uint32_t>(length))
                                .take(),
                            body));
}

struct Body {
  std::uint8_t audience = 1;
  Access access = kLocalAccess;
  std::uint16_t count = 1;
};

Writer begin(const Body& body) {
  return Writer{}
      .integer(body.audience)
      .integer(static_cast<std::uint32_t>(body.access))
      .integer(body.count);
}

Bytes process_body(std::uint8_t kind, std::uint64_t offset, std::uint64_t length, Body body = {}) {
  return begin(body).integer(kind).integer(offset).integer(length).take();
}

Bytes peer_body(std::uint64_t address, std::uint64_t length,
                Body body = {2, Access::remote_read, 1}) {
  return begin(body).integer(address).integer(length).integer(std::uint32_t{5}).take();
}

void expect_refused(const Bytes& blob, const std::string& why) {
  const auto error = thrown_by([&] { RegionBlob::decode(blob); });
  EXPECT_EQ(error.code(), ErrorCode::bad_message);
  EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
}

TEST(RegionBlob, ComesBackAsItWas) {
  EXPECT_EQ(RegionBlob::decode(for_process().encode()), for_process());
  EXPECT_EQ(RegionBlob::decode(for_peer().encode()), for_peer());
}

TEST(RegionBlob, OfTheMostRangesIsOfTheMostBytes) {
  const RegionBlob blob{Access::remote_read,
                        std::vector<RemoteRange>(kMaxRanges, RemoteRange{1, 1, 1})};
  EXPECT_EQ(blob.encode().size(), kMaxRegionBlob);
  EXPECT_EQ(RegionBlob::decode(blob.encode()), blob);
}

TEST(RegionBlob, ByteForByte) {
  const RegionBlob blob{Access::remote_read, std::vector<RemoteRange>{{0x1122, 0x33, 0x4455}}};
  EXPECT_EQ(blob.encode(), with_checksum(bytes({
                               0x4f, 0x46, 0x4d, 0x52,                    // "OFMR"
                               0,    1,                                   // version
                               0,    0,    0,    41,                      // length of the whole
                               2,                                         // for a peer
                               0,    0,    0,    4,                       // remote_read
                               0,    1,                                   // ranges
                               0,    0,    0,    0,    0, 0, 0x11, 0x22,  // address
                               0,    0,    0,    0,    0, 0, 0,    0x33,  // length
                               0,    0,    0x44, 0x55,                    // key
                           })));
}

TEST(RegionBlob, WithAnyByteChangedIsRefused) {
  for (const auto& blob : {for_process().encode(), for_peer().encode()}) {
    for (std::size_t at = 0; at < blob.size(); ++at) {
      for (unsigned change = 1; change < 256; ++change) {
        Bytes changed = blob;
        changed[at] ^= static_cast<std::byte>(change);
        EXPECT_EQ(code_of([&] { RegionBlob::decode(changed); }), ErrorCode::bad_message)
            << "byte " << at << " changed by " << change;
      }
    }
  }
}

TEST(RegionBlob, CutOffAnywhereIsRefused) {
  for (const auto& blob : {for_process().encode(), for_peer().encode()}) {
    for (std::size_t size = 0; size < blob.size(); ++size) {
      EXPECT_EQ(code_of([&] { RegionBlob::decode(std::span(blob).first(size)); }),
                ErrorCode::bad_message)
          << size;
    }
  }
}

TEST(RegionBlob, WithMoreBehindItIsRefused) {
  const auto blob = for_process().encode();
  for (const std::size_t more : {std::size_t{1}, std::size_t{20}}) {
    expect_refused(join(blob, Bytes(more)), "it is truncated or too long");
  }
  expect_refused(join(blob, Bytes(kMaxRegionBlob)), "too long");
  // The same inside a right length and checksum.
  expect_refused(wrapped(join(process_body(1, 0, 4096), Bytes(1))), "the wrong length");
}

TEST(RegionBlob, OfAVersionToComeIsToldFromGarbage) {
  const auto error = thrown_by([] { RegionBlob::decode(wrapped(Bytes(7), 2)); });
  EXPECT_EQ(error.code(), ErrorCode::unsupported_version);
  EXPECT_NE(std::string(error.what()).find("version 2; the newest known version is 1"),
            std::string::npos);
  expect_refused(wrapped(process_body(1, 0, 4096), 0), "its version is unknown");
}

TEST(RegionBlob, ThatWrapsNothingIsRefused) {
  expect_refused({}, "too short");
  expect_refused(wrapped({}), "its kind of importer is unknown");
}

TEST(RegionBlob, ItsFieldsAreChecked) {
  ASSERT_NO_THROW(RegionBlob::decode(wrapped(process_body(1, 0, 4096))));
  ASSERT_NO_THROW(RegionBlob::decode(wrapped(process_body(2, 1, kMostSigned - 1))));
  ASSERT_NO_THROW(RegionBlob::decode(wrapped(process_body(1, 0, kMostSigned))));
  expect_refused(wrapped(process_body(1, 0, kMostSigned + 1)), "empty or too long");
  expect_refused(wrapped(process_body(0, 0, 4096)), "unknown kind");
  expect_refused(wrapped(process_body(3, 0, 4096)), "unknown kind");
  expect_refused(wrapped(process_body(1, 4096, 4096)), "part of a memfd");
  expect_refused(wrapped(process_body(1, 0, 0)), "empty or too long");
  expect_refused(wrapped(process_body(1, 0, kMost)), "empty or too long");
  expect_refused(wrapped(process_body(2, 1, kMostSigned)), "empty or too long");
  expect_refused(wrapped(process_body(2, kMost, 2)), "empty or too long");

  ASSERT_NO_THROW(RegionBlob::decode(wrapped(peer_body(kMost, 1))));
  expect_refused(wrapped(peer_body(0, 1)), "empty");
  expect_refused(wrapped(peer_body(1, 0)), "empty");
  expect_refused(wrapped(peer_body(kMost, 2)), "exceeds the address space");
  expect_refused(wrapped(peer_body(2, kMost)), "exceeds the address space");
}

TEST(RegionBlob, ItsAccessAndAudienceAreChecked) {
  const auto with_access = [](Access access) { return process_body(1, 0, 1, {1, access, 1}); };
  expect_refused(wrapped(with_access(Access::none)), "local_read is required");
  expect_refused(wrapped(with_access(static_cast<Access>(65))), "unknown flag");
  for (const Access access : {Access::none, kLocalAccess, static_cast<Access>(68)}) {
    expect_refused(wrapped(peer_body(1, 1, {2, access, 1})), "access of a peer");
  }
  for (const auto audience : std::initializer_list<std::uint8_t>{0, 3, 255}) {
    expect_refused(wrapped(process_body(1, 0, 1, {audience, kLocalAccess, 1})),
                   "its kind of importer is unknown");
  }
}

TEST(RegionBlob, ItsNumberOfRangesIsChecked) {
  for (const auto count : std::initializer_list<std::uint16_t>{0, 65, 65535}) {
    expect_refused(wrapped(process_body(1, 0, 1, {1, kLocalAccess, count})), "no ranges, or too");
  }
  // Two are announced and one is there: the second reads as zeroes.
  expect_refused(wrapped(process_body(1, 0, 1, {1, kLocalAccess, 2})), "unknown kind");
}

}  // namespace
}  // namespace offload::memory
