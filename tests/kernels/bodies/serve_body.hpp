#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>

#include "kernels/serve.hpp"
#include "kernels/services.hpp"
#include "tests/kernels/bodies/runner_suite.hpp"
#include "tests/kernels/test_channel.hpp"

/// One step of the worker loop: which messages it takes, which it refuses, and which it ignores.
namespace offload::kernels::test {

template <class Service>
struct ServeOnce {
  ChannelView channel;
  std::uint64_t sequence;
  Outcome* outcome;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, Staging& staging) const {
    const Outcome result = serve(group, channel, sequence, Service{}, staging);
    if (group.lane() == 0) *outcome = result;
  }
};

template <class Service, class Runner>
Outcome serve_once(const TestChannel<Runner>& channel, std::uint64_t sequence) {
  typename Runner::Memory memory(sizeof(Outcome));
  auto* const outcome = reinterpret_cast<Outcome*>(memory.data());
  *outcome = static_cast<Outcome>(99);
  Runner::run(ServeOnce<Service>{channel.channel(), sequence, outcome});
  return *outcome;
}

/// Like ServeOnce, with the parameters of receive().
template <bool kWrittenInPieces>
struct ServePolled {
  ChannelView channel;
  std::uint64_t sequence;
  std::uint32_t polled;
  Outcome* outcome;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, Staging& staging) const {
    const Received received = receive<kWrittenInPieces>(group, channel, sequence, staging, polled);
    const Outcome result = respond(group, channel, sequence, Reverse{}, staging, received).outcome;
    if (group.lane() == 0) *outcome = result;
  }
};

template <bool kWrittenInPieces, class Runner>
Outcome serve_polled(const TestChannel<Runner>& channel, std::uint64_t sequence,
                     std::uint32_t polled) {
  typename Runner::Memory memory(sizeof(Outcome));
  auto* const outcome = reinterpret_cast<Outcome*>(memory.data());
  *outcome = static_cast<Outcome>(99);
  Runner::run(ServePolled<kWrittenInPieces>{channel.channel(), sequence, polled, outcome});
  return *outcome;
}

struct AskForHeader {
  ChannelView channel;
  std::uint64_t sequence;
  bool* there;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, Staging&) const {
    const bool result = has_header(group, channel, sequence);
    if (group.lane() == group.size() - 1) *there = result;
  }
};

template <class Runner>
bool header_is_there(const TestChannel<Runner>& channel, std::uint64_t sequence) {
  typename Runner::Memory memory(sizeof(bool));
  auto* const there = reinterpret_cast<bool*>(memory.data());
  Runner::run(AskForHeader{channel.channel(), sequence, there});
  return *there;
}

template <class Runner>
class Serve : public RunnerSuite<Runner> {};
TYPED_TEST_SUITE_P(Serve);

TYPED_TEST_P(Serve, NothingPostedIsNothing) {
  TestChannel<TypeParam> channel(4, 1000);
  const auto before = channel.bytes();
  for (std::uint64_t sequence = 0; sequence < 8; ++sequence) {
    EXPECT_EQ(serve_once<Echo>(channel, sequence), Outcome::nothing);
  }
  EXPECT_EQ(channel.bytes(), before);
}

TYPED_TEST_P(Serve, OnlyItsOwnLapHasItsFlag) {
  for (const std::uint32_t length : {0U, 20U, 600U}) {
    TestChannel<TypeParam> channel(4, 1000);
    channel.post(4 * 4 + 1, random_octets(length));
    EXPECT_EQ(serve_once<Echo>(channel, 3 * 4 + 1), Outcome::nothing);
    EXPECT_EQ(serve_once<Echo>(channel, 5 * 4 + 1), Outcome::nothing);
    EXPECT_EQ(serve_once<Echo>(channel, 4 * 4 + 2), Outcome::nothing);
    EXPECT_EQ(serve_once<Echo>(channel, 4 * 4 + 1), Outcome::answered);
  }
}

