#include <cstring>
#include <vector>

#include "rdma/verbs/async_events.hpp"
#include "tests/rdma_tasks/guest/fixture.hpp"
#include "tests/support/thrown.hpp"

/// Tests verbs objects of a real device, below connections.
namespace offload::rdma {
namespace {

using core::ErrorCode;

TEST_F(DeviceTest, TellsWhatItIs) {
  EXPECT_GT(device_.attributes().max_qp, 0);
  EXPECT_GT(device_.attributes().max_qp_rd_atom, 0);
  EXPECT_NE(device_.attributes().atomic_cap, IBV_ATOMIC_NONE);
  EXPECT_TRUE(device_.supports(QpType::rc));
  EXPECT_EQ(device_.port().state, IBV_PORT_ACTIVE);
  EXPECT_EQ(support::thrown_by([&] { static_cast<void>(device_.port(99)); }).code(),
            ErrorCode::invalid_value);
  const auto dma_buf = domain_.supports_dma_buf();
  EXPECT_NE(dma_buf.supported, !dma_buf.reason.empty());
}

TEST_F(DeviceTest, AGidIsChosenByItsAddress) {
  const auto gid = choose_gid(device_.gids(), {});
  if (const char* const address = std::getenv("RDMA_GUEST_ADDRESS"); address != nullptr) {
    EXPECT_EQ(to_string(gid.gid), address);
    EXPECT_EQ(gid.gid_type, unsigned{IBV_GID_TYPE_ROCE_V2});
  }
  const auto link_local = choose_gid(device_.gids(), {Family::ipv6, {}, false});
  EXPECT_TRUE(is_link_local(link_local.gid));
  EXPECT_NE(link_local.gid_index, gid.gid_index);
}

TEST_F(DeviceTest, ImportedObjectsWorkAsTheirOwn) {
  const auto device = DeviceContext::import(device_.get());
  const auto domain = ProtectionDomain::import(domain_.get());
  const CompletionQueue completions(device, 16);
  const QueuePair queue(domain, completions, completions, {});
  EXPECT_GT(queue.qp_num(), 1U);
}

TEST_F(DeviceTest, WhatTheDeviceRefusesIsAnError) {
  const CompletionQueue completions(device_, 16);
  QueuePairOptions options;
  options.max_send_wr = 100'000'000;
  EXPECT_EQ(support::thrown_by([&] {
              const QueuePair queue(domain_, completions, completions, options);
            }).code(),
            ErrorCode::invalid_value);
  EXPECT_THROW(CompletionQueue(device_, 1U << 30), core::Error);
  QueuePair queue(domain_, completions, completions, {});
  EXPECT_THROW(queue.initialize(99), core::Error);
  EXPECT_EQ(queue.state(), IBV_QPS_RESET);
}

/// Queue pairs of this process, without connections around them.
class RawTest : public DeviceTest {
 protected:
  RawTest() : completions_(device_, 64), gid_(choose_gid(device_.gids(), {})) {}

  [[nodiscard]] ibv_ah_attr path_to_self() const {
    ibv_ah_attr path = default_path();
    path.grh.dgid = gid_.gid;
    path.grh.sgid_index = static_cast<std::uint8_t>(gid_.gid_index);
    return path;
  }
  void connect_to(QueuePair& queue, std::uint32_t number) const {
    RtrAttributes rtr;
    rtr.ah_attr = path_to_self();
    rtr.dest_qp_num = number;
    queue.initialize();
    queue.ready_to_receive(rtr);
    queue.ready_to_send();
  }
  ibv_sge piece(std::size_t offset, std::uint32_t length) {
    return {reinterpret_cast<std::uint64_t>(bytes(offset, length).data()), length,
            region_.key(registrar_, 0)->local};
  }
  /// Returns the next completion; one that has failed if there is none in time.
  ibv_wc next() {
    std::array<ibv_wc, 1> room{};
    room[0].status = IBV_WC_GENERAL_ERR;
    EXPECT_TRUE(until([&] { return !completions_.poll(room).empty(); }, false));
    return room[0];
  }

