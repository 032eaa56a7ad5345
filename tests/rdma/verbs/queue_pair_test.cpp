#include "rdma/verbs/queue_pair.hpp"

#include "tests/rdma/fake_fixture.hpp"
#include "tests/support/thrown.hpp"

namespace offload::rdma {
namespace {

using core::ErrorCode;
using support::thrown_by;
using test::fake;

using QueuePairTest = FakeDeviceTest;

TEST_F(QueuePairTest, AQueuePairGoesThroughItsStatesInTheirOrder) {
  const DeviceContext device("fake0");
  const ProtectionDomain domain(device);
  const CompletionQueue completions(device, 16);
  QueuePair queue(domain, completions, completions, {});
  const auto refused = [&](auto action, const std::string& why) {
    const auto error = thrown_by(action);
    EXPECT_EQ(error.code(), ErrorCode::bad_state);
    EXPECT_EQ(error.what(), "queue pair 100 (RC) on fake0 is " + why);
  };
  refused([&] { queue.ready_to_receive(RtrAttributes{}); },
          "RESET: cannot become ready to receive");
  refused([&] { queue.ready_to_send(); }, "RESET: cannot become ready to send");
  refused([&] { queue.fail(); }, "RESET: cannot fail");
  ibv_send_wr send{};
  ibv_send_wr* bad_send = nullptr;
  ibv_recv_wr receive{};
  ibv_recv_wr* bad_receive = nullptr;
  EXPECT_EQ(queue.post_receive(receive, bad_receive), ErrorCode::bad_state);
  queue.initialize();
  refused([&] { queue.initialize(); }, "INIT: cannot be initialised");
  refused([&] { queue.ready_to_send(); }, "INIT: cannot become ready to send");
  EXPECT_TRUE(queue.post_receive(receive, bad_receive).ok());
  EXPECT_EQ(queue.post_send(send, bad_send), ErrorCode::bad_state);
  EXPECT_EQ(bad_send, &send);
  queue.ready_to_receive(RtrAttributes{});
  refused([&] { queue.ready_to_receive(RtrAttributes{}); }, "RTR: cannot become ready to receive");
  EXPECT_EQ(queue.post_send(send, bad_send), ErrorCode::bad_state);
  queue.ready_to_send();
  EXPECT_TRUE(queue.post_send(send, bad_send).ok());
  EXPECT_EQ(queue.query().qp_state, IBV_QPS_RTS);
  queue.fail();
  EXPECT_EQ(queue.state(), IBV_QPS_ERR);
  EXPECT_EQ(queue.post_send(send, bad_send), ErrorCode::bad_state);
  queue.reset();
  queue.initialize();
  EXPECT_EQ(name_of(queue.state()), "INIT");
}

TEST_F(QueuePairTest, AStateThatTheDeviceRefusesIsNotTaken) {
  const DeviceContext device("fake0");
  const ProtectionDomain domain(device);
  const CompletionQueue completions(device, 16);
  QueuePair queue(domain, completions, completions, {});
  queue.initialize();
  fake().fail_call = "ibv_modify_qp";
  fake().fail_with = EINVAL;
  const auto error = thrown_by([&] { queue.ready_to_receive(RtrAttributes{}); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_value);
  EXPECT_EQ(std::string(error.what())
                .rfind("queue pair 100 (RC) on fake0 does not get from INIT "
                       "to RTR: ",
                       0),
            0U);
  EXPECT_EQ(queue.state(), IBV_QPS_INIT);
}

TEST_F(QueuePairTest, RetriesHaveAnEnd) {
  const DeviceContext device("fake0");
  const ProtectionDomain domain(device);
  const CompletionQueue completions(device, 16);
  QueuePair queue(domain, completions, completions, {});
  queue.initialize();
  queue.ready_to_receive(RtrAttributes{});
  RtsAttributes for_ever;
  for_ever.retry_cnt = 7;
  EXPECT_EQ(thrown_by([&] { queue.ready_to_send(for_ever); }).code(), ErrorCode::invalid_value);
  for_ever = {};
  for_ever.rnr_retry = 7;
  EXPECT_EQ(thrown_by([&] { queue.ready_to_send(for_ever); }).code(), ErrorCode::invalid_value);
}

TEST_F(QueuePairTest, DatagramsHaveNoPeer) {
  const DeviceContext device("fake0");
  const ProtectionDomain domain(device);
  const CompletionQueue completions(device, 16);
  QueuePairOptions options;
  QueuePair connected(domain, completions, completions, options);
  options.qp_type = QpType::ud;
  QueuePair datagrams(domain, completions, completions, options);
  connected.initialize();
  datagrams.initialize(1, memory::Access::none, 0x1111);
  EXPECT_EQ(thrown_by([&] { connected.ready_to_receive(); }).code(), ErrorCode::invalid_value);
  EXPECT_EQ(thrown_by([&] { datagrams.ready_to_receive(RtrAttributes{}); }).code(),
            ErrorCode::invalid_value);
  datagrams.ready_to_receive();
  datagrams.ready_to_send();
  EXPECT_EQ(datagrams.state(), IBV_QPS_RTS);
}

}  // namespace
}  // namespace offload::rdma
