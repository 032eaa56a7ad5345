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
                .rfind("queue pair 100 (RC) on fake0 cannot change from INIT "
                       "to RTR: ",
                       0),
            0U);
  EXPECT_EQ(queue.state(), IBV_QPS_INIT);
}

TEST_F(QueuePairTest, AnyChangeIsMadeByItsMask) {
  const DeviceContext device("fake0");
  const ProtectionDomain domain(device);
  const CompletionQueue completions(device, 16);
  QueuePair queue(domain, completions, completions, {});
  queue.initialize(1, memory::kRemoteAccess, 0, 3);
  test::FakeQueuePair& native = *fake().queue_pairs[0];
  EXPECT_EQ(native.attributes.pkey_index, 3);
  queue.ready_to_receive(RtrAttributes{});
  queue.ready_to_send();
  ibv_qp_attr timer{};
  timer.min_rnr_timer = 7;
  queue.modify(timer, IBV_QP_MIN_RNR_TIMER);
  EXPECT_EQ(native.mask, IBV_QP_MIN_RNR_TIMER);
  EXPECT_EQ(native.attributes.min_rnr_timer, 7);
  EXPECT_EQ(queue.state(), IBV_QPS_RTS);
  ibv_qp_attr drained{};
  drained.qp_state = IBV_QPS_SQD;
  queue.modify(drained, IBV_QP_STATE);
  EXPECT_EQ(name_of(queue.state()), "SQD");
  ibv_send_wr send{};
  ibv_send_wr* bad = nullptr;
  EXPECT_TRUE(queue.post_send(send, bad).ok());  // goes on its way from RTS on
  fake().fail_call = "ibv_modify_qp";
  fake().fail_with = EINVAL;
  EXPECT_EQ(std::string(thrown_by([&] { queue.modify(timer, IBV_QP_QKEY); }).what())
                .rfind("queue pair 100 (RC) on fake0 does not accept that change in SQD: ", 0),
            0U);
  fake().fail_call.clear();
  ibv_qp_attr sending{};
  sending.qp_state = IBV_QPS_RTS;
  queue.modify(sending, IBV_QP_STATE);
  EXPECT_EQ(queue.state(), IBV_QPS_RTS);
}

TEST_F(QueuePairTest, WhatItWasMadeWithIsQueried) {
  const DeviceContext device("fake0");
  const ProtectionDomain domain(device);
  const CompletionQueue sends(device, 16);
  const CompletionQueue receives(device, 16);
  QueuePairOptions options;
  options.max_send_wr = 7;
  options.sq_sig_all = true;
  const QueuePair queue(domain, sends, receives, options);
  const QueuePairQuery told = queue.query(IBV_QP_STATE | IBV_QP_CAP);
  EXPECT_EQ(told.attributes.qp_state, IBV_QPS_RESET);
  EXPECT_EQ(told.initial.send_cq, sends.get());
  EXPECT_EQ(told.initial.recv_cq, receives.get());
  EXPECT_EQ(told.initial.cap.max_send_wr, 7U);
  EXPECT_EQ(told.initial.sq_sig_all, 1);
  EXPECT_EQ(told.initial.srq, nullptr);
  const SharedReceiveQueue shared(domain, 16);
  EXPECT_EQ(fake().shared_attributes.max_wr, 16U);
  EXPECT_EQ(fake().shared_attributes.max_sge, 1U);
  options.srq = &shared;
  const QueuePair sharing(domain, sends, receives, options);
  EXPECT_EQ(sharing.query(IBV_QP_CAP).initial.srq, shared.get());
  fake().fail_call = "ibv_query_qp";
  EXPECT_THROW(static_cast<void>(queue.query(IBV_QP_STATE)), core::Error);
}

TEST_F(QueuePairTest, APathIsByGidOrByLid) {
  const DeviceContext device("fake0");
  const ProtectionDomain domain(device);
  ibv_ah_attr path = default_path();
  path.grh.dgid = parse_gid("2001:db8::1");
  path.grh.hop_limit = 3;
  path.grh.traffic_class = 32;
  const AddressHandle by_gid(domain, path);
  EXPECT_EQ(fake().path.is_global, 1);
  EXPECT_EQ(fake().path.grh.hop_limit, 3);
  EXPECT_EQ(fake().path.grh.traffic_class, 32);
  path = {};
  path.dlid = 17;
  path.sl = 4;
  path.port_num = 1;
  const AddressHandle by_lid(domain, path);
  EXPECT_EQ(fake().path.is_global, 0);
  EXPECT_EQ(fake().path.dlid, 17);
  EXPECT_EQ(fake().path.sl, 4);
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

TEST_F(QueuePairTest, DatagramsAndRawPacketsHaveNoPeer) {
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
  options.qp_type = QpType::raw_packet;
  QueuePair frames(domain, completions, completions, options);
  EXPECT_EQ(frames.get()->qp_type, IBV_QPT_RAW_PACKET);
  frames.initialize();
  EXPECT_EQ(fake().queue_pairs.back()->mask, IBV_QP_STATE | IBV_QP_PORT);
  EXPECT_EQ(thrown_by([&] { frames.ready_to_receive(RtrAttributes{}); }).code(),
            ErrorCode::invalid_value);
  frames.ready_to_receive();
  frames.ready_to_send();
  EXPECT_EQ(fake().queue_pairs.back()->mask, IBV_QP_STATE);
}

}  // namespace
}  // namespace offload::rdma
