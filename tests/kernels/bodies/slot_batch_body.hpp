#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string_view>
#include <vector>

#include "kernels/serve.hpp"
#include "kernels/services.hpp"
#include "tests/kernels/bodies/runner_suite.hpp"
#include "tests/kernels/bodies/serve_body.hpp"
#include "tests/kernels/bodies/slot_contents.hpp"
#include "tests/kernels/test_channel.hpp"

/// Batches in slots: compares each message's frame byte for byte, and tries malformed batches.
namespace offload::kernels::test {

/// Fills the whole staging before a batch is served.
inline constexpr std::uint8_t kCanary = 0xa5;

/// Serves with a staging full of canaries, and returns a copy of it.
template <class Service>
struct ServeInCanaries {
  ChannelView channel;
  std::uint64_t sequence;
  Outcome* outcome;
  std::uint8_t* staging_after;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, Staging& staging) const {
    auto* const bytes = reinterpret_cast<std::uint8_t*>(&staging);
    for (std::size_t i = group.lane(); i < sizeof staging; i += group.size()) bytes[i] = kCanary;
    group.sync();
    const Outcome result = serve(group, channel, sequence, Service{}, staging);
    if (group.lane() == 0) *outcome = result;
    for (std::size_t i = group.lane(); i < sizeof staging; i += group.size()) {
      staging_after[i] = bytes[i];
    }
  }
};

/// Serves message `sequence`, and expects nothing written to the staging but up to `requests` bytes
/// of requests and `frames` of frames, and less than a block behind each.
template <class Service, class Runner>
Outcome serve_in_canaries(const TestChannel<Runner>& channel, std::uint64_t sequence,
                          std::size_t requests, std::size_t frames) {
  typename Runner::Memory outcome(sizeof(Outcome));
  typename Runner::Memory after(sizeof(Staging));
  auto* const result = reinterpret_cast<Outcome*>(outcome.data());
  Runner::run(ServeInCanaries<Service>{channel.channel(), sequence, result, after.data()});
  const auto& staging = *reinterpret_cast<const Staging*>(after.data());
  const auto expect_canaries = [](const std::uint8_t* from, const std::uint8_t* to) {
    for (; from < to; ++from) ASSERT_EQ(*from, kCanary) << to - from << " bytes before the end";
  };
  expect_canaries(staging.before, staging.bytes);
  // Requests that came in packets are written in packets, others in blocks of 16 bytes; a
  // SingleLane writes frames in such blocks too.
  expect_canaries(staging.bytes + requests + (requests == 0 ? 0 : kSlack - 1), staging.frames);
  expect_canaries(staging.frames + frames + (frames == 0 ? 0 : kSlack - 1),
                  reinterpret_cast<const std::uint8_t*>(staging.request_at));
  return *result;
}

/// Serves a batch of messages of `lengths`, and expects the right frames and nothing else.
template <class Service, class Runner>
void expect_right_frames(TestChannel<Runner>& channel, std::uint64_t sequence,
                         const std::vector<std::uint32_t>& lengths) {
  const auto messages = messages_of(lengths);
  const auto count = static_cast<std::uint32_t>(lengths.size());
  const Octets content = batch_of(messages);
  const Octets frames = frames_of(Service::kName, messages);
  ASSERT_LE(content.size(), kMaxBatchContent);
  ASSERT_LE(frames.size(), kMaxBatchContent);
  channel.post(sequence, content, count);
  const auto before = channel.bytes();
  ASSERT_EQ(serve_in_canaries<Service>(channel, sequence, content.size(), frames.size()),
            Outcome::answered);
  const auto response = channel.response(sequence, count);
  ASSERT_TRUE(response.has_value());
  ASSERT_EQ(*response, frames);
  if (rewrites_slot(channel.layout().flag_of(sequence))) return;
  expect_untouched_but_response(channel, before, sequence,
                                static_cast<std::uint32_t>(frames.size()), kSlack);
}