TYPED_TEST_P(Serve, WhatIsNotWholeIsNothingYet) {
  for (const std::uint32_t length : {1U, 12U, 13U, 100U, 371U, 372U}) {
    TestChannel<TypeParam> channel(4, 1000);
    const std::uint64_t sequence = 77 * 4 + 2;
    const auto message = random_octets(length);
    channel.post(sequence, message);
    Packet* const packets = channel.channel().request(sequence).packets;
    for (std::uint32_t index = 0; index < packets_for(length); ++index) {
      const Packet whole = load_packet(packets + index);
      for (const std::uint32_t other : {whole.flag - 1, whole.flag + 1, 0U}) {
        Packet torn = whole;
        torn.flag = other;
        store_packet(packets + index, torn);
        const auto before = channel.bytes();
        EXPECT_EQ(serve_once<Reverse>(channel, sequence), Outcome::nothing) << index;
        EXPECT_EQ(channel.bytes(), before);
      }
      store_packet(packets + index, whole);
    }
    EXPECT_EQ(serve_once<Reverse>(channel, sequence), Outcome::answered);
    EXPECT_EQ(channel.response(sequence), expected_response("reverse", message));
  }
}

TYPED_TEST_P(Serve, ReadsTheRestOfAMessageThatHasMorePacketsThanItPolls) {
  for (const bool in_pieces : {false, true}) {
    for (const std::uint32_t polled : {1U, 2U, 31U}) {
      for (const std::uint32_t length : {0U, 12U, 13U, 100U, 372U, 373U}) {
        TestChannel<TypeParam> channel(4, 1000);
        const auto serve = [&] {
          return in_pieces ? serve_polled<true>(channel, 1, polled)
                           : serve_polled<false>(channel, 1, polled);
        };
        EXPECT_EQ(serve(), Outcome::nothing);
        const auto message = random_octets(length);
        channel.post(1, message);
        Packet* const last = channel.channel().request(1).packets + packets_filled(length) - 1;
        const Packet whole = load_packet(last);
        store_packet(last, {{}, whole.flag + 1});
        EXPECT_EQ(serve(), Outcome::nothing) << length << " bytes, polled " << polled;
        store_packet(last, whole);
        EXPECT_EQ(serve(), Outcome::answered) << length << " bytes, polled " << polled;
        EXPECT_EQ(channel.response(1), expected_response("reverse", message)) << polled;
      }
    }
  }
}

TYPED_TEST_P(Serve, AHeaderIsThereForItsOwnLapAlone) {
  for (const std::uint32_t length : {0U, 20U, 600U}) {
    TestChannel<TypeParam> channel(4, 1000);
    EXPECT_FALSE(header_is_there(channel, 1));
    channel.post_header(4 * 4 + 1, length);  // of its packets this one alone
    EXPECT_TRUE(header_is_there(channel, 4 * 4 + 1));
    EXPECT_FALSE(header_is_there(channel, 3 * 4 + 1));
    EXPECT_FALSE(header_is_there(channel, 5 * 4 + 1));
    EXPECT_FALSE(header_is_there(channel, 4 * 4 + 2));
  }
}

TYPED_TEST_P(Serve, PacketsBehindTheMessageDoNotMatter) {
  TestChannel<TypeParam> channel(4, 1000);
  channel.fill(0xa5);
  channel.post(1, random_octets(30));
  EXPECT_EQ(serve_once<Reverse>(channel, 1), Outcome::answered);
  EXPECT_EQ(channel.response(1), expected_response("reverse", random_octets(30)));
}

/// Returns whether a response of `length` bytes may change that byte of its slot. A message is
/// written in whole blocks; `behind`: bytes behind a plain batch that may change, too.
inline bool may_change(std::uint32_t offset, std::uint32_t length, std::uint32_t behind) {
  if (length <= kMaxPacketPayload) return offset < packets_for(length) * sizeof(Packet);
  const auto plain = static_cast<std::uint32_t>(kMaxPackets * sizeof(Packet));
  constexpr std::uint32_t kBlock = sizeof(Block);
  const std::uint32_t in_blocks = (length + kBlock - 1) / kBlock * kBlock;
  return offset < sizeof(Packet) ||
         (offset >= plain && offset < plain + std::max(in_blocks, length + behind));
}

