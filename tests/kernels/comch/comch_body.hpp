#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "kernels/comch/producer.hpp"
#include "kernels/services.hpp"
#include "tests/kernels/bodies/runner_suite.hpp"
#include "tests/kernels/bodies/slot_contents.hpp"
#include "tests/kernels/test_channel.hpp"

/// Consumer and producer of a channel: which messages are taken, in which order they may be
/// answered, and when a send is complete.
namespace offload::kernels::test {

inline constexpr std::uint32_t kInHand = 4;

/// The state of a group's loop between two steps of a test.
struct Loop {
  comch::Consumer<kInHand> consumer;
  comch::Producer producer;
  Staging memory[kInHand];
  comch::SentMessage sent[kInHand];
  comch::Message messages[kInHand];  ///< by their numbers
};

/// A step of the loop, and its results.
struct Step {
  static constexpr std::uint32_t kMost = 8;
  std::uint32_t posts;  ///< receives into memory post[0], post[1], ...
  std::uint32_t post[kMost];
  std::uint32_t sends;  ///< of the messages with these numbers
  std::uint32_t send[kMost];
  std::uint32_t posted, taken, completed;
  std::uint32_t results[kMost], ids[kMost];
};

struct TakeStep {
  Loop* loop;
  Step* step;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, Staging&) const {
    auto consumer = loop->consumer;
    auto producer = loop->producer;
    std::uint32_t posted = 0;
    std::uint32_t taken = 0;
    std::uint32_t completed = 0;
    for (std::uint32_t i = 0; i < step->posts; ++i) {
      if (consumer.post_receive(loop->memory[step->post[i]])) ++posted;
    }
    for (comch::Message message{}; consumer.poll(group, message); ++taken) {
      if (group.lane() == 0) loop->messages[message.number % kInHand] = message;
    }
    group.sync();
    for (std::uint32_t i = 0; i < step->sends; ++i) {
      const auto result = producer.send(group, loop->messages[step->send[i] % kInHand], Reverse{},
                                        100 + step->send[i]);
      if (group.lane() == 0) step->results[i] = static_cast<std::uint32_t>(result);
    }
    for (std::uint32_t id = 0; producer.poll_completion(group, id); ++completed) {
      if (group.lane() == 0) step->ids[completed] = id;
    }
    group.sync();
    if (group.lane() != 0) return;
    loop->consumer = consumer;
    loop->producer = producer;
    step->posted = posted;
    step->taken = taken;
    step->completed = completed;
  }
};

/// A channel, and a loop that serves it step by step.
template <class Runner>
class LoopEnd {
 public:
  using Numbers = std::initializer_list<std::uint32_t>;

  explicit LoopEnd(std::uint32_t max_length, std::uint32_t remembered = kInHand,
                   std::uint64_t first = 0)
      : channel(4, max_length), memory_(sizeof(Loop)), step_(sizeof(Step)) {
    Loop& loop = *reinterpret_cast<Loop*>(memory_.data());
    loop.consumer = comch::Consumer<kInHand>(channel.channel(), first);
    loop.producer = comch::Producer(channel.channel(), loop.sent, remembered);
  }

  /// Posts receives into this memory, takes the messages, and sends the responses of `send`.
  Step run(Numbers post, Numbers send) {
    Step& step = *reinterpret_cast<Step*>(step_.data());
    step = {};
    for (const std::uint32_t i : post) step.post[step.posts++] = i;
    for (const std::uint32_t i : send) step.send[step.sends++] = i;
    Runner::run(TakeStep{&loop(), &step});
    return step;
  }
  /// Sets the count of responses that the server has consumed, as the server does.
  void consume(std::uint64_t count) {
    __atomic_store_n(&channel.channel().request_header().consumed, count, __ATOMIC_RELAXED);
  }
  [[nodiscard]] Loop& loop() { return *reinterpret_cast<Loop*>(memory_.data()); }

  TestChannel<Runner> channel;

 private:
  typename Runner::Memory memory_;
  typename Runner::Memory step_;
};

inline std::vector<std::uint32_t> ids_of(const Step& step) {
  return {step.ids, step.ids + step.completed};
}
using Ids = std::vector<std::uint32_t>;

template <class Runner>
class Comch : public RunnerSuite<Runner> {};
TYPED_TEST_SUITE_P(Comch);

