#include "rdma/verbs/shared_receive_queue.hpp"

#include "tests/rdma/fake_fixture.hpp"
#include "tests/support/thrown.hpp"

namespace offload::rdma {
namespace {

using core::ErrorCode;
using core::Status;
using support::thrown_by;
using test::fake;

class SharedReceiveQueueTest : public FakeDeviceTest {
 protected:
  DeviceContext device_{"fake0"};
  ProtectionDomain domain_{device_};
};

TEST_F(SharedReceiveQueueTest, AListIsPostedWithOneDoorbell) {
  SharedReceiveQueue queue(domain_, 16);
  ibv_recv_wr second{2, nullptr, nullptr, 0};
  ibv_recv_wr first{1, &second, nullptr, 0};
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(queue.post(first, bad), Status());
  EXPECT_EQ(fake().doorbells, 1);
  ASSERT_EQ(fake().shared_receives.size(), 2U);
  EXPECT_EQ(fake().shared_receives[1].send.wr_id, 2U);
}

TEST_F(SharedReceiveQueueTest, ARefusedReceiveIsNamed) {
  SharedReceiveQueue queue(domain_, 16);
  ibv_recv_wr second{2, nullptr, nullptr, 0};
  ibv_recv_wr first{1, &second, nullptr, 0};
  ibv_recv_wr* bad = nullptr;
  fake().fail_at = static_cast<int>(fake().calls.size()) + 1;
  fake().fail_with = ENOMEM;
  EXPECT_EQ(queue.post(first, bad), ErrorCode::full);
  EXPECT_EQ(bad, &second);
  EXPECT_EQ(fake().shared_receives.size(), 1U);
}

TEST_F(SharedReceiveQueueTest, TellsItsSizeAndLimit) {
  SharedReceiveQueue queue(domain_, 16, 2);
  queue.notify_below(4);
  const ibv_srq_attr told = queue.query();
  EXPECT_EQ(told.max_wr, 16U);
  EXPECT_EQ(told.max_sge, 2U);
  EXPECT_EQ(told.srq_limit, 4U);
  fake().fail_call = "ibv_query_srq";
  EXPECT_THROW(static_cast<void>(queue.query()), core::Error);
}

TEST_F(SharedReceiveQueueTest, ADeviceThatRefusesIsAnError) {
  SharedReceiveQueue queue(domain_, 16);
  queue.notify_below(4);
  fake().fail_with = EINVAL;
  fake().fail_call = "ibv_modify_srq";
  EXPECT_EQ(thrown_by([&] { queue.notify_below(4); }).code(), ErrorCode::invalid_value);
  fake().fail_call = "ibv_create_srq";
  const auto error = thrown_by([&] { const SharedReceiveQueue other(domain_, 1U << 30); });
  EXPECT_NE(std::string(error.what()).find("fake0"), std::string::npos);
}

}  // namespace
}  // namespace offload::rdma