template <class Runner>
void expect_untouched_but_response(const TestChannel<Runner>& channel, const Octets& before,
                                   std::uint64_t sequence, std::uint32_t response_length,
                                   std::uint32_t behind = 0) {
  const auto after = channel.bytes();
  const auto start = channel.offset_of(channel.channel().response(sequence));
  for (std::size_t i = 0; i < after.size(); ++i) {
    const bool own = i >= start && i < start + channel.layout().slot_stride &&
                     may_change(static_cast<std::uint32_t>(i - start), response_length, behind);
    ASSERT_TRUE(own || after[i] == before[i]) << "byte " << i << ", response at " << start;
  }
}

TYPED_TEST_P(Serve, WritesNothingButTheResponse) {
  for (const std::uint32_t max_length : {100U, 372U, 512U}) {
    for (const std::uint32_t length :
         {0U, 1U, 12U, 13U, 100U, 371U, 372U, 373U, 384U, 400U, 496U, 499U, 512U}) {
      if (length > max_length) continue;
      TestChannel<TypeParam> channel(4, max_length);
      channel.fill(0xa5);
      channel.post(1, random_octets(length));
      const auto before = channel.bytes();
      ASSERT_EQ(serve_once<Reverse>(channel, 1), Outcome::answered);
      expect_untouched_but_response(channel, before, 1, length);
    }
  }
}

