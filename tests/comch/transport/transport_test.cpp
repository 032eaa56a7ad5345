#include "comch/transport/transport.hpp"

#include <gtest/gtest.h>

#include <set>

#include "core/error.hpp"
#include "tests/support/thrown.hpp"

namespace offload::comch {
namespace {

TEST(Transports, EachIsFoundByItsScheme) {
  std::set<std::string_view> schemes;
  for (const Transport& transport : transports()) {
    EXPECT_TRUE(schemes.insert(transport.scheme).second) << transport.scheme << " twice";
    EXPECT_EQ(find_transport(transport.scheme), &transport);
    EXPECT_EQ(&transport_of(transport.scheme), &transport);
  }
  EXPECT_EQ(schemes, (std::set<std::string_view>{"unix", "tcp", "rdma"}));
}

TEST(Transports, AnUnknownScheme) {
  for (const char* const scheme : {"", "udp", "unix:", "TCP"}) {
    EXPECT_EQ(find_transport(scheme), nullptr);
    const auto error = support::thrown_by([&] { static_cast<void>(transport_of(scheme)); });
    EXPECT_EQ(error.code(), core::ErrorCode::invalid_value);
  }
}

TEST(Transports, TheirExamplesParse) {
  for (const Transport& transport : transports()) {
    Address address;
    const std::string rest = transport.form == "PATH" ? "/x" : "host:1";
    EXPECT_EQ(transport.parse(rest, address), "");
    const auto parsed = Address::parse(std::string(transport.scheme) + ":" + rest);
    EXPECT_EQ(parsed.scheme, transport.scheme);
    EXPECT_EQ(parsed.local(), transport.shares_memory);
  }
}

TEST(Transports, WithoutAKeyOthersAreNotLetIn) {
  for (const char* const text : {"tcp:0.0.0.0:0", "tcp:127.0.0.1:0", "rdma:127.0.0.1:0"}) {
    const auto address = Address::parse(text);
    const auto& transport = transport_of(address.scheme);
    const auto error = support::thrown_by([&] { static_cast<void>(transport.listen(address)); });
    const bool no_device = error.code() == core::ErrorCode::not_supported;
    EXPECT_TRUE(error.code() == core::ErrorCode::not_permitted ||
                (no_device && address.scheme == "rdma"))
        << error.what();
  }
}

}  // namespace
}  // namespace offload::comch
