#include "rdma/verbs/async_events.hpp"

#include <vector>

#include "rdma/verbs/shared_receive_queue.hpp"
#include "tests/rdma/fake_fixture.hpp"

namespace offload::rdma {
namespace {

using test::fake;

using AsyncEventsTest = FakeDeviceTest;

TEST_F(AsyncEventsTest, AsynchronousEventsComeInTurnsOfTheEngine) {
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

TEST_F(AsyncEventsTest, EveryEventSaysWhatItIsAbout) {
  using About = AsyncEvent::About;
  const DeviceContext device("fake0");
  progress::Engine engine;
  std::vector<AsyncEvent> events;
  const AsyncEvents watch(device, engine,
                          [&](const AsyncEvent& event) { events.push_back(event); });
  ibv_qp pair{};
  ibv_cq completions{};
  ibv_async_event event{};
  event.event_type = IBV_EVENT_CQ_ERR;
  event.element.cq = &completions;
  fake().add_async_event(event);
  event.element.qp = &pair;
  for (const auto type : {IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR,
                          IBV_EVENT_QP_LAST_WQE_REACHED}) {
    event.event_type = type;
    fake().add_async_event(event);
  }
  event.event_type = IBV_EVENT_DEVICE_FATAL;
  fake().add_async_event(event);
  for (int turns = 0; turns < 100; ++turns) engine.progress();
  ASSERT_EQ(events.size(), 6U);
  EXPECT_EQ(events[0].about, About::completion_queue);
  EXPECT_EQ(events[0].of, &completions);
  for (std::size_t i = 1; i < 5; ++i) {
    EXPECT_EQ(events[i].about, About::queue_pair);
    EXPECT_EQ(events[i].of, &pair);
  }
  EXPECT_EQ(events[5].about, About::device);
  EXPECT_EQ(events[5].of, nullptr);
  EXPECT_EQ(fake().acknowledged, 6);
}

}  // namespace
}  // namespace offload::rdma
