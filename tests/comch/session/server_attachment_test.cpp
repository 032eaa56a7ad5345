#include "comch/session/server_attachment.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/comch/session/session_fixture.hpp"

namespace offload::comch {
namespace {

using protocol::AttachChannel;
using protocol::ExchangeConsumerId;
using protocol::MessageId;
using protocol::Refusal;

/// The server's session with a hand-made worker on another machine, whose channels are connections.
class RemoteAttachmentTest : public test::SessionTest {
 protected:
  void SetUp() override {
    address_ = Address::parse("tcp:127.0.0.1:0");
    address_.insecure = true;
    listen();
    address_ = server_session_->address();
    worker_ = connect_to(address_);
    worker_->send(MessageId::hello, test::hello().encode());
    EXPECT_EQ(next(*worker_).id, MessageId::welcome);
    take_offer(0);
  }

  void take_offer(std::uint32_t channel) {
    const auto message = next(*worker_);
    ASSERT_EQ(message.id, MessageId::channel_descriptor);
    const auto offered = protocol::ChannelDescriptor::decode(message.payload);
    ASSERT_TRUE(offered);
    EXPECT_EQ(offered->channel, channel);
    ASSERT_EQ(offered->access.size(), token_.size());
    std::copy(offered->access.begin(), offered->access.end(), token_.begin());
  }
  /// Connects for the data of a channel. Returns the server's answer.
  ControlMessage connect_channel(std::uint32_t channel) {
    data_.push_back(connect_to(address_));
    AttachChannel request{channel};
    request.token = token_;
    data_.back()->send(MessageId::attach_channel, request.encode());
    return next(*data_.back());
  }
  void expect_attached(std::uint32_t channel) {
    EXPECT_EQ(connect_channel(channel).id, MessageId::channel_attached) << channel;
  }
  void expect_no_such_channel(std::uint32_t channel) {
    const auto answer = connect_channel(channel);
    ASSERT_EQ(answer.id, MessageId::error) << channel;
    const auto refusal = protocol::parse_error(answer.payload);
    EXPECT_EQ(refusal.code, Refusal::bad_hello);
    EXPECT_EQ(refusal.text, "no such channel waits to be attached");
  }
  void exchange(std::uint32_t channel) {
    worker_->send(MessageId::exchange_consumer_id_request,
                  ExchangeConsumerId{channel, channel}.encode());
  }
  void expect_refused_id(std::uint32_t channel) {
    exchange(channel);
    const auto message = next(*worker_);
    ASSERT_EQ(message.id, MessageId::error) << channel;
    const auto refusal = protocol::parse_error(message.payload);
    EXPECT_EQ(refusal.code, Refusal::bad_hello);
    EXPECT_EQ(refusal.text, "consumer id of a channel that it does not have yet");
    EXPECT_TRUE(is_closed_on(*worker_));
    EXPECT_EQ(worker_events_.attached, 0);
  }

  std::unique_ptr<ControlConnection> worker_;
  protocol::Token token_{};
  std::vector<std::unique_ptr<ControlConnection>> data_;
};

TEST_F(RemoteAttachmentTest, OnlyTheNextChannelCanBeAttached) {
  for (const std::uint32_t other : {1U, kChannels, 0xffff'ffffU}) expect_no_such_channel(other);
  expect_attached(0);
  take_offer(1);
  for (const std::uint32_t other : {0U, kChannels, 0xffff'ffffU}) expect_no_such_channel(other);
  expect_attached(1);
  for (std::uint32_t i = 0; i <= kChannels; ++i) expect_no_such_channel(i);
  EXPECT_EQ(worker_events_.attached, 0);
  for (std::uint32_t i = 0; i < kChannels; ++i) exchange(i);
  ASSERT_TRUE(run_until([&] { return worker_events_.attached == 1; }));
  for (std::uint32_t i = 0; i <= kChannels; ++i) expect_no_such_channel(i);
  EXPECT_EQ(worker_events_.lost, 0);
}

TEST_F(RemoteAttachmentTest, AChannelHasNoConsumerIdBeforeItsConnection) {
  expect_refused_id(0);
}

TEST_F(RemoteAttachmentTest, TheNextChannelHasNoConsumerIdBeforeItsConnection) {
  expect_attached(0);
  take_offer(1);
  exchange(0);
  EXPECT_EQ(next(*worker_).id, MessageId::exchange_consumer_id_response);
  expect_refused_id(1);
}

TEST_F(RemoteAttachmentTest, AWorkerThatConnectsNoChannelIsDroppedAfterAMinute) {
  expect_attached(0);
  take_offer(1);
  server_session_->tick(server_engine_.run_time() + std::chrono::seconds(59));
  EXPECT_FALSE(worker_->receive());
  server_session_->tick(server_engine_.run_time() + std::chrono::seconds(61));
  EXPECT_TRUE(is_closed_on(*worker_));
  expect_no_such_channel(1);
}

}  // namespace
}  // namespace offload::comch
