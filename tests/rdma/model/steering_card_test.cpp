#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kernels/rdma/ethernet.hpp"
#include "tests/kernels/packets/frame_maker.hpp"
#include "tests/rdma/model/card_fixture.hpp"

/// The rules by which a card chooses the queue of a frame.
namespace offload::rdma::model::test {
namespace {

using Bytes = std::vector<std::uint8_t>;
using kernels::packets::test::FrameKind;
using kernels::packets::test::FrameMaker;

/// Sets a field of a rule, with all bits of its mask.
template <class Field>
void match(FlowRule& rule, Field FrameFields::*field, const Field& value) {
  rule.value.*field = value;
  auto& mask = rule.mask.*field;
  if constexpr (std::is_integral_v<Field>) {
    mask = 0xff;
  } else {
    mask.fill(0xff);
  }
}

FlowRule rule_for_port(std::uint32_t pair, std::uint8_t high, std::uint8_t low) {
  FlowRule rule{.pair = pair};
  match(rule, &FrameFields::protocol, std::uint8_t{kernels::packets::kUdp});
  match(rule, &FrameFields::destination_port, {high, low});
  return rule;
}

/// A frame to UDP or TCP port 0x1234.
Bytes frame_to_port(const FrameKind& kind = {.payload = 20}) {
  Bytes frame = FrameMaker::make(kind);
  const auto headers =
      kernels::packets::parse_headers(frame.data(), static_cast<std::uint32_t>(frame.size()));
  kernels::packets::store_16(&frame[headers.transport + 2], 0x1234);
  return frame;
}

FrameFields fields_in(const Bytes& frame) {
  return fields_of(std::as_bytes(std::span(frame)));
}

TEST(FlowRules, LookAtTheFieldsThatAFrameHas) {
  for (const std::uint32_t tags : {0U, 1U, 2U}) {
    for (const bool is_v6 : {false, true}) {
      const auto fields = fields_in(frame_to_port({.tags = tags, .is_v6 = is_v6, .vlan = 7}));
      EXPECT_EQ(fields.destination, (std::array<std::uint8_t, 6>{0, 1, 2, 3, 4, 5}));
      EXPECT_EQ(fields.source, (std::array<std::uint8_t, 6>{6, 7, 8, 9, 10, 11}));
      EXPECT_EQ(fields.ethertype, (is_v6 ? std::array<std::uint8_t, 2>{0x86, 0xdd}
                                         : std::array<std::uint8_t, 2>{8, 0}));
      EXPECT_EQ(fields.is_tagged, tags != 0);
      EXPECT_EQ(fields.tag[1], tags != 0 ? 7 : 0);
      EXPECT_EQ(fields.protocol, kernels::packets::kUdp);
      EXPECT_EQ(fields.destination_port, (std::array<std::uint8_t, 2>{0x12, 0x34}));
      EXPECT_NE(fields.source_address, fields.destination_address);
    }
  }
  Bytes wrong = frame_to_port();
  wrong[24] ^= 0xff;  // the checksum of the IPv4 header
  EXPECT_EQ(fields_in(wrong).destination_port, (std::array<std::uint8_t, 2>{0x12, 0x34}));
  const Bytes shortest(kernels::rdma::kLeastFrame, 0x81);
  EXPECT_EQ(fields_in(shortest).protocol, 0);
  Bytes tag_without_room(kernels::rdma::kLeastFrame);
  tag_without_room[12] = 0x81;
  EXPECT_EQ(fields_in(tag_without_room).is_tagged, 0);
}

TEST(FlowRules, ThePriorityAndThenTheAgeDecides) {
  FlowRules rules;
  const FrameFields fields = fields_in(frame_to_port());
  EXPECT_FALSE(rules.find(fields));
  rules.add(1, {.pair = 1, .priority = 3});
  rules.add(2, {.pair = 2, .priority = 3});
  EXPECT_EQ(rules.find(fields), 1U);
  rules.add(3, {.pair = 3, .priority = 2});
  EXPECT_EQ(rules.find(fields), 3U);
  rules.add(4, {.pair = 4, .priority = 9});
  rules.remove(3);
  rules.remove(1);
  EXPECT_EQ(rules.find(fields), 2U);
  rules.remove(2);
  rules.remove(4);
  EXPECT_TRUE(rules.empty());
}

/// Each field that a rule looks at decides alone.
TEST(FlowRules, EveryFieldMustMatch) {
  const FrameFields frame = fields_in(frame_to_port({.tags = 1, .payload = 20, .vlan = 7}));
  FlowRule all{.pair = 1, .value = frame};
  match(all, &FrameFields::destination, frame.destination);
  match(all, &FrameFields::source, frame.source);
  match(all, &FrameFields::ethertype, frame.ethertype);
  match(all, &FrameFields::tag, frame.tag);
  match(all, &FrameFields::source_address, frame.source_address);
  match(all, &FrameFields::destination_address, frame.destination_address);
  match(all, &FrameFields::source_port, frame.source_port);
  match(all, &FrameFields::destination_port, frame.destination_port);
  match(all, &FrameFields::protocol, frame.protocol);
  match(all, &FrameFields::is_tagged, frame.is_tagged);
  FlowRules rules;
  rules.add(1, all);
  EXPECT_EQ(rules.find(frame), 1U);
  std::array<std::uint8_t, sizeof frame> bytes;
  for (std::size_t i = 0; i < sizeof frame - frame.unused.size(); ++i) {
    std::memcpy(bytes.data(), &frame, sizeof frame);
    bytes[i] ^= 1;
    FrameFields other;
    std::memcpy(&other, bytes.data(), sizeof other);
    EXPECT_FALSE(rules.find(other)) << i;
  }
}

/// Keeps the frames that a card sends.
class FrameWire : public Wire {
 public:
  void send(std::uint32_t, std::span<const std::byte>) override {}
  void send_frame(std::span<const std::byte> frame) override {
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(frame.data());
    sent.emplace_back(bytes, bytes + frame.size());
  }
  std::vector<Bytes> sent;
};

/// Two processes, each with a queue pair for raw packets, on a port with the frames' address.
class SteeringCardTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kOne = 0x50;
  static constexpr std::uint32_t kOther = 0x51;
  static constexpr std::uint32_t kRoom = 2048;

