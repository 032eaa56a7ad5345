#include <utility>

#include "memory/region.hpp"
#include "rdma/verbs/queue_pair.hpp"
#include "tests/rdma/fake_fixture.hpp"
#include "tests/support/thrown.hpp"

namespace offload::rdma {
namespace {

using core::ErrorCode;
using support::thrown_by;
using test::fake;

/// One of each object, brought to where it works.
struct Everything {
  DeviceContext device{"fake0"};
  ProtectionDomain domain{device};
  CompletionChannel channel{device};
  CompletionQueue completions{device, 16, &channel};
  SharedReceiveQueue receives{domain, 16};
  AddressHandle path{domain, ibv_ah_attr{}};
  QueuePair queue{domain, completions, completions, {}};
  RdmaRegistrar registrar{domain};
  memory::MemoryRegion region{{"region", memory::kLocalAccess}, {memory::allocate_range(4096)}};

  Everything() {
    static_cast<void>(device.port());
    static_cast<void>(device.gids());
    receives.notify_below(4);
    region.add_registrar(registrar);
    region.start();
    queue.initialize();
    queue.ready_to_receive(RtrAttributes{});
    queue.ready_to_send();
    queue.fail();
    queue.reset();
  }
};

using HandleTest = FakeDeviceTest;

// Each call that can fail, in turn; the fixture sees that nothing is left.
TEST_F(HandleTest, AnyCallMayFailAndNothingLeaks) {
  { const Everything everything; }
  const auto calls = fake().calls;
  ASSERT_GT(calls.size(), 15U);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    test::reset_fake();
    fake().fail_at = static_cast<int>(i);
    const auto error = thrown_by([] { const Everything everything; });
    EXPECT_EQ(error.system_errno(), EIO) << calls[i];
    EXPECT_EQ(fake().open_objects(), 0) << calls[i];
  }
}

TEST_F(HandleTest, MovedOnesAreEndedOnce) {
  DeviceContext device("fake0");
  DeviceContext moved(std::move(device));
  ProtectionDomain domain(moved);
  ProtectionDomain other(moved);
  EXPECT_EQ(fake().open["ibv_alloc_pd"], 2);
  domain = std::move(other);
  EXPECT_EQ(fake().open["ibv_alloc_pd"], 1);
}

TEST_F(HandleTest, ImportedOnesAreLeftToTheirOwner) {
  const DeviceContext device("fake0");
  const ProtectionDomain domain(device);
  {
    const auto same = DeviceContext::import(device.get());
    EXPECT_EQ(same.name(), "fake0");
    EXPECT_EQ(same.attributes().max_sge, 8);
    const auto same_domain = ProtectionDomain::import(domain.get());
    EXPECT_EQ(same_domain.get(), domain.get());
  }
  EXPECT_EQ(fake().open_objects(), 2);
  EXPECT_EQ(thrown_by([] { DeviceContext::import(nullptr); }).code(), ErrorCode::invalid_value);
  EXPECT_EQ(thrown_by([] { ProtectionDomain::import(nullptr); }).code(), ErrorCode::invalid_value);
}

}  // namespace
}  // namespace offload::rdma