TYPED_TEST_P(Comch, AMessageComesIntoAPostedReceiveAlone) {
  LoopEnd<TypeParam> end(1000);
  for (std::uint64_t i = 0; i < 3; ++i) end.channel.post(i, random_octets(40 + i));
  EXPECT_EQ(end.run({}, {}).taken, 0U);
  const Step two = end.run({2, 0}, {});
  EXPECT_EQ(two.posted, 2U);
  EXPECT_EQ(two.taken, 2U);
  EXPECT_EQ(end.loop().messages[0].memory, &end.loop().memory[2]);
  EXPECT_EQ(end.loop().messages[1].memory, &end.loop().memory[0]);
  EXPECT_EQ(end.run({1}, {}).taken, 1U);
  // All are answered from the memory that they were received into.
  EXPECT_EQ(end.run({}, {0, 1, 2}).completed, 0U);
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(end.channel.response(i), expected_response("reverse", random_octets(40 + i)));
  }
}

TYPED_TEST_P(Comch, NoMoreReceivesArePostedThanThereMayBe) {
  LoopEnd<TypeParam> end(1000);
  EXPECT_EQ(end.run({0, 1, 2, 3, 0}, {}).posted, kInHand);
  end.channel.post(0, random_octets(1));
  EXPECT_EQ(end.run({}, {}).taken, 1U);
  EXPECT_EQ(end.run({0, 0}, {}).posted, 1U);
}

TYPED_TEST_P(Comch, ResponsesGoOutInAnyOrder) {
  for (const std::uint32_t length : {0U, 20U, 372U, 373U, 1000U}) {
    LoopEnd<TypeParam> end(1000, kInHand, 4 * 4);
    for (std::uint64_t i = 0; i < 4; ++i) end.channel.post(16 + i, random_octets(length + i % 2));
    // The one that is too long does not affect the others.
    const bool fits = length < 1000;
    EXPECT_EQ(end.run({0, 1, 2, 3}, {2}).taken, 4U);
    EXPECT_EQ(end.channel.response(16), std::nullopt);
    EXPECT_EQ(end.channel.response(18), expected_response("reverse", random_octets(length)));
    const Step rest = end.run({}, {3, 0, 1});
    EXPECT_EQ(rest.results[0], static_cast<std::uint32_t>(fits ? comch::SendResult::sent
                                                               : comch::SendResult::refused));
    for (std::uint64_t i = 0; i < 4; ++i) {
      if (!fits && i % 2 != 0) continue;
      EXPECT_EQ(end.channel.response(16 + i),
                expected_response("reverse", random_octets(length + i % 2)));
    }
  }
}

TYPED_TEST_P(Comch, SendsCompleteAsTheServerTakesThem) {
  LoopEnd<TypeParam> end(1000);
  for (std::uint64_t i = 0; i < 4; ++i) end.channel.post(i, random_octets(i));
  EXPECT_EQ(end.run({0, 1, 2, 3}, {1, 3}).completed, 0U);
  end.consume(1);  // a lie: message 0 has no response
  EXPECT_EQ(end.run({}, {}).completed, 0U);
  EXPECT_EQ(ids_of(end.run({}, {0})), Ids({100}));
  end.consume(4);  // another lie: 2 is not sent
  EXPECT_EQ(ids_of(end.run({}, {})), Ids({101}));
  EXPECT_EQ(ids_of(end.run({}, {2})), Ids({102, 103}));
  EXPECT_EQ(end.run({}, {}).completed, 0U);
}

TYPED_TEST_P(Comch, ASendIsCompleteWhenItsSlotHasTheNextRequest) {
  LoopEnd<TypeParam> end(1000);
  for (std::uint64_t i = 0; i < 2; ++i) end.channel.post(i, random_octets(i));
  EXPECT_EQ(end.run({0, 1, 2, 3}, {0, 1}).completed, 0U);
  end.channel.post(4, random_octets(7));
  EXPECT_EQ(ids_of(end.run({}, {})), Ids({100}));
}

