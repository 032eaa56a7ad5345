#include "comch/transport/rdma/control.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <cstdlib>
#include <future>
#include <optional>
#include <string>
#include <utility>

#include "comch/transport/rdma/adapters.hpp"
#include "comch/transport/rdma/data.hpp"
#include "comch/transport/tcp/stream.hpp"
#include "core/error.hpp"
#include "tests/comch/keys.hpp"
#include "tests/rdma/fake_fixture.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

/// Control connections over loopback, on a fake device, which has another address: 10.0.0.1.
namespace offload::comch {
namespace {

using core::Error;
using core::ErrorCode;
using protocol::MessageId;
using rdma::test::fake;
using support::thrown_by;

constexpr std::uint32_t kEndpointDepth = 4;

/// `device`: named by the address; empty: none.
Address rdma_address(const std::string& host, const std::string& device) {
  Address address = test::address_with("rdma:" + host + ":0", test::keyring_of(7));
  address.path_choice.device = device;
  return address;
}

class RdmaControlTest : public rdma::FakeDeviceTest {
 protected:
  /// The connection of the worker, or the reason why there is none.
  using Result = std::pair<std::unique_ptr<ControlConnection>, std::optional<Error>>;

  void listen(const Address& address) { listener_ = listen_rdma(address); }
  /// The worker connects on a separate thread.
  Result connect(Address address) {
    address.port = listener_->address().port;
    auto connected = std::async(std::launch::async, [address]() -> Result {
      try {
        return {connect_rdma(address), std::nullopt};
      } catch (const Error& error) {
        return {nullptr, error};
      }
    });
    EXPECT_TRUE(support::eventually([&] {
      shake_hands();
      return connected.wait_for(core::Duration::zero()) == std::future_status::ready;
    }));
    return connected.get();
  }

  /// The server's part of the handshake, as far as it goes now.
  void shake_hands() {
    if (!server_) server_ = listener_->accept();
    try {
      if (server_ && !server_->proven()) server_->receive();
    } catch (const Error&) {
      server_.reset();  // the worker has gone
    }
  }

  support::LogCapture log_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<ControlConnection> server_;
};

TEST_F(RdmaControlTest, AServerListensWhereADeviceIs) {
  EXPECT_NO_THROW(listen(rdma_address("0.0.0.0", "")));
  EXPECT_NO_THROW(listen(rdma_address("127.0.0.1", "fake0")));
  listener_.reset();
  const auto error = thrown_by([&] { listen(rdma_address("127.0.0.1", "")); });
  EXPECT_EQ(error.code(), ErrorCode::not_supported);
  EXPECT_NE(std::string(error.what()).find("no RDMA device has the address 127.0.0.1"),
            std::string::npos)
      << error.what();
  EXPECT_EQ(thrown_by([&] { listen(rdma_address("0.0.0.0", "mlx5_9")); }).code(),
            ErrorCode::not_supported);
  fake().devices = 0;
  EXPECT_EQ(thrown_by([&] { listen(rdma_address("0.0.0.0", "")); }).code(),
            ErrorCode::not_supported);
}

TEST_F(RdmaControlTest, AWorkerWhoseAddressNoDeviceHasDoesNotGreet) {
  listen(rdma_address("127.0.0.1", "fake0"));
  const auto [worker, error] = connect(rdma_address("127.0.0.1", ""));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::not_found) << "it may come to have it";
}

// ---- A name of several addresses, which tests/process/preloaded/known_names.cpp tells

class RdmaNameTest : public RdmaControlTest {
 protected:
  RdmaNameTest() {
    dir_.write("names", "dpu ::1 127.0.0.1\nhalf 127.0.0.2 127.0.0.1\n");
    ::setenv("OFFLOAD_NAMES", dir_.file("names").c_str(), 1);
    fake().gids.front().gid = rdma::parse_gid("127.0.0.1");
  }
  ~RdmaNameTest() override { ::unsetenv("OFFLOAD_NAMES"); }

