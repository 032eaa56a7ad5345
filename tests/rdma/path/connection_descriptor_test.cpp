#include "rdma/path/connection_descriptor.hpp"

#include <gtest/gtest.h>

#include <string>

#include "protocol/bytes.hpp"
#include "rdma/verbs/gid.hpp"
#include "tests/kernels/reference.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/thrown.hpp"

namespace offload::rdma {
namespace {

using core::ErrorCode;
using support::Bytes;
using support::thrown_by;

ConnectionDescriptor example() {
  ConnectionDescriptor descriptor;
  descriptor.gid = parse_gid("10.1.2.3");
  descriptor.qp_num = 0x123456;
  descriptor.psn = 0xabcdef;
  descriptor.max_dest_rd_atomic = 16;
  return descriptor;
}

/// Corrects length and checksum, as a forger would.
Bytes put_right(Bytes blob) {
  protocol::store_big_endian(blob.data() + 6, static_cast<std::uint32_t>(blob.size()));
  kernels::test::Octets octets;
  for (std::size_t i = 0; i + 4 < blob.size(); ++i) {
    octets.push_back(std::to_integer<std::uint8_t>(blob[i]));
  }
  protocol::store_big_endian(blob.data() + octets.size(), kernels::test::crc32c_of(octets));
  return blob;
}

/// The example, with one byte of its body changed.
Bytes with(std::size_t place, unsigned value) {
  Bytes blob = example().encode();
  blob[protocol::kEnvelopeHeader + place] = static_cast<std::byte>(value);
  return put_right(blob);
}

void expect_refused(const Bytes& blob, const std::string& why) {
  const auto error = thrown_by([&] { ConnectionDescriptor::decode(blob); });
  EXPECT_EQ(error.code(), ErrorCode::bad_message);
  EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
}

TEST(ConnectionDescriptor, ComesBackAsItWas) {
  const Bytes blob = example().encode();
  EXPECT_EQ(blob.size(), kDescriptorBytes);
  EXPECT_EQ(put_right(blob), blob);
  const auto back = ConnectionDescriptor::decode(blob);
  EXPECT_EQ(back.qp_type, QpType::rc);
  EXPECT_TRUE(back.ethernet);
  EXPECT_EQ(to_string(back.gid), "10.1.2.3");
  EXPECT_EQ(back.qp_num, 0x123456U);
  EXPECT_EQ(back.psn, 0xabcdefU);
  EXPECT_EQ(back.mtu, IBV_MTU_1024);
  EXPECT_EQ(back.max_dest_rd_atomic, 16);
  EXPECT_EQ(back.encode(), blob);
}

TEST(ConnectionDescriptor, DamageAnywhereIsFound) {
  const Bytes blob = example().encode();
  for (std::size_t i = 0; i < blob.size(); ++i) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      Bytes damaged = blob;
      damaged[i] ^= static_cast<std::byte>(1U << bit);
      EXPECT_EQ(thrown_by([&] { ConnectionDescriptor::decode(damaged); }).code(),
                ErrorCode::bad_message);
    }
  }
}

TEST(ConnectionDescriptor, NoPartOfItIsOne) {
  const Bytes blob = example().encode();
  for (std::size_t length = 0; length < blob.size(); ++length) {
    expect_refused(Bytes(blob.begin(), blob.begin() + static_cast<std::ptrdiff_t>(length)),
                   length < 14 ? "too short" : "truncated");
  }
  Bytes longer = blob;
  longer.push_back(std::byte{0});
  expect_refused(longer, "truncated or too long");
  expect_refused(put_right(longer), "the wrong length");
}

TEST(ConnectionDescriptor, OfALaterVersionIsToldFromGarbage) {
  Bytes newer = example().encode();
  newer[5] = std::byte{2};
  newer.push_back(std::byte{0});
  const auto error = thrown_by([&] { ConnectionDescriptor::decode(put_right(newer)); });
  EXPECT_EQ(error.code(), ErrorCode::unsupported_version);
  newer[5] = std::byte{0};
  expect_refused(put_right(newer), "its version is unknown");
}

TEST(ConnectionDescriptor, ForgedFieldsAreRefused) {
  expect_refused(with(0, 2), "no connections");
  expect_refused(with(0, 200), "no connections");
  expect_refused(with(1, 0), "unknown");
  expect_refused(with(1, 3), "unknown");
  expect_refused(with(1, 1), "not valid for its link layer");  // InfiniBand without a LID
  expect_refused(with(3, 1), "not valid for its link layer");  // RoCE with one
  expect_refused(with(20, 1), "24 bits");
  expect_refused(with(24, 1), "24 bits");
  expect_refused(with(28, 0), "MTU");
  expect_refused(with(28, 6), "MTU");
  EXPECT_EQ(ConnectionDescriptor::decode(with(28, 1)).mtu, IBV_MTU_256);
  EXPECT_EQ(ConnectionDescriptor::decode(with(28, 5)).mtu, IBV_MTU_4096);
  EXPECT_EQ(ConnectionDescriptor::decode(with(0, 1)).qp_type, QpType::uc);
  auto least = example();
  least.qp_num = 2;
  least.psn = kMax24Bits;
  EXPECT_EQ(ConnectionDescriptor::decode(least.encode()).qp_num, 2U);
  EXPECT_EQ(ConnectionDescriptor::decode(least.encode()).psn, kMax24Bits);
  least.ethernet = false;
  least.lid = 1;
  least.gid = {};
  EXPECT_EQ(ConnectionDescriptor::decode(least.encode()).lid, 1);
  auto nobody = example();
  nobody.qp_num = 1;
  expect_refused(nobody.encode(), "for management");
  nobody = example();
  nobody.gid = {};
  expect_refused(nobody.encode(), "not valid for its link layer");
}

}  // namespace
}  // namespace offload::rdma
