#include "rdma_tasks/cm/cm_id.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <net/if.h>

#include <cstring>
#include <string>

#include "tests/support/thrown.hpp"

namespace offload::rdma {
namespace {

using core::ErrorCode;
using support::thrown_by;

TEST(CmAddress, BecomesASocketAddress) {
  const sockaddr_storage v4 = CmAddress{"10.0.0.2", 7174}.native();
  EXPECT_EQ(v4.ss_family, AF_INET);
  EXPECT_EQ(reinterpret_cast<const sockaddr_in&>(v4).sin_port, htons(7174));
  EXPECT_EQ(reinterpret_cast<const sockaddr_in&>(v4).sin_addr.s_addr, htonl(0x0a000002));
  const sockaddr_storage v6 = CmAddress{"fe80::1", 1}.native();
  EXPECT_EQ(v6.ss_family, AF_INET6);
  EXPECT_EQ(reinterpret_cast<const sockaddr_in6&>(v6).sin6_addr.s6_addr[15], 1);
}

TEST(CmAddress, ALinkLocalOneKeepsItsScope) {
  const unsigned loopback = ::if_nametoindex("lo");
  ASSERT_NE(loopback, 0U);
  for (const std::string& zone : {std::string("lo"), std::to_string(loopback)}) {
    const sockaddr_storage address = CmAddress{"fe80::1%" + zone, 1}.native();
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    EXPECT_EQ(v6.sin6_addr.s6_addr[15], 1);
    EXPECT_EQ(v6.sin6_scope_id, loopback);
    EXPECT_EQ(v6.sin6_port, htons(1));
  }
}

TEST(CmAddress, ANameIsRefused) {
  for (const char* const text :
       {"", "host", "10.0.0", "10.0.0.1:7", "::g", "fe80::1%", "fe80::1%nosuch", "10.0.0.1%lo"}) {
    EXPECT_EQ(thrown_by([&] {
                static_cast<void>(CmAddress{text, 1}.native());
              }).code(),
              ErrorCode::invalid_value)
        << text;
  }
}

TEST(Route, HasDevicePortAndGidOfAnIdentifier) {
  ibv_device device{};
  std::strcpy(device.name, "fake0");
  ibv_context context{};
  context.device = &device;
  rdma_cm_id id{};
  id.verbs = &context;
  id.port_num = 2;
  EXPECT_FALSE(Route::of(id).gid.address);  // not known
  id.route.addr.addr.ibaddr.sgid = parse_gid("10.0.0.1");
  const Route route = Route::of(id);
  EXPECT_EQ(route.device, "fake0");
  EXPECT_EQ(route.port_num, 2);
  ASSERT_TRUE(route.gid.address);
  EXPECT_EQ(to_string(*route.gid.address), "10.0.0.1");
}

}  // namespace
}  // namespace offload::rdma