  support::TempDir dir_;
};

TEST_F(RdmaNameTest, AnAddressAtWhichNobodyListensIsPassedOver) {
  listen(rdma_address("127.0.0.1", ""));
  const auto [worker, error] = connect(rdma_address("half", ""));
  ASSERT_FALSE(error) << error->what();
  EXPECT_TRUE(log_.has(" at 127.0.0.2:")) << log_.text();
}

TEST_F(RdmaNameTest, AnAddressThatNoDeviceHasIsPassedOver) {
  listen(rdma_address("dpu", ""));
  if (log_.has("this address is skipped")) GTEST_SKIP() << "this machine has no IPv6 loopback";
  const auto [worker, error] = connect(rdma_address("dpu", ""));
  ASSERT_FALSE(error) << error->what();
  EXPECT_TRUE(log_.has("no RDMA device has the address ::1")) << log_.text();
  EXPECT_TRUE(log_.has("RDMA for 127.0.0.1: fake0 port 1")) << log_.text();
  // The channels go where the control connection went.
  const auto& network = dynamic_cast<NetworkControlConnection&>(*worker);
  EXPECT_EQ(network.source().host(), "127.0.0.1");
}

// ---- Connections

TEST_F(RdmaControlTest, TheKeyIsProvenByTls) {
  listen(rdma_address("127.0.0.1", "fake0"));
  const auto [worker, error] = connect(rdma_address("127.0.0.1", "fake0"));
  ASSERT_FALSE(error) << error->what();
  EXPECT_TRUE(log_.has(": TLS 1.3")) << log_.text();
  EXPECT_TRUE(support::eventually([&] {
    shake_hands();
    return server_ && server_->proven();
  }));
}

// Each is on the device of its connection, with the choices of the options.
TEST_F(RdmaControlTest, EndpointsAreQueuePairs) {
  fake().device.atomic_cap = IBV_ATOMIC_NONE;  // messages need none
  Address address = rdma_address("127.0.0.1", "fake0");
  address.path_choice.pkey = 0x8001;
  address.path_choice.service_level = 2;
  fake().pkeys = {0xffff, 0x8001};
  listen(address);
  const auto [worker, error] = connect(address);
  ASSERT_FALSE(error) << error->what();

  Adapters adapters(address.path_choice);
  const auto place = adapters.find(net::resolve("127.0.0.1", 1).front());
  RdmaDataEndpoint own(place.adapter, place.path, kEndpointDepth);
  protocol::AttachChannel request{0};
  request.endpoint = own.descriptor();
  worker->send(MessageId::attach_channel, request.encode());
  const auto came = protocol::AttachChannel::decode(server_->await().payload);
  ASSERT_TRUE(came);
  auto& network = dynamic_cast<NetworkControlConnection&>(*server_);
  const auto granted = network.grant_data_endpoint(*came, kEndpointDepth);
  server_.reset();  // its end loses nothing of the answer
  const auto answer = worker->await();
  ASSERT_EQ(answer.id, MessageId::channel_attached);
  EXPECT_NO_THROW(own.connect(answer.payload));

  ASSERT_EQ(fake().queue_pairs.size(), 2U);
  for (const rdma::test::FakeQueuePair* queue : fake().queue_pairs) {
    ASSERT_EQ(queue->modified.size(), 3U) << "INIT, RTR, RTS";
    EXPECT_EQ(queue->modified[0].pkey_index, 1);
    EXPECT_EQ(queue->modified[1].ah_attr.sl, 2);
  }
  EXPECT_EQ(rdma::ConnectionDescriptor::decode(answer.payload).qp_num,
            fake().queue_pairs[1]->native.qp_num);
}

// TLS and the greeting are the same over both.
TEST_F(RdmaControlTest, APeerOverTcpIsToldApart) {
  listen(rdma_address("127.0.0.1", "fake0"));
  const auto [worker, error] = connect(rdma_address("127.0.0.1", "fake0"));
  ASSERT_FALSE(error) << error->what();
  auto& network = dynamic_cast<NetworkControlConnection&>(*server_);
  const auto refused =
      thrown_by([&] { static_cast<void>(network.grant_data_endpoint({}, kEndpointDepth)); });
  EXPECT_EQ(refused.code(), ErrorCode::bad_message);
  EXPECT_NE(std::string(refused.what()).find("the same --comch"), std::string::npos)
      << refused.what();
}

TEST_F(RdmaControlTest, EventsOfTheDeviceAreLoggedBesideTheMessages) {
  listen(rdma_address("127.0.0.1", "fake0"));
  auto [worker, error] = connect(rdma_address("127.0.0.1", "fake0"));
  ASSERT_FALSE(error) << error->what();
  listener_.reset();  // the fake device has one queue of events
  ibv_async_event event{};
  event.event_type = IBV_EVENT_PORT_ERR;
  fake().add_async_event(event);
  EXPECT_TRUE(wait_for(POLLIN, worker->fd(), core::Clock::now() + std::chrono::seconds(5)));
  EXPECT_FALSE(worker->receive());
  EXPECT_TRUE(log_.has("fake0 reports: ")) << log_.text();
  server_->send(MessageId::keep_alive, protocol::KeepAlive{1}.encode());
  EXPECT_TRUE(wait_for(POLLIN, worker->fd(), core::Clock::now() + std::chrono::seconds(5)));
  EXPECT_EQ(worker->await().id, MessageId::keep_alive);
}

// It completes nothing that is posted, and only its event tells the worker.
TEST_F(RdmaControlTest, ADeviceThatFailsEndsTheConnection) {
  listen(rdma_address("127.0.0.1", "fake0"));
  auto [worker, error] = connect(rdma_address("127.0.0.1", "fake0"));
  ASSERT_FALSE(error) << error->what();
  listener_.reset();  // the fake device has one queue of events
  ibv_async_event event{};
  event.event_type = IBV_EVENT_DEVICE_FATAL;
  fake().add_async_event(event);
  EXPECT_TRUE(wait_for(POLLIN, worker->fd(), core::Clock::now() + std::chrono::seconds(5)));
  const auto failed = thrown_by([&worker = worker] { static_cast<void>(worker->receive()); });
  EXPECT_EQ(failed.code(), ErrorCode::driver);
  EXPECT_EQ(std::string(failed.what()), "fake0 has failed");
}

}  // namespace
}  // namespace offload::comch