template <class Runner>
class SlotBatches : public RunnerSuite<Runner> {
 protected:
  /// Batches of up to kMaxBatchCount, `step` apart, with each service.
  template <class Check>
  static void for_each_count(Check check) {
    for (std::uint32_t count = 1; count <= kMaxBatchCount;) {
      std::apply([&](auto... service) { (check(service, count), ...); }, Services{});
      const std::uint32_t step = Runner::kStride;
      count =
          count < kMaxBatchCount && count + step > kMaxBatchCount ? kMaxBatchCount : count + step;
    }
  }
};
TYPED_TEST_SUITE_P(SlotBatches);

TYPED_TEST_P(SlotBatches, EachMessageHasItsFrame) {
  TestChannel<TypeParam> channel(2, 1024);
  std::uint64_t sequence = 0;
  this->for_each_count([&](auto service, std::uint32_t count) {
    for (const auto& lengths : lengths_of_all_kinds(count)) {
      SCOPED_TRACE(testing::Message() << service.kName << " of " << count << ", the longest "
                                      << *std::max_element(lengths.begin(), lengths.end()));
      expect_right_frames<decltype(service)>(channel, sequence++, lengths);
      if (testing::Test::HasFatalFailure()) return;
    }
  });
}

// Batches on a channel whose single messages would all be in packets, too.
TYPED_TEST_P(SlotBatches, OnAChannelOfShortMessages) {
  TestChannel<TypeParam> channel(4, 64);
  std::uint64_t sequence = 0;
  this->for_each_count([&](auto service, std::uint32_t count) {
    expect_right_frames<decltype(service)>(channel, sequence++,
                                           std::vector<std::uint32_t>(count, 64));
  });
}

TYPED_TEST_P(SlotBatches, AResponseHasTheFormThatItsOwnLengthAsksFor) {
  TestChannel<TypeParam> channel(2, 1024);
  const std::vector<std::uint32_t> short_ones(40, 1);
  ASSERT_LE(batch_of(messages_of(short_ones)).size(), kMaxPacketPayload);
  ASSERT_GT(frames_of("reverse", messages_of(short_ones)).size(), kMaxPacketPayload);
  expect_right_frames<Reverse>(channel, 0, short_ones);
  const std::vector<std::uint32_t> long_ones(4, 1000);
  ASSERT_LE(frames_of("crc32c", messages_of(long_ones)).size(), kMaxPacketPayload);
  expect_right_frames<Crc32c>(channel, 1, long_ones);
}

TYPED_TEST_P(SlotBatches, UpToTheLastByteOfBothSides) {
  TestChannel<TypeParam> channel(2, 6000);
  const std::vector<std::uint32_t> request_is_full{kMaxBatchContent - 2};
  ASSERT_EQ(batch_of(messages_of(request_is_full)).size(), kMaxBatchContent);
  expect_right_frames<Crc32c>(channel, 0, request_is_full);
  const std::vector<std::uint32_t> response_is_full{kMaxBatchContent - kFrameHeader};
  ASSERT_EQ(frames_of("echo", messages_of(response_is_full)).size(), kMaxBatchContent);
  expect_right_frames<Echo>(channel, 1, response_is_full);
  expect_right_frames<Reverse>(channel, 2, response_is_full);
}

// After the lap that rewrites a slot no packet has an older flag, whatever the form of the
// response.
TYPED_TEST_P(SlotBatches, LapsThatRewriteTheSlot) {
  TestChannel<TypeParam> channel(2, 1024);
  std::uint64_t sequence = (std::uint64_t{kRewriteLaps} - 2) * 2;
  for (const std::uint32_t count : {64U, 3U, 64U, 1U, 2U, 30U}) {
    expect_right_frames<Reverse>(channel, sequence, std::vector<std::uint32_t>(count, 33));
    if (rewrites_slot(channel.layout().flag_of(sequence))) {
      const Slot slot = channel.channel().response(sequence);
      for (std::uint32_t index = 0; index < kMaxPackets; ++index) {
        EXPECT_EQ(load_packet(slot.packets + index).flag, channel.layout().flag_of(sequence));
      }
    }
    ++sequence;
  }
}

