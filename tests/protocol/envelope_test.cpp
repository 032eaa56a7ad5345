#include "protocol/envelope.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/error.hpp"
#include "protocol/bytes.hpp"
#include "tests/kernels/reference.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/thrown.hpp"

namespace offload::protocol {
namespace {

using core::ErrorCode;
using support::Bytes;
using support::bytes;
using support::bytes_of;
using support::copy_of;

constexpr Envelope kThing{"thing", 0x5448'4e47, 3, 64};
constexpr std::size_t kMostBody = 64 - kEnvelopeHeader - kEnvelopeTrailer;

/// `blob` with its checksum, by an implementation of the tests' own.
Bytes sealed(Bytes blob) {
  kernels::test::Octets octets;
  for (const std::byte byte : blob) octets.push_back(std::to_integer<std::uint8_t>(byte));
  const Bytes trailer = Writer{}.integer(kernels::test::crc32c_of(octets)).take();
  blob.insert(blob.end(), trailer.begin(), trailer.end());
  return blob;
}

/// A blob of those fields and no body.
Bytes empty_blob(std::uint32_t magic, std::uint16_t version, std::uint32_t length) {
  return sealed(Writer{}.integer(magic).integer(version).integer(length).take());
}

void expect_no_thing(const Bytes& blob, ErrorCode code, const std::string& text) {
  const auto error = support::thrown_by([&] { static_cast<void>(kThing.unwrap(blob)); });
  EXPECT_EQ(error.code(), code);
  EXPECT_EQ(error.what(), text);
}

TEST(Envelope, ByteForByte) {
  const Bytes expected = sealed(bytes({'T', 'H', 'N', 'G', 0, 3, 0, 0, 0, 16, 'h', 'i'}));
  EXPECT_EQ(kThing.wrap(bytes_of("hi")), expected);
}

TEST(Envelope, UnwrapsWhatItWrapped) {
  for (std::size_t size = 0; size <= kMostBody; ++size) {
    const Bytes body = support::random_bytes(size, 1);
    const Bytes blob = kThing.wrap(body);
    EXPECT_EQ(copy_of(kThing.unwrap(blob)), body);
  }
}

TEST(Envelope, AnyChangedByteIsFound) {
  const Bytes blob = kThing.wrap(bytes_of("some body"));
  for (std::size_t i = 0; i < blob.size(); ++i) {
    Bytes changed = blob;
    changed[i] ^= std::byte{0x10};
    const auto error = support::thrown_by([&] { static_cast<void>(kThing.unwrap(changed)); });
    EXPECT_EQ(error.code(), ErrorCode::bad_message) << i;
  }
}

TEST(Envelope, EveryFieldIsCheckedWithAReason) {
  constexpr std::uint32_t kLength = kEnvelopeHeader + kEnvelopeTrailer;
  EXPECT_TRUE(kThing.unwrap(empty_blob(kThing.magic, 3, kLength)).empty());
  expect_no_thing(Bytes(kLength - 1), ErrorCode::bad_message, "thing: it is too short");
  expect_no_thing(kThing.wrap(Bytes(kMostBody + 1)), ErrorCode::bad_message,
                  "thing: it is too long");
  expect_no_thing(empty_blob(kThing.magic + 1, 3, kLength), ErrorCode::bad_message,
                  "thing: it has the wrong magic number");
  for (const std::uint32_t length : {kLength - 1, kLength + 1, 0xffff'ffffU}) {
    expect_no_thing(empty_blob(kThing.magic, 3, length), ErrorCode::bad_message,
                    "thing: it is truncated or too long");
  }
  expect_no_thing(empty_blob(kThing.magic, 2, kLength), ErrorCode::bad_message,
                  "thing: its version is unknown");
  expect_no_thing(empty_blob(kThing.magic, 4, kLength), ErrorCode::unsupported_version,
                  "thing: version 4; the newest known version is 3");
}

TEST(Envelope, RequireNamesTheKind) {
  EXPECT_NO_THROW(kThing.require(true, "no"));
  const auto error = support::thrown_by([] { kThing.require(false, "it has no wheels"); });
  EXPECT_EQ(error.code(), ErrorCode::bad_message);
  EXPECT_STREQ(error.what(), "thing: it has no wheels");
}

}  // namespace
}  // namespace offload::protocol