  void SetUp() override {
    card_.set_port_address({0, 1, 2, 3, 4, 5});
    card_.set_wire(&wire_);
    for (const std::uint32_t number : {kOne, kOther}) {
      card_.change(number, {.state = State::sending});
    }
    card_.flow_rules().add(1, rule_for_port(kOther, 0x12, 0x34));
  }
  void TearDown() override { EXPECT_EQ(card_.fault(), ""); }

  void receive(Owner& owner) { owner.post_receive(there_.local(0, kRoom)); }
  void send(Owner& owner, const Bytes& frame) {
    std::memcpy(here_.bytes().data(), frame.data(), frame.size());
    rdma::RawWork work;
    work.frame = here_.local(0, static_cast<std::uint32_t>(frame.size()));
    work.flags = rdma::kSignaled;
    rdma::write_raw_entry(owner.send.ring, owner.posted.posted++, owner.send.number, work);
    rdma::ring_up_to(owner.send, owner.posted.posted, owner.posted.polled);
    owner.posted.published = owner.posted.posted;
    card_.ring(owner.send.number);
    card_.progress();
    const auto sent = owner.poll();
    ASSERT_TRUE(sent);
    EXPECT_EQ(sent->kind, rdma::CqeKind::request);
  }
  /// Returns whether this frame came to a queue.
  bool came(Owner& owner, const Bytes& frame) {
    const auto completion = owner.poll_receive();
    return completion && completion->kind == rdma::CqeKind::received_send &&
           completion->byte_count == frame.size() &&
           std::memcmp(there_.bytes().data(), frame.data(), frame.size()) == 0;
  }

