#include <array>
#include <memory>
#include <utility>

#include "memory/region.hpp"
#include "rdma/verbs/async_events.hpp"
#include "rdma/verbs/completion_queue.hpp"
#include "rdma/verbs/protection_domain.hpp"
#include "rdma/verbs/queue_pair.hpp"
#include "tests/rdma/fake_fixture.hpp"
#include "tests/support/log_capture.hpp"
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
  AddressHandle path{domain, Path{}};
  QueuePair queue{domain, completions, completions, {}};
  Registrar registrar{domain};
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
    static_cast<void>(queue.query());
    queue.fail();
    queue.reset();
  }
};

using ObjectsTest = FakeDeviceTest;

// Each call that can fail, in turn; the fixture sees that nothing is left.
TEST_F(ObjectsTest, AnyCallMayFailAndNothingLeaks) {
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

TEST_F(ObjectsTest, MovedOnesAreEndedOnce) {
  DeviceContext device("fake0");
  DeviceContext moved(std::move(device));
  ProtectionDomain domain(moved);
  ProtectionDomain other(moved);
  EXPECT_EQ(fake().open["ibv_alloc_pd"], 2);
  domain = std::move(other);
  EXPECT_EQ(fake().open["ibv_alloc_pd"], 1);
}

TEST_F(ObjectsTest, ImportedOnesAreLeftToTheirOwner) {
  const DeviceContext device("fake0");
  const ProtectionDomain domain(device);
  {
    const auto same = DeviceContext::import(device.get());
    EXPECT_EQ(same.name(), "fake0");
    EXPECT_EQ(same.limits().max_sge, 8U);
    const auto same_domain = ProtectionDomain::import(domain.get());
    EXPECT_EQ(same_domain.get(), domain.get());
  }
  EXPECT_EQ(fake().open_objects(), 2);
  EXPECT_EQ(thrown_by([] { DeviceContext::import(nullptr); }).code(), ErrorCode::invalid_value);
  EXPECT_EQ(thrown_by([] { ProtectionDomain::import(nullptr); }).code(), ErrorCode::invalid_value);
}

TEST_F(ObjectsTest, ADeviceIsFoundByItsName) {
  const auto error = thrown_by([] { const DeviceContext device("mlx5_9"); });
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_NE(std::string(error.what()).find("fake0"), std::string::npos);
  const auto devices = device::list_devices();
  const auto& listed = device::find(devices, "rdma:0");
  EXPECT_EQ(listed.name, "fake0");
  EXPECT_EQ(DeviceContext(listed).name(), "fake0");
  EXPECT_EQ(thrown_by([&] { const DeviceContext device(devices[0]); }).code(),
            ErrorCode::invalid_value);
}

TEST_F(ObjectsTest, WithoutDevicesItIsSaidWhy) {
  fake().fail_call = "ibv_get_device_list";
  fake().fail_with = ENOSYS;
  EXPECT_NE(device::why_no_rdma().find("ib_uverbs"), std::string::npos);
  fake().fail_call.clear();
  EXPECT_EQ(device::why_no_rdma(), "");
  fake().devices = 0;
  EXPECT_NE(device::why_no_rdma(), "");
}

TEST_F(ObjectsTest, ADeviceTellsWhatItCan) {
  const DeviceContext device("fake0");
  EXPECT_EQ(device.limits().max_qp_init_rd_atom, 8);
  EXPECT_EQ(device.limits().max_qp_rd_atom, 16);
  EXPECT_EQ(device.atomics(), Atomics::device);
  EXPECT_EQ(device.ports(), 1);
  EXPECT_TRUE(device.supports(QpType::uc));
  EXPECT_FALSE(device.supports_on_demand_paging());
  EXPECT_TRUE(device.port().active());
  EXPECT_TRUE(device.port().ethernet);
  ASSERT_EQ(device.gids().size(), 1U);
  EXPECT_EQ(to_string(device.gids()[0].value), "10.0.0.1");
  EXPECT_TRUE(device.gids(2).empty());
}

TEST_F(ObjectsTest, AQueuePairGoesThroughItsStatesInTheirOrder) {
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
  EXPECT_EQ(queue.state(), QueuePair::State::error);
  EXPECT_EQ(queue.post_send(send, bad_send), ErrorCode::bad_state);
  queue.reset();
  queue.initialize();
  EXPECT_EQ(name_of(queue.state()), "INIT");
}

TEST_F(ObjectsTest, AStateThatTheDeviceRefusesIsNotTaken) {
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
  EXPECT_EQ(queue.state(), QueuePair::State::init);
}

TEST_F(ObjectsTest, RetriesHaveAnEnd) {
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

TEST_F(ObjectsTest, DatagramsHaveNoPeer) {
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
  EXPECT_EQ(datagrams.state(), QueuePair::State::ready_to_send);
}

TEST_F(ObjectsTest, ACompletionQueueThatFailsSaysSo) {
  const DeviceContext device("fake0");
  CompletionQueue completions(device, 16);
  std::array<ibv_wc, 4> room{};
  fake().completions.resize(5);
  EXPECT_EQ(completions.poll(room).size(), 4U);
  EXPECT_EQ(completions.poll(room).size(), 1U);
  EXPECT_FALSE(completions.failed());
  fake().fail_call = "poll_cq";
  EXPECT_TRUE(completions.poll(room).empty());
  EXPECT_TRUE(completions.failed());
  fake().fail_call = "req_notify_cq";
  EXPECT_EQ(completions.arm(), ErrorCode::driver);
  EXPECT_EQ(thrown_by([&] { completions.moderate(8, 10); }).code(), ErrorCode::not_supported);
  EXPECT_EQ(thrown_by([&] { const CompletionQueue none(device, 0); }).code(),
            ErrorCode::invalid_value);
}

TEST_F(ObjectsTest, EventsOfAChannelAreTakenAndAcknowledged) {
  const DeviceContext device("fake0");
  CompletionChannel channel(device);
  EXPECT_EQ(channel.take_events(), 0U);
  fake().ring();
  fake().ring();
  EXPECT_EQ(channel.take_events(), 2U);
  EXPECT_EQ(fake().acknowledged, 2);
}

TEST_F(ObjectsTest, ADmaBufIsRegisteredAsOneOrElseByItsAddress) {
  const DeviceContext device("fake0");
  const ProtectionDomain domain(device);
  EXPECT_TRUE(domain.supports_dma_buf());
  Registrar registrar(domain);
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

TEST_F(ObjectsTest, WhatCannotBeRegisteredSaysWhyForEachWay) {
  const DeviceContext device("fake0");
  const ProtectionDomain domain(device);
  Registrar registrar(domain);
  memory::Range range = memory::allocate_range(4096);
  fake().fail_call = "ibv_reg_mr";
  fake().fail_with = ENOMEM;
  EXPECT_EQ(thrown_by([&] { registrar.register_range(range, memory::kLocalAccess); }).code(),
            ErrorCode::no_memory);
  range.location = memory::Location::device;
  const auto error = thrown_by([&] { registrar.register_range(range, memory::kLocalAccess); });
  EXPECT_NE(std::string(error.what()).find("it has no dma-buf"), std::string::npos);
}

TEST_F(ObjectsTest, AsynchronousEventsComeInTurnsOfTheEngine) {
  const DeviceContext device("fake0");
  const ProtectionDomain domain(device);
  const SharedReceiveQueue receives(domain, 16);
  progress::Engine engine;
  std::vector<AsyncEvent> events;
  {
    const AsyncEvents watch(device, engine,
                            [&](const AsyncEvent& event) { events.push_back(event); });
    ibv_async_event event{};
    event.event_type = IBV_EVENT_PORT_ERR;
    event.element.port_num = 1;
    fake().add_async_event(event);
    event.event_type = IBV_EVENT_SRQ_LIMIT_REACHED;
    event.element.srq = receives.get();
    fake().add_async_event(event);
    for (int turns = 0; turns < 100 && events.size() < 2; ++turns) engine.progress();
    ASSERT_EQ(events.size(), 2U);
    fake().add_async_event(event);
  }
  for (int turns = 0; turns < 100; ++turns) engine.progress();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].about, AsyncEvent::About::port);
  EXPECT_EQ(events[0].port, 1);
  EXPECT_EQ(events[1].about, AsyncEvent::About::srq);
  EXPECT_EQ(events[1].of, receives.get());
  EXPECT_EQ(fake().acknowledged, 2);
}

}  // namespace
}  // namespace offload::rdma
