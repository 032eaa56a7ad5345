#include "apps/client/requests/service.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/bytes.hpp"

namespace offload::client {
namespace {

using support::bytes_of;

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(Service, NamesAndServicesMatch) {
  EXPECT_EQ(service_names(), (std::vector<std::string>{"reverse", "echo", "crc32c"}));
  for (const auto& name : service_names()) EXPECT_EQ(name_of(service_named(name).value()), name);
  EXPECT_FALSE(service_named("Reverse"));
  EXPECT_FALSE(service_named(""));
}

TEST(Service, ReverseAndEcho) {
  EXPECT_EQ(text_of(expected_response(Service::reverse, bytes_of("hello"))), "olleh");
  EXPECT_EQ(text_of(expected_response(Service::echo, bytes_of("hello"))), "hello");
  EXPECT_TRUE(expected_response(Service::reverse, {}).empty());
  EXPECT_TRUE(expected_response(Service::echo, {}).empty());
}

// The check value of the CRC catalogues, and the vectors of RFC 3720, appendix B.4.
TEST(Service, Crc32cKnownVectors) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe306'9283);
  EXPECT_EQ(crc32c({}), 0U);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0})), 0x8a91'36aa);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0xff})), 0x62a8'ab43);
  std::vector<std::byte> rising;
  for (unsigned i = 0; i < 32; ++i) rising.push_back(static_cast<std::byte>(i));
  EXPECT_EQ(crc32c(rising), 0x46dd'794e);
}

TEST(Service, Crc32cAnswersInLittleEndian) {
  EXPECT_EQ(text_of(expected_response(Service::crc32c, bytes_of("123456789"))), "\x83\x92\x06\xe3");
  EXPECT_EQ(expected_response(Service::crc32c, {}), std::vector<std::byte>(4));
}

}  // namespace
}  // namespace offload::client
