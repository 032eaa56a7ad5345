#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/comch/unsolicited.hpp"
#include "tests/kernels/bodies/runner_suite.hpp"
#include "tests/kernels/test_channel.hpp"

/// Messages that answer no request: they are sent only where the peer has posted a receive.
namespace offload::kernels::test {

/// The state that the group keeps between two sends of a test.
struct Sending {
  comch::UnsolicitedProducer<> producer;
  Staging memory;
  comch::SentMessage sent[4];
  std::uint32_t result;
  std::uint32_t completed;
  std::uint32_t last_id;
};

struct SendStep {
  Sending* sending;
  const std::uint8_t* bytes;
  std::uint32_t length;
  std::uint32_t user_msg_id;
  bool sends;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, Staging&) const {
    auto producer = sending->producer;
    std::uint32_t completed = 0;
    std::uint32_t last = 0;
    for (std::uint32_t id = 0; producer.poll_completion(group, id); ++completed) last = id;
    auto result = comch::SendResult::sent;
    if (sends) result = producer.send(group, bytes, length, user_msg_id);
    group.sync();
    if (group.lane() != 0) return;
    sending->producer = producer;
    sending->result = static_cast<std::uint32_t>(result);
    sending->completed = completed;
    sending->last_id = last;
  }
};

/// A channel of 4 slots, and a group that sends over it.
template <class Runner>
class SendingEnd {
 public:
  explicit SendingEnd(std::uint32_t remembered = 4, std::uint64_t first = 0)
      : channel(4, 500), memory_(sizeof(Sending)) {
    sending().producer = comch::UnsolicitedProducer<>(channel.channel(), sending().memory,
                                                      sending().sent, remembered, first);
  }

  comch::SendResult send(const Octets& message, std::uint32_t id = 0) {
    const typename Runner::Memory bytes(message.size() + 2 * kSlack);
    std::copy(message.begin(), message.end(), bytes.data() + kSlack);
    Runner::run(SendStep{&sending(), bytes.data() + kSlack,
                         static_cast<std::uint32_t>(message.size()), id, true});
    return static_cast<comch::SendResult>(sending().result);
  }
  /// Returns the number of sends that are complete by now.
  std::uint32_t poll() {
    Runner::run(SendStep{&sending(), nullptr, 0, 0, false});
    return sending().completed;
  }
  /// Sets the count of messages that the peer has consumed, as the peer does.
  void consume(std::uint64_t count) {
    __atomic_store_n(&channel.channel().request_header().consumed, count, __ATOMIC_RELAXED);
  }
  [[nodiscard]] Sending& sending() { return *reinterpret_cast<Sending*>(memory_.data()); }

  TestChannel<Runner> channel;

 private:
  typename Runner::Memory memory_;
};

template <class Runner>
class Unsolicited : public RunnerSuite<Runner> {};
TYPED_TEST_SUITE_P(Unsolicited);

TYPED_TEST_P(Unsolicited, NothingIsSentWithoutAReceive) {
  SendingEnd<TypeParam> end(4, 8);
  const auto before = end.channel.bytes();
  EXPECT_EQ(end.send(random_octets(20)), comch::SendResult::no_receive);
  EXPECT_EQ(end.channel.bytes(), before);
  end.channel.post(8, {});
  EXPECT_EQ(end.send(random_octets(20)), comch::SendResult::sent);
  EXPECT_EQ(end.channel.response(8), random_octets(20));
  EXPECT_EQ(end.send(random_octets(21)), comch::SendResult::no_receive);
}

TYPED_TEST_P(Unsolicited, MessagesTakeReceivesInTheirOrderAndComplete) {
  SendingEnd<TypeParam> end;
  for (std::uint64_t i = 0; i < 4; ++i) end.channel.post(i, {});
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(end.send(random_octets(12 * i), 50 + i), comch::SendResult::sent);
    EXPECT_EQ(end.channel.response(i), random_octets(12 * i));
  }
  EXPECT_EQ(end.poll(), 0U);
  end.consume(3);
  EXPECT_EQ(end.poll(), 3U);
  EXPECT_EQ(end.sending().last_id, 52U);
  // The peer posts a receive again, in the slot whose message it has taken.
  end.channel.post(4, {});
  EXPECT_EQ(end.send(random_octets(48)), comch::SendResult::sent);
  EXPECT_EQ(end.channel.response(4), random_octets(48));
}

TYPED_TEST_P(Unsolicited, AReceiveIsKeptForAMessageThatFits) {
  SendingEnd<TypeParam> end(1);
  end.channel.post(0, {});
  end.channel.post(1, random_octets(400));  // room for the same length
  EXPECT_EQ(end.send(random_octets(49)), comch::SendResult::too_long);
  end.channel.post_header(0, 400);  // a peer that changes the receive which was taken
  EXPECT_EQ(end.send(random_octets(49)), comch::SendResult::too_long);
  EXPECT_EQ(end.send(random_octets(48), 7), comch::SendResult::sent);
  EXPECT_EQ(end.channel.response(0), random_octets(48));
  EXPECT_EQ(end.send(random_octets(400)), comch::SendResult::full);
  end.consume(1);
  EXPECT_EQ(end.poll(), 1U);
  EXPECT_EQ(end.send(random_octets(400)), comch::SendResult::sent);
  EXPECT_EQ(end.channel.response(1), random_octets(400));
}

TYPED_TEST_P(Unsolicited, AReceiveThatIsNoneIsRefusedAndTheNextOneTaken) {
  SendingEnd<TypeParam> end;
  end.channel.post_header(0, 501);             // longer than the channel takes
  end.channel.post(1, random_octets(100), 3);  // a batch: it would get three copies
  end.channel.post(2, {});
  for (std::uint64_t i = 0; i < 2; ++i) {
    EXPECT_EQ(end.send(random_octets(30)), comch::SendResult::refused);
    EXPECT_EQ(end.channel.response(i), std::nullopt);
    EXPECT_NE(load_packet(end.channel.channel().response(i).packets).data[1], 0U);
  }
  EXPECT_EQ(end.send(random_octets(30)), comch::SendResult::sent);
  EXPECT_EQ(end.channel.response(2), random_octets(30));
}

REGISTER_TYPED_TEST_SUITE_P(Unsolicited, NothingIsSentWithoutAReceive,
                            MessagesTakeReceivesInTheirOrderAndComplete,
                            AReceiveIsKeptForAMessageThatFits,
                            AReceiveThatIsNoneIsRefusedAndTheNextOneTaken);

}  // namespace offload::kernels::test
