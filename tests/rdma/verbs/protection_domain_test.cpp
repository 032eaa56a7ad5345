#include "rdma/verbs/protection_domain.hpp"

#include "tests/rdma/fake_fixture.hpp"
#include "tests/support/thrown.hpp"

namespace offload::rdma {
namespace {

using core::ErrorCode;
using support::thrown_by;
using test::fake;

using RegistrarTest = FakeDeviceTest;

TEST_F(RegistrarTest, ADmaBufIsRegisteredAsOneOrElseByItsAddress) {
  const DeviceContext device("fake0");
  const ProtectionDomain domain(device);
  EXPECT_TRUE(domain.supports_dma_buf());
  RdmaRegistrar registrar(domain);
  EXPECT_EQ(registrar.name(), "fake0");
  memory::Range range = memory::allocate_range(4096);
  range.descriptor = {memory::DescriptorKind::dma_buf, 0, 0};
  const auto as_dma_buf = registrar.register_range(range, memory::kLocalAccess);
  EXPECT_EQ(as_dma_buf.local, 33U);
  registrar.deregister(range, as_dma_buf);
  fake().fail_call = "ibv_reg_dmabuf_mr";
  fake().fail_with = EOPNOTSUPP;
  EXPECT_FALSE(domain.supports_dma_buf());
  const auto by_address = registrar.register_range(range, memory::kLocalAccess);
  EXPECT_EQ(by_address.remote, 22U);
  registrar.deregister(range, by_address);
}

TEST_F(RegistrarTest, WhatCannotBeRegisteredSaysWhyForEachWay) {
  const DeviceContext device("fake0");
  const ProtectionDomain domain(device);
  RdmaRegistrar registrar(domain);
  memory::Range range = memory::allocate_range(4096);
  fake().fail_call = "ibv_reg_mr";
  fake().fail_with = ENOMEM;
  EXPECT_EQ(thrown_by([&] { registrar.register_range(range, memory::kLocalAccess); }).code(),
            ErrorCode::no_memory);
  range.location = memory::Location::device;
  const auto error = thrown_by([&] { registrar.register_range(range, memory::kLocalAccess); });
  EXPECT_NE(std::string(error.what()).find("it has no dma-buf"), std::string::npos);
}

TEST(AccessFlags, AreThoseOfVerbs) {
  using memory::Access;
  EXPECT_EQ(access_flags(Access::local_read), 0U);  // always allowed
  EXPECT_EQ(access_flags(Access::local_write), unsigned{IBV_ACCESS_LOCAL_WRITE});
  EXPECT_EQ(access_flags(Access::local_write | Access::remote_read | Access::remote_write |
                         Access::remote_atomic),
            unsigned{IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
                     IBV_ACCESS_REMOTE_ATOMIC});
}

}  // namespace
}  // namespace offload::rdma