// A length is untrusted: one over the limit is not counted and moves no pointer.
TYPED_TEST_P(Serve, ALengthOverTheLimitIsRefused) {
  for (const std::uint32_t max_length : {48U, 100U, 372U, 373U, 5000U}) {
    for (const std::uint32_t length : {max_length + 1, max_length + 12, 100'000U, 0x7fff'ffffU,
                                       0x8000'0000U, 0xffff'fff0U, 0xffff'ffffU}) {
      TestChannel<TypeParam> channel(4, max_length);
      channel.fill(0xa5);
      channel.post_header(2, length);
      const auto before = channel.bytes();
      ASSERT_EQ(serve_once<Reverse>(channel, 2), Outcome::refused);
      const Packet header = load_packet(channel.channel().response(2).packets);
      EXPECT_EQ(header.flag, channel.layout().flag_of(2));
      EXPECT_EQ(header.data[0], 0U);
      EXPECT_EQ(header.data[1], static_cast<std::uint32_t>(ResponseStatus::bad_length));
      expect_untouched_but_response(channel, before, 2, 0);
    }
  }
}

TYPED_TEST_P(Serve, TheLimitItselfIsServed) {
  for (const std::uint32_t max_length : {48U, 100U, 372U, 373U, 5000U}) {
    TestChannel<TypeParam> channel(4, max_length);
    const auto message = random_octets(max_length);
    channel.post(2, message);
    EXPECT_EQ(serve_once<Reverse>(channel, 2), Outcome::answered);
    EXPECT_EQ(channel.response(2), expected_response("reverse", message));
  }
}

// The second wrap is that of a lap's 32 bits.
TYPED_TEST_P(Serve, GoesOnWhenTheFlagWrapsAround) {
  for (const std::uint64_t wrap : {std::uint64_t{1} << 31, std::uint64_t{1} << 32}) {
    for (const std::uint64_t lap : {wrap - 1, wrap}) {  // fresh memory is no message of any lap
      const TestChannel<TypeParam> fresh(2, 400);
      EXPECT_EQ(serve_once<Reverse>(fresh, lap * 2), Outcome::nothing) << lap;
      EXPECT_EQ(fresh.response(lap * 2), std::nullopt) << lap;
    }
    TestChannel<TypeParam> channel(2, 400);
    const std::uint64_t first = (wrap - 3) * 2;
    for (std::uint64_t sequence = first; sequence < first + 16; ++sequence) {
      const auto message = random_octets(sequence % 3 == 0 ? 400 : 40 + sequence % 7);
      EXPECT_EQ(serve_once<Reverse>(channel, sequence), Outcome::nothing) << sequence;
      channel.post(sequence, message);
      EXPECT_EQ(serve_once<Reverse>(channel, sequence), Outcome::answered) << sequence;
      EXPECT_EQ(channel.response(sequence), expected_response("reverse", message));
    }
  }
}

// A long message, then for a flag's whole period others that do not reach its last packets. Laps
// that do not rewrite the slot leave these as they are, and so need not be gone through.
TYPED_TEST_P(Serve, NoPacketIsFreshAgainAPeriodLater) {
  constexpr std::uint64_t kPeriod = std::uint64_t{1} << 31;
  for (const std::uint32_t other : {0U, 5U, 100U, 600U}) {
    for (const std::uint32_t max_length : {372U, 600U}) {
      if (other > max_length) continue;
      TestChannel<TypeParam> channel(2, max_length);
      const std::uint64_t first = 77 * 2 + 1;
      channel.post(first, random_octets(372));
      ASSERT_EQ(serve_once<Echo>(channel, first), Outcome::answered);
      for (std::uint64_t lap = kRewriteLaps - 1; lap < 77 + kPeriod; lap += kRewriteLaps) {
        const std::uint64_t sequence = lap * 2 + 1;
        channel.post(sequence, random_octets(other));
        ASSERT_EQ(serve_once<Echo>(channel, sequence), Outcome::answered);
        EXPECT_EQ(channel.response(sequence), random_octets(other));
      }
      const std::uint64_t last = first + kPeriod * 2;
      const Slot slot = channel.channel().response(last);
      for (std::uint32_t index = 0; index < kMaxPackets; ++index) {
        EXPECT_NE(load_packet(slot.packets + index).flag, channel.layout().flag_of(last)) << index;
      }
    }
  }
}

// In such a lap, too, a message changes nothing but the packets behind it.
TYPED_TEST_P(Serve, ALapThatRewritesTheSlotAnswersAsAnyOther) {
  const std::uint64_t sequence = (std::uint64_t{kRewriteLaps} - 1) * 4 + 1;
  for (const std::uint32_t max_length : {48U, 100U, 372U, 500U}) {
    for (const std::uint32_t length : {0U, 1U, 12U, 48U, 100U, 371U, 372U, 373U, 500U}) {
      if (length > max_length) continue;
      TestChannel<TypeParam> channel(4, max_length);
      channel.fill(0xa5);
      const auto message = random_octets(length);
      channel.post(sequence, message);
      const auto before = channel.bytes();
      ASSERT_EQ(serve_once<Reverse>(channel, sequence), Outcome::answered);
      EXPECT_EQ(channel.response(sequence), expected_response("reverse", message));
      const Slot slot = channel.channel().response(sequence);
      for (std::uint32_t index = 0; index < kMaxPackets; ++index) {
        EXPECT_EQ(load_packet(slot.packets + index).flag, channel.layout().flag_of(sequence));
      }
      // Neither another slot nor the requests have changed.
      const auto after = channel.bytes();
      const auto start = static_cast<std::ptrdiff_t>(channel.offset_of(slot));
      const auto end = start + static_cast<std::ptrdiff_t>(channel.layout().slot_stride);
      EXPECT_TRUE(std::equal(before.begin(), before.begin() + start, after.begin()));
      EXPECT_TRUE(std::equal(before.begin() + end, before.end(), after.begin() + end));
    }
  }
}

REGISTER_TYPED_TEST_SUITE_P(Serve, NothingPostedIsNothing, OnlyItsOwnLapHasItsFlag,
                            WhatIsNotWholeIsNothingYet,
                            ReadsTheRestOfAMessageThatHasMorePacketsThanItPolls,
                            AHeaderIsThereForItsOwnLapAlone, PacketsBehindTheMessageDoNotMatter,
                            WritesNothingButTheResponse, ALengthOverTheLimitIsRefused,
                            TheLimitItselfIsServed, GoesOnWhenTheFlagWrapsAround,
                            NoPacketIsFreshAgainAPeriodLater,
                            ALapThatRewritesTheSlotAnswersAsAnyOther);

}  // namespace offload::kernels::test