/// Expects the batch refused, and nothing written but the header that says so.
template <class Service, class Runner>
void expect_refused(const Lie& lie, std::uint32_t max_length) {
  SCOPED_TRACE(testing::Message() << lie.what << ", content of " << lie.content.size());
  TestChannel<Runner> channel(4, max_length);
  channel.fill(0xa5);
  channel.post(2, lie.content, lie.count);
  const auto before = channel.bytes();
  ASSERT_EQ(serve_in_canaries<Service>(channel, 2, lie.content.size(), 0), Outcome::refused);
  const Packet header = load_packet(channel.channel().response(2).packets);
  EXPECT_EQ(header.flag, channel.layout().flag_of(2));
  EXPECT_EQ(header.data[0], 0U);
  EXPECT_EQ(header.data[1], static_cast<std::uint32_t>(ResponseStatus::bad_length));
  EXPECT_EQ(header.data[2], 0U);
  expect_untouched_but_response(channel, before, 2, 0);
}

TYPED_TEST_P(SlotBatches, ABatchThatLiesIsRefused) {
  constexpr std::uint32_t kLongest = 600;
  for (const Lie& lie : lies(kLongest)) expect_refused<Reverse, TypeParam>(lie, kLongest);
}

TYPED_TEST_P(SlotBatches, AHeaderThatLiesIsRefused) {
  for (const auto& [length, count] : std::initializer_list<std::pair<std::uint32_t, std::uint32_t>>{
           {kMaxBatchContent + 1, 2}, {0xffff'ffff, 64}, {200, 65}, {200, 0xffff'ffff}, {0, 1}}) {
    TestChannel<TypeParam> channel(4, 100'000);
    channel.fill(0xa5);
    channel.post_header(1, length, count);
    const auto before = channel.bytes();
    EXPECT_EQ(serve_in_canaries<Echo>(channel, 1, 0, 0), Outcome::refused);
    EXPECT_EQ(channel.response(1, count), std::nullopt);
    expect_untouched_but_response(channel, before, 1, 0);
  }
}

// The service's answers decide whether the frames of the same requests fit.
TYPED_TEST_P(SlotBatches, FramesThatDoNotFitAreRefused) {
  const auto messages = messages_of(std::vector<std::uint32_t>(64, 70));
  ASSERT_GT(frames_of("echo", messages).size(), kMaxBatchContent);
  expect_refused<Echo, TypeParam>({"frames too long", batch_of(messages), 64}, 100);
  TestChannel<TypeParam> channel(2, 100);
  expect_right_frames<Crc32c>(channel, 0, std::vector<std::uint32_t>(64, 70));
}

TYPED_TEST_P(SlotBatches, WhatIsNotWholeIsNothingYet) {
  TestChannel<TypeParam> channel(4, 100);
  const auto messages = messages_of({20, 0, 33});
  const Octets content = batch_of(messages);
  channel.post(5, content, 3);
  const auto last = packets_for(static_cast<std::uint32_t>(content.size())) - 1;
  Packet* const packet = channel.channel().request(5).packets + last;
  const Packet whole = load_packet(packet);
  store_packet(packet, {{whole.data[0], whole.data[1], whole.data[2]}, whole.flag - 2});
  const auto before = channel.bytes();
  EXPECT_EQ(serve_once<Reverse>(channel, 5), Outcome::nothing);
  EXPECT_EQ(channel.bytes(), before);
  store_packet(packet, whole);
  EXPECT_EQ(serve_once<Reverse>(channel, 5), Outcome::answered);
  EXPECT_EQ(channel.response(5, 3), frames_of("reverse", messages));
}

REGISTER_TYPED_TEST_SUITE_P(SlotBatches, EachMessageHasItsFrame, OnAChannelOfShortMessages,
                            AResponseHasTheFormThatItsOwnLengthAsksFor, UpToTheLastByteOfBothSides,
                            LapsThatRewriteTheSlot, ABatchThatLiesIsRefused,
                            AHeaderThatLiesIsRefused, FramesThatDoNotFitAreRefused,
                            WhatIsNotWholeIsNothingYet);

}  // namespace offload::kernels::test
