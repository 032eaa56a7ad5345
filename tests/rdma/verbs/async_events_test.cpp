#include "rdma/verbs/async_events.hpp"

#include <poll.h>

#include <vector>

#include "rdma/verbs/shared_receive_queue.hpp"
#include "tests/rdma/fake_fixture.hpp"

namespace offload::rdma {
namespace {

using test::fake;

using AsyncEventsTest = FakeDeviceTest;

TEST_F(AsyncEventsTest, EventsThatHaveComeAreDelivered) {
  const DeviceContext device("fake0");
  const ProtectionDomain domain(device);
  const SharedReceiveQueue receives(domain, 16);
  std::vector<ibv_async_event> events;
  AsyncEvents watch(device, [&](const ibv_async_event& event) { events.push_back(event); });
  const auto readable = [&] {
    pollfd poll{watch.fd(), POLLIN, 0};
    return ::poll(&poll, 1, 0) == 1;
  };
  EXPECT_FALSE(readable());
  watch.deliver();
  ibv_async_event event{};
  event.event_type = IBV_EVENT_PORT_ERR;
  event.element.port_num = 1;
  fake().add_async_event(event);
  event.event_type = IBV_EVENT_SRQ_LIMIT_REACHED;
  event.element.srq = receives.get();
  fake().add_async_event(event);
  EXPECT_TRUE(readable());
  watch.deliver();
  EXPECT_FALSE(readable());
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].event_type, IBV_EVENT_PORT_ERR);
  EXPECT_EQ(events[0].element.port_num, 1);
  EXPECT_EQ(events[1].event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
  EXPECT_EQ(events[1].element.srq, receives.get());
  EXPECT_EQ(fake().acknowledged, 2);
}

}  // namespace
}  // namespace offload::rdma