TYPED_TEST_P(Comch, NothingIsSentWithoutRoomToRememberIt) {
  LoopEnd<TypeParam> end(1000, 2);
  for (std::uint64_t i = 0; i < 4; ++i) end.channel.post(i, random_octets(i));
  const Step full = end.run({0, 1, 2, 3}, {3, 2, 1, 0});
  EXPECT_EQ(full.results[0], static_cast<std::uint32_t>(comch::SendResult::full));
  EXPECT_EQ(full.results[1], static_cast<std::uint32_t>(comch::SendResult::full));
  EXPECT_EQ(full.results[2], static_cast<std::uint32_t>(comch::SendResult::sent));
  EXPECT_EQ(full.results[3], static_cast<std::uint32_t>(comch::SendResult::sent));
  EXPECT_EQ(end.channel.response(2), std::nullopt);
  end.consume(2);
  EXPECT_EQ(ids_of(end.run({}, {})), Ids({100, 101}));
  EXPECT_EQ(end.run({}, {3, 2}).results[0], static_cast<std::uint32_t>(comch::SendResult::sent));
  EXPECT_EQ(end.channel.response(3), expected_response("reverse", random_octets(3)));
}

/// Overwrites slot `sequence`, as a malicious server may at any time: its header, its packets, and
/// `plain` bytes of a plain content. Called by one lane.
OFFLOAD_HOST_DEVICE inline void spoil(const ChannelView& channel, std::uint64_t sequence,
                                      std::uint32_t plain) {
  const Slot slot = channel.request(sequence);
  const std::uint32_t flag = channel.layout.flag_of(sequence);
  for (std::uint32_t i = 0; i < kMaxPackets; ++i) {
    store_packet(slot.packets + i, {{~0U, ~0U, ~0U}, flag});
  }
  for (std::uint32_t i = 0; i < plain; ++i) slot.plain()[i] = 0xff;
}

/// Reads a message's requests, then sends `length` bytes from `bytes`, or the service's response.
/// If `spoils`, the slot changes between the two.
struct LookAndSend {
  ChannelView channel;
  const std::uint8_t* bytes;
  std::uint32_t length;
  comch::SentMessage* sent;
  std::uint32_t* seen;  ///< how many, what send() did, then each one's length and first byte
  bool spoils;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, Staging& staging) const {
    comch::Consumer<> consumer(channel, 1);
    comch::Producer producer(channel, sent, 1);
    comch::Message message{};
    if (!consumer.post_receive(staging) || !consumer.poll(group, message)) return;
    const std::uint32_t count = consumer.open(group, message);
    for (std::uint32_t i = group.lane(); i < count; i += group.size()) {
      const Request request = message.request(i);
      seen[2 + 2 * i] = request.length();
      seen[3 + 2 * i] = request.length() == 0 ? 0 : request.byte(0);
    }
    group.sync();
    if (spoils && group.lane() == 0) {
      const Received& received = message.received;
      const bool is_copied = received.count != 0 && received.length > kMaxPacketPayload;
      spoil(channel, 1, is_copied ? received.length : 0);
    }
    group.sync();
    const auto result = bytes == nullptr ? producer.send(group, message, Reverse{}, 7)
                                         : producer.send(group, message, bytes, length, 7);
    if (group.lane() != 0) return;
    seen[0] = count;
    seen[1] = static_cast<std::uint32_t>(result);
  }
};

/// Has message 1 of `channel` read and answered; returns the values that LookAndSend saw.
template <class Runner>
std::vector<std::uint32_t> look_and_send(const TestChannel<Runner>& channel,
                                         const Octets* answer = nullptr, bool spoils = false) {
  typename Runner::Memory seen(sizeof(std::uint32_t) * 2 * (kMaxBatchCount + 1));
  typename Runner::Memory sent(sizeof(comch::SentMessage));
  typename Runner::Memory bytes(2 * kSlack + (answer == nullptr ? 0 : answer->size()));
  if (answer != nullptr) std::copy(answer->begin(), answer->end(), bytes.data() + kSlack);
  auto* const words = reinterpret_cast<std::uint32_t*>(seen.data());
  Runner::run(LookAndSend{channel.channel(), answer == nullptr ? nullptr : bytes.data() + kSlack,
                          answer == nullptr ? 0 : static_cast<std::uint32_t>(answer->size()),
                          reinterpret_cast<comch::SentMessage*>(sent.data()), words, spoils});
  return {words, words + std::size_t{2} * (kMaxBatchCount + 1)};
}

