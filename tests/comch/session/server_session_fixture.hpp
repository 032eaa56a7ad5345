#pragma once

#include <memory>
#include <string>

#include "tests/comch/session/session_fixture.hpp"

namespace offload::comch::test {

/// The server's session with a hand-made worker.
class ServerSessionTest : public SessionTest {
 protected:
  void SetUp() override {
    SessionTest::SetUp();
    listen();
    worker_ = connect_to(address_);
  }

  void send(protocol::MessageId id, std::span<const std::byte> payload = {}) {
    worker_->send(id, payload);
  }
  void greet() { send(protocol::MessageId::hello, hello().encode()); }
  void exchange(std::uint32_t channel) {
    send(protocol::MessageId::exchange_consumer_id_request,
         protocol::ExchangeConsumerId{channel, channel}.encode());
  }

  void greet_and_take_the_offer() {
    greet();
    take_the_offer();
  }
  void take_the_offer() {
    EXPECT_EQ(next(*worker_).id, protocol::MessageId::welcome);
    for (std::uint32_t i = 0; i < kChannels; ++i) {
      EXPECT_EQ(next(*worker_).id, protocol::MessageId::channel_descriptor);
    }
  }
  void attach_by_hand() {
    greet_and_take_the_offer();
    for (std::uint32_t i = 0; i < kChannels; ++i) exchange(i);
    ASSERT_TRUE(run_until([&] { return worker_events_.attached == 1; }));
    for (std::uint32_t i = 0; i < kChannels; ++i) next(*worker_);
  }

  /// The worker is refused so, and disconnected.
  void expect_refused(protocol::Refusal code, const std::string& part_of_text) {
    const auto message = next(*worker_);
    ASSERT_EQ(message.id, protocol::MessageId::error);
    const auto refusal = protocol::parse_error(message.payload);
    EXPECT_EQ(refusal.code, code) << refusal.text;
    EXPECT_NE(refusal.text.find(part_of_text), std::string::npos) << refusal.text;
    EXPECT_TRUE(is_closed_on(*worker_));
  }

  /// The session is as good as new: the next worker gets through.
  void expect_next_worker_attaches() {
    worker_ = connect_to(address_);
    const int before = worker_events_.attached;
    greet_and_take_the_offer();
    for (std::uint32_t i = 0; i < kChannels; ++i) exchange(i);
    EXPECT_TRUE(run_until([&] { return worker_events_.attached == before + 1; }));
  }

  std::unique_ptr<ControlConnection> worker_;
};

}  // namespace offload::comch::test