  FrameWire wire_;
  Card card_;
  Memory here_{card_, kRoom, {}};
  Memory there_{card_, kRoom, {}};
  Owner one_{card_, {.number = kOne, .format = EntryFormat::raw_packet, .owner = 1}, 8, 4};
  Owner other_{card_, {.number = kOther, .format = EntryFormat::raw_packet, .owner = 2}, 8, 4};
};

TEST_F(SteeringCardTest, AFrameComesToTheQueueOfItsRule) {
  receive(one_);
  receive(other_);
  const Bytes frame = frame_to_port();
  send(one_, frame);
  EXPECT_TRUE(came(other_, frame));
  EXPECT_FALSE(one_.poll_receive());
  EXPECT_TRUE(wire_.sent.empty());
  EXPECT_EQ(card_.dropped(), 0U);
}

TEST_F(SteeringCardTest, AFrameWithoutARuleIsDropped) {
  receive(one_);
  receive(other_);
  send(one_, FrameMaker::make({.payload = 20}));
  EXPECT_EQ(card_.dropped(), 1U);
  card_.flow_rules().remove(1);
  send(one_, frame_to_port());
  EXPECT_EQ(card_.dropped(), 2U);
  EXPECT_FALSE(one_.poll_receive());
  EXPECT_FALSE(other_.poll_receive());
}

/// Unlike a sender that is connected, as the receiver may never post.
TEST_F(SteeringCardTest, AFrameThatFindsNoReceiveIsDropped) {
  send(one_, frame_to_port());
  EXPECT_EQ(card_.dropped(), 1U);
  receive(other_);
  card_.progress();
  EXPECT_FALSE(other_.poll_receive());
}

TEST_F(SteeringCardTest, AQueueThatIsNotReadyTakesNothing) {
  card_.change(kOther, {.state = State::reset});
  card_.change(kOther, {.state = State::init});
  receive(other_);
  send(one_, frame_to_port());
  EXPECT_EQ(card_.dropped(), 1U);
}

/// Frames of the same process come back only where that is asked for.
TEST_F(SteeringCardTest, AnOwnersFramesComeBackOnlyIfItAsks) {
  receive(other_);
  send(other_, frame_to_port());
  EXPECT_FALSE(other_.poll_receive());
  EXPECT_EQ(card_.dropped(), 1U);
  Owner third(card_,
              {.number = 0x60, .format = EntryFormat::raw_packet, .owner = 2, .receives_own = true},
              8, 4);
  card_.change(0x60, {.state = State::sending});
  card_.flow_rules().remove(1);
  card_.flow_rules().add(2, rule_for_port(0x60, 0x12, 0x34));
  receive(third);
  const Bytes frame = frame_to_port();
  send(other_, frame);
  EXPECT_TRUE(came(third, frame));
}

TEST_F(SteeringCardTest, AFrameForAnotherPortGoesToTheWire) {
  receive(other_);
  Bytes frame = frame_to_port();
  frame[0] = 2;
  send(one_, frame);
  EXPECT_EQ(wire_.sent, std::vector<Bytes>{frame});
  EXPECT_FALSE(other_.poll_receive());
  frame[0] = 1;  // to a group
  send(one_, frame);
  EXPECT_EQ(wire_.sent.size(), 2U);
  EXPECT_TRUE(came(other_, frame));
}

TEST_F(SteeringCardTest, AFrameOfTheWireIsSteeredToo) {
  receive(other_);
  const Bytes frame = frame_to_port();
  card_.receive_frame(std::as_bytes(std::span(frame)));
  EXPECT_TRUE(came(other_, frame));
  const Bytes too_short(kernels::rdma::kLeastFrame - 1);
  card_.receive_frame(std::as_bytes(std::span(too_short)));
  EXPECT_EQ(card_.dropped(), 0U);
}

/// The queue of a frame that is too long fails, and later frames for it are dropped.
TEST_F(SteeringCardTest, AFrameLongerThanTheReceiveEndsTheQueue) {
  other_.post_receive(there_.local(0, 20));
  send(one_, frame_to_port());
  const auto failed = other_.poll_receive();
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->kind, rdma::CqeKind::receive_error);
  EXPECT_EQ(failed->syndrome, rdma::Syndrome::local_length);
  send(one_, frame_to_port());
  EXPECT_EQ(card_.dropped(), 1U);
}

}  // namespace
}  // namespace offload::rdma::model::test