TYPED_TEST_P(Comch, TheRequestsOfABatchAreSeenAndAnswered) {
  for (const std::uint32_t count : {1U, 2U, 7U, 64U}) {
    for (const auto& lengths : lengths_of_all_kinds(count)) {
      TestChannel<TypeParam> channel(4, 1024);
      const auto messages = messages_of(lengths);
      channel.post(1, batch_of(messages), count);
      const auto seen = look_and_send(channel);
      ASSERT_EQ(seen[0], count);
      EXPECT_EQ(seen[1], static_cast<std::uint32_t>(comch::SendResult::sent));
      for (std::size_t i = 0; i < count; ++i) {
        EXPECT_EQ(seen[2 + 2 * i], messages[i].size());
        EXPECT_EQ(seen[3 + 2 * i], messages[i].empty() ? 0U : messages[i].front());
      }
      EXPECT_EQ(channel.response(1, count), frames_of("reverse", messages));
    }
  }
}

TYPED_TEST_P(Comch, WhatWasOpenedIsAnsweredWhateverBecomesOfTheSlot) {
  for (const std::uint32_t count : {1U, 7U, 64U}) {
    for (const auto& lengths : lengths_of_all_kinds(count)) {
      TestChannel<TypeParam> channel(4, 1024);
      const auto messages = messages_of(lengths);
      channel.post(1, batch_of(messages), count);
      const auto seen = look_and_send(channel, nullptr, true);
      EXPECT_EQ(seen[1], static_cast<std::uint32_t>(comch::SendResult::sent));
      EXPECT_EQ(channel.response(1, count), frames_of("reverse", messages));
    }
  }
  // A single message keeps its length, and the bytes that came in packets; a plain content stays
  // in the slot.
  for (const std::uint32_t length : {0U, 20U, 372U, 373U, 1000U}) {
    TestChannel<TypeParam> channel(4, 1024);
    channel.post(1, random_octets(length));
    const auto seen = look_and_send(channel, nullptr, true);
    EXPECT_EQ(seen[1], static_cast<std::uint32_t>(comch::SendResult::sent));
    EXPECT_EQ(channel.response(1), expected_response("reverse", random_octets(length)));
  }
}

TYPED_TEST_P(Comch, WhatIsMalformedHasNoRequestsAndIsRefused) {
  constexpr std::uint32_t kMaxLength = 500;
  for (const Lie& lie : lies(kMaxLength)) {
    TestChannel<TypeParam> channel(4, kMaxLength);
    channel.post(1, lie.content, lie.count);
    const auto seen = look_and_send(channel);
    EXPECT_EQ(seen[0], 0U) << lie.what;
    EXPECT_EQ(seen[1], static_cast<std::uint32_t>(comch::SendResult::refused)) << lie.what;
    EXPECT_EQ(channel.response(1, lie.count), std::nullopt) << lie.what;
  }
}

TYPED_TEST_P(Comch, BytesOfItsOwnAreSentIfThereIsRoom) {
  for (const std::uint32_t request : {0U, 20U, 500U}) {
    for (const std::uint32_t length : {0U, 1U, 48U, 49U, 373U, 500U, 501U}) {
      TestChannel<TypeParam> channel(4, 500);
      channel.post(1, random_octets(request));
      const auto before = channel.bytes();
      const Octets answer = random_octets(length);
      const auto seen = look_and_send(channel, &answer);
      EXPECT_EQ(seen[0], 1U);
      EXPECT_EQ(seen[2], request);
      if (length > std::max(request, 48U)) {
        EXPECT_EQ(seen[1], static_cast<std::uint32_t>(comch::SendResult::too_long));
        EXPECT_EQ(channel.bytes(), before);
      } else {
        EXPECT_EQ(seen[1], static_cast<std::uint32_t>(comch::SendResult::sent));
        EXPECT_EQ(channel.response(1), answer);
      }
    }
  }
}

REGISTER_TYPED_TEST_SUITE_P(
    Comch, AMessageComesIntoAPostedReceiveAlone, NoMoreReceivesArePostedThanThereMayBe,
    ResponsesGoOutInAnyOrder, SendsCompleteAsTheServerTakesThem,
    ASendIsCompleteWhenItsSlotHasTheNextRequest, NothingIsSentWithoutRoomToRememberIt,
    TheRequestsOfABatchAreSeenAndAnswered, WhatWasOpenedIsAnsweredWhateverBecomesOfTheSlot,
    WhatIsMalformedHasNoRequestsAndIsRefused, BytesOfItsOwnAreSentIfThereIsRoom);

}  // namespace offload::kernels::test
