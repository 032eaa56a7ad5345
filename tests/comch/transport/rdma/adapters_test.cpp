#include "comch/transport/rdma/adapters.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "tests/rdma/fake_fixture.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/thrown.hpp"

/// Tests on a fake device, which has the address 10.0.0.1.
namespace offload::comch {
namespace {

using core::ErrorCode;
using rdma::test::fake;
using support::thrown_by;

net::SocketAddress own(const std::string& host) {
  return net::resolve(host, 4711).front();
}

class AdaptersTest : public rdma::FakeDeviceTest {
 protected:
  static bool readable(const Adapters& adapters) {
    pollfd poll{adapters.fd(), POLLIN, 0};
    return ::poll(&poll, 1, 0) == 1;
  }
  static void report(ibv_event_type type) {
    ibv_async_event event{};
    event.event_type = type;
    fake().add_async_event(event);
  }

  support::LogCapture log_;
};

TEST_F(AdaptersTest, TheAddressOfAConnectionSaysTheDevice) {
  Adapters adapters({});
  const auto place = adapters.find(own("10.0.0.1"));
  EXPECT_EQ(place.adapter->device.name(), "fake0");
  EXPECT_EQ(place.path.port_num, 1);
  EXPECT_EQ(rdma::to_string(place.path.gid.address.value()), "10.0.0.1");
  EXPECT_TRUE(
      log_.has("RDMA for 10.0.0.1: fake0 port 1, GID 10.0.0.1 (index 1), traffic class 0, "
               "service level 0, partition 0xffff"))
      << log_.text();
  EXPECT_EQ(adapters.find(own("10.0.0.1")).adapter, place.adapter) << "it is open already";
  const std::string first = log_.text();
  EXPECT_EQ(first.find("RDMA for"), first.rfind("RDMA for")) << first;
}

TEST_F(AdaptersTest, KnowsTheMemoryOfARegion) {
  Adapter adapter("fake0");
  std::array<std::byte, 64> memory{};
  const std::span<std::byte> middle = std::span(memory).subspan(16, 32);
  const Registered region(adapter.registrar, memory::borrow_range(middle));
  for (const auto& [place, expected] :
       {std::pair{15, false}, std::pair{16, true}, std::pair{47, true}, std::pair{48, false}}) {
    EXPECT_EQ(region.contains(&memory[static_cast<std::size_t>(place)]), expected) << place;
  }
}

TEST_F(AdaptersTest, AnAddressThatNoDeviceHas) {
  Adapters adapters({});
  const auto error = thrown_by([&] { adapters.find(own("127.0.0.1")); });
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_EQ(
      std::string(error.what()),
      "no RDMA device has the address 127.0.0.1, of fake0: use an address of an RDMA device, or "
      "name the device with --rdma-device");
  EXPECT_EQ(fake().open_objects(), 0);
}

TEST_F(AdaptersTest, ADeviceThatIsNamed) {
  rdma::PathChoice choice;
  choice.device = "rdma:0";
  EXPECT_EQ(Adapters(choice).find(own("127.0.0.1")).adapter->device.name(), "fake0");
  choice.device = "mlx5_9";
  const auto error = thrown_by([&] { Adapters(choice).find(own("10.0.0.1")); });
  EXPECT_EQ(error.code(), ErrorCode::not_supported) << "another attempt would not help";
  EXPECT_EQ(std::string(error.what()).rfind("--rdma-device: ", 0), 0U) << error.what();
}

TEST_F(AdaptersTest, AChoiceThatFitsNoPortIsAnError) {
  rdma::PathChoice choice;
  EXPECT_NO_THROW(Adapters(choice).check_choice());
  choice.pkey = 0x1234;
  EXPECT_EQ(thrown_by([&] { Adapters(choice).check_choice(); }).code(), ErrorCode::not_found);
  choice.pkey.reset();
  choice.gid_index = 99;
  EXPECT_EQ(thrown_by([&] { Adapters(choice).check_choice(); }).code(), ErrorCode::not_found);
}

TEST_F(AdaptersTest, WhyTheOnlyDeviceCannotBeUsedIsTheError) {
  Adapters adapters({});
  fake().fail_call = "ibv_open_device";
  fake().fail_with = EACCES;
  EXPECT_EQ(thrown_by([&] { adapters.find(own("10.0.0.1")); }).code(), ErrorCode::not_permitted);
  fake().fail_call.clear();
  fake().devices = 0;
  EXPECT_EQ(thrown_by([&] { adapters.find(own("10.0.0.1")); }).code(), ErrorCode::not_supported);
}

TEST_F(AdaptersTest, EventsOfItsDevicesAreLogged) {
  Adapters adapters({});
  const auto place = adapters.find(own("10.0.0.1"));
  EXPECT_FALSE(readable(adapters));
  report(IBV_EVENT_PORT_ERR);
  EXPECT_TRUE(readable(adapters));
  EXPECT_EQ(adapters.log_events(), "");
  EXPECT_FALSE(readable(adapters));
  EXPECT_FALSE(place.adapter->has_failed);
  EXPECT_TRUE(log_.has("fake0 reports: ")) << log_.text();
  EXPECT_EQ(adapters.find(own("10.0.0.1")).adapter, place.adapter);
}

// Its connections keep the device open until they end, and its later events wake no thread.
TEST_F(AdaptersTest, ADeviceThatFailedIsOpenedAgain) {
  Adapters adapters({});
  const auto place = adapters.find(own("10.0.0.1"));
  report(IBV_EVENT_DEVICE_FATAL);
  EXPECT_EQ(adapters.log_events(), "fake0");
  EXPECT_TRUE(place.adapter->has_failed);
  report(IBV_EVENT_PORT_ERR);
  EXPECT_FALSE(readable(adapters));
  EXPECT_NE(adapters.find(own("10.0.0.1")).adapter, place.adapter);
}

}  // namespace
}  // namespace offload::comch