  CompletionQueue completions_;
  ibv_gid_entry gid_;
};

TEST_F(RawTest, QueuePairsShareReceivesAndTheirLimitIsAnEvent) {
  std::vector<ibv_event_type> events;
  AsyncEvents watch(device_,
                    [&](const ibv_async_event& event) { events.push_back(event.event_type); });
  SharedReceiveQueue receives(domain_, 16);
  QueuePairOptions options;
  options.srq = &receives;
  QueuePair a(domain_, completions_, completions_, options);
  QueuePair b(domain_, completions_, completions_, options);
  connect_to(a, b.qp_num());
  connect_to(b, a.qp_num());
  ibv_sge targets[2] = {piece(4096, 100), piece(8192, 100)};
  ibv_recv_wr requests[2] = {{1, &requests[1], &targets[0], 1}, {2, nullptr, &targets[1], 1}};
  ibv_recv_wr* bad_receive = nullptr;
  ASSERT_TRUE(receives.post(requests[0], bad_receive).ok());
  receives.notify_below(2);
  const auto source = data(0, 100);
  for (QueuePair* queue : {&a, &b}) {
    ibv_sge from = piece(0, 100);
    ibv_send_wr request{};
    request.sg_list = &from;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    ibv_send_wr* bad = nullptr;
    ASSERT_TRUE(queue->post_send(request, bad).ok());  // unsignalled: the receive alone is told
    const ibv_wc told = next();
    EXPECT_EQ(told.status, IBV_WC_SUCCESS);
    EXPECT_EQ(told.wr_id, queue == &a ? 1U : 2U);
    EXPECT_EQ(told.qp_num, queue == &a ? b.qp_num() : a.qp_num());
  }
  EXPECT_EQ(std::memcmp(bytes(0, 100).data(), bytes(4096, 100).data(), 100), 0);
  EXPECT_EQ(std::memcmp(bytes(0, 100).data(), bytes(8192, 100).data(), 100), 0);
  const auto reached = [&] {
    watch.deliver();
    return std::find(events.begin(), events.end(), IBV_EVENT_SRQ_LIMIT_REACHED) != events.end();
  };
  EXPECT_TRUE(until(reached, false));
}

TEST_F(RawTest, TheLimitOfSharedReceivesIsWhatItsQuerySays) {
  SharedReceiveQueue receives(domain_, 16);
  EXPECT_GE(receives.query().max_wr, 16U);
  EXPECT_EQ(receives.query().srq_limit, 0U);
  receives.notify_below(3);
  EXPECT_EQ(receives.query().srq_limit, 3U);
}

TEST_F(RawTest, AnEventSaysOfWhichCompletionQueueItIs) {
  CompletionChannel channel(device_);
  int context = 0;
  CompletionQueue sends(device_, 16, &channel);
  CompletionQueue receives(device_, 16, &channel, 0, &context);
  QueuePair a(domain_, sends, receives, {});
  QueuePair b(domain_, sends, receives, {});
  connect_to(a, b.qp_num());
  connect_to(b, a.qp_num());
  ASSERT_TRUE(receives.arm().ok());
  EXPECT_FALSE(channel.take_event());
  ibv_sge target = piece(4096, 100);
  ibv_recv_wr receive{1, nullptr, &target, 1};
  ibv_recv_wr* bad_receive = nullptr;
  ASSERT_TRUE(b.post_receive(receive, bad_receive).ok());
  ibv_sge from = piece(0, 100);
  ibv_send_wr send{};
  send.sg_list = &from;
  send.num_sge = 1;
  send.opcode = IBV_WR_SEND;
  send.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  ASSERT_TRUE(a.post_send(send, bad).ok());
  std::optional<CompletionEvent> event;
  EXPECT_TRUE(until([&] { return (event = channel.take_event()).has_value(); }, false));
  ASSERT_TRUE(event);
  EXPECT_EQ(event->queue, receives.get());
  EXPECT_EQ(event->context, &context);
}

TEST_F(RawTest, AttributesChangeByMaskAndAreQueriedByIt) {
  QueuePairOptions options;
  options.max_send_wr = 33;
  QueuePair a(domain_, completions_, completions_, options);
  QueuePair b(domain_, completions_, completions_, {});
  connect_to(a, b.qp_num());
  connect_to(b, a.qp_num());
  // The calls report the same as libibverbs about the same queue pair.
  const auto same_as_raw = [&](int mask) {
    ibv_qp_attr raw{};
    ibv_qp_init_attr initial{};
    EXPECT_EQ(ibv_query_qp(a.get(), &raw, mask, &initial), 0);
    const QueuePairQuery told = a.query(mask);
    EXPECT_EQ(std::memcmp(&told.attributes.cap, &raw.cap, sizeof raw.cap), 0);
    EXPECT_EQ(told.attributes.qp_access_flags, raw.qp_access_flags);
    EXPECT_EQ(told.initial.cap.max_send_wr, initial.cap.max_send_wr);
    return told;
  };
  ibv_qp_attr change{};
  change.min_rnr_timer = 5;
  change.qp_access_flags = IBV_ACCESS_REMOTE_READ;
  a.modify(change, IBV_QP_MIN_RNR_TIMER | IBV_QP_ACCESS_FLAGS);
  const auto told =
      same_as_raw(IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_CAP);
  EXPECT_EQ(told.attributes.qp_state, IBV_QPS_RTS);
  EXPECT_EQ(told.attributes.min_rnr_timer, 5);
  EXPECT_EQ(told.attributes.qp_access_flags & IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_READ);
  EXPECT_GE(told.initial.cap.max_send_wr, 33U);
  ibv_qp_attr move{};
  move.qp_state = IBV_QPS_SQD;
  a.modify(move, IBV_QP_STATE);
  EXPECT_EQ(a.state(), IBV_QPS_SQD);
  // Until its send queue is drained, it can only move to ERR.
  EXPECT_TRUE(until([&] { return a.query(IBV_QP_STATE).attributes.sq_draining == 0; }, false));
  move.qp_state = IBV_QPS_RTS;
  a.modify(move, IBV_QP_STATE);
  EXPECT_EQ(a.query(IBV_QP_STATE).attributes.qp_state, IBV_QPS_RTS);
  move.qp_state = IBV_QPS_INIT;  // not from RTS
  EXPECT_EQ(support::thrown_by([&] { a.modify(move, IBV_QP_STATE); }).code(),
            ErrorCode::invalid_value);
  EXPECT_EQ(a.state(), IBV_QPS_RTS);
}

TEST_F(RawTest, ADatagramFindsItsWayByIpv6) {
  GidRule rule;
  rule.family = Family::ipv6;
  const ibv_gid_entry gid = choose_gid(device_.gids(), rule);
  ibv_ah_attr to = default_path();
  to.grh.dgid = gid.gid;
  to.grh.sgid_index = static_cast<std::uint8_t>(gid.gid_index);
  to.grh.traffic_class = 32;
  constexpr std::uint32_t kKey = 0x11111111;
  QueuePairOptions options;
  options.qp_type = QpType::ud;
  QueuePair pair(domain_, completions_, completions_, options);
  pair.initialize(1, memory::Access::none, kKey);
  pair.ready_to_receive();
  pair.ready_to_send();
  ibv_sge target = piece(4096, 200);
  ibv_recv_wr receive{1, nullptr, &target, 1};
  ibv_recv_wr* bad_receive = nullptr;
  ASSERT_TRUE(pair.post_receive(receive, bad_receive).ok());
  const AddressHandle path(domain_, to);
  ibv_sge from = piece(0, 100);
  ibv_send_wr send{};
  send.sg_list = &from;
  send.num_sge = 1;
  send.opcode = IBV_WR_SEND;
  send.wr.ud = {path.get(), pair.qp_num(), kKey};
  ibv_send_wr* bad = nullptr;
  ASSERT_TRUE(pair.post_send(send, bad).ok());
  EXPECT_EQ(next().status, IBV_WC_SUCCESS);
  // The header of the packet, as received: version 6, traffic class, source (RFC 8200, 3).
  const auto header = bytes(4096, 40);
  EXPECT_EQ(std::to_integer<int>(header[0]) >> 4, 6);
  EXPECT_EQ((std::to_integer<int>(header[0]) & 15) << 4 | std::to_integer<int>(header[1]) >> 4, 32);
  EXPECT_EQ(std::memcmp(&header[8], gid.gid.raw, 16), 0);
}

TEST_F(RawTest, ADatagramFindsItsWay) {
  constexpr std::uint32_t kKey = 0x11111111;
  constexpr std::uint32_t kHeader = 40;  // the routing header comes before the bytes
  QueuePairOptions options;
  options.qp_type = QpType::ud;
  QueuePair from(domain_, completions_, completions_, options);
  QueuePair to(domain_, completions_, completions_, options);
  for (QueuePair* queue : {&from, &to}) {
    queue->initialize(1, memory::Access::none, kKey);
    queue->ready_to_receive();
    queue->ready_to_send();
  }
  ibv_sge target = piece(4096, 200);
  ibv_recv_wr receive{1, nullptr, &target, 1};
  ibv_recv_wr* bad_receive = nullptr;
  ASSERT_TRUE(to.post_receive(receive, bad_receive).ok());
  const AddressHandle path(domain_, path_to_self());
  const auto source = data(0, 100);
  ibv_sge piece_of_source = piece(0, 100);
  ibv_send_wr send{};
  send.sg_list = &piece_of_source;
  send.num_sge = 1;
  send.opcode = IBV_WR_SEND;
  send.wr.ud = {path.get(), to.qp_num(), kKey};
  ibv_send_wr* bad = nullptr;
  ASSERT_TRUE(from.post_send(send, bad).ok());
  const ibv_wc told = next();
  EXPECT_EQ(told.status, IBV_WC_SUCCESS);
  EXPECT_EQ(told.byte_len, 100 + kHeader);
  EXPECT_EQ(told.src_qp, from.qp_num());
  EXPECT_EQ(std::memcmp(bytes(0, 100).data(), bytes(4096 + kHeader, 100).data(), 100), 0);
}

TEST_F(RawTest, AnErrorShowsInTheStateThatTheDeviceTells) {
  QueuePair a(domain_, completions_, completions_, {});
  QueuePair b(domain_, completions_, completions_, {});
  connect_to(a, b.qp_num());
  connect_to(b, a.qp_num());
  EXPECT_EQ(a.query().qp_state, IBV_QPS_RTS);
  EXPECT_EQ(a.query().dest_qp_num, b.qp_num());
  ibv_sge from = piece(0, 100);
  ibv_send_wr write{};
  write.sg_list = &from;
  write.num_sge = 1;
  write.opcode = IBV_WR_RDMA_WRITE;
  write.wr.rdma = {remote_.address, remote_.key ^ 0x5a5a00};
  ibv_send_wr* bad = nullptr;
  ASSERT_TRUE(a.post_send(write, bad).ok());
  EXPECT_EQ(next().status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_TRUE(until([&] { return a.query().qp_state == IBV_QPS_ERR; }, false));
}

}  // namespace
}  // namespace offload::rdma
