#include <gtest/gtest.h>

#include "kernels/rdma/ethernet.hpp"
#include "tests/kernels/packets/frame_maker.hpp"
#include "tests/rdma/model/card_fixture.hpp"

/// Raw packets that the model of a card accepts, and those that it refuses.
namespace offload::rdma::model::test {
namespace {

using rdma::CqeKind;
using rdma::Segment;
using rdma::Syndrome;

class RawCardTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kWanted = 18;  ///< inline bytes
  static constexpr std::uint32_t kBlocks = 8;

  Card card_;
  Memory here_{card_, 4096, {}};
  Memory there_{card_, 4096, {}};
  Owner one_{card_, kBlocks, 4, kWanted};
  Owner other_{card_, kBlocks, 4, 0};

  void SetUp() override {
    card_.connect(one_.send.number, other_.send.number);
    const auto frame = kernels::packets::test::FrameMaker::make({.payload = 40});
    size_ = static_cast<std::uint32_t>(frame.size());
    std::memcpy(here_.bytes().data(), frame.data(), size_);
  }
  [[nodiscard]] rdma::RawWork work(std::uint32_t size) {
    rdma::RawWork work;
    work.frame = {here_.address(), size, here_.key()};
    work.bytes = reinterpret_cast<const std::uint8_t*>(here_.bytes().data());
    work.inline_bytes = kWanted;
    work.flags = rdma::kSignaled;
    return work;
  }
  /// Writes an entry, has `change` change its segments, and runs the card.
  template <class Change>
  void go(const rdma::RawWork& work, const Change& change) {
    rdma::write_raw_entry(one_.send.ring, one_.posted.posted, one_.send.number, work);
    change(&one_.send.ring.at(one_.posted.posted, 0));
    ++one_.posted.posted;
    rdma::ring_up_to(one_.send, one_.posted.posted, one_.posted.polled);
    one_.posted.published = one_.posted.posted;
    while (card_.progress()) continue;
  }
  void go(const rdma::RawWork& work) {
    go(work, [](Segment*) {});
  }
  void receive(std::uint32_t size) { other_.post_receive({there_.address(), size, there_.key()}); }
  std::uint32_t size_ = 0;
};

TEST_F(RawCardTest, AFrameComesToThePeer) {
  receive(2048);
  go(work(size_));
  EXPECT_EQ(card_.fault(), "");
  const auto sent = one_.poll();
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->kind, CqeKind::request);
  const auto came = other_.poll_receive();
  ASSERT_TRUE(came);
  EXPECT_EQ(came->kind, CqeKind::received_send);
  EXPECT_EQ(came->byte_count, size_);
  EXPECT_TRUE(rdma::ip_is_right(*came));
  EXPECT_TRUE(rdma::transport_is_right(*came));
  EXPECT_NE(came->time, 0U);
  EXPECT_TRUE(
      std::equal(here_.bytes().begin(), here_.bytes().begin() + size_, there_.bytes().begin()));
}

TEST_F(RawCardTest, WrongChecksumsAreTold) {
  receive(2048);
  receive(2048);
  here_.bytes()[size_ - 1] ^= std::byte{1};
  go(work(size_));
  here_.bytes()[20] ^= std::byte{1};  // of the IPv4 header
  go(work(size_));
  const auto first = other_.poll_receive();
  const auto second = other_.poll_receive();
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(rdma::ip_is_right(*first));
  EXPECT_FALSE(rdma::transport_is_right(*first));
  EXPECT_FALSE(rdma::ip_is_right(*second));
}

TEST_F(RawCardTest, AFrameWaitsForAReceiveOrIsDropped) {
  go(work(size_));
  EXPECT_FALSE(one_.poll());
  receive(2048);
  while (card_.progress()) continue;
  EXPECT_TRUE(one_.poll());
  EXPECT_TRUE(other_.poll_receive());
  card_.set_fail_without_receive(true);
  go(work(size_));
  const auto sent = one_.poll();
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->kind, CqeKind::request);
  EXPECT_EQ(card_.dropped(), 1U);
}

TEST_F(RawCardTest, AFrameLongerThanTheReceiveEndsTheReceiver) {
  receive(size_ - 1);
  go(work(size_));
  const auto came = other_.poll_receive();
  ASSERT_TRUE(came);
  EXPECT_EQ(came->kind, CqeKind::receive_error);
  EXPECT_EQ(came->syndrome, Syndrome::local_length);
  const auto sent = one_.poll();
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->kind, CqeKind::request);
}

/// An operation that a card would refuse is completed with its syndrome.
TEST_F(RawCardTest, WhatCannotBeSentIsAnError) {
  const std::pair<Syndrome, void (*)(rdma::RawWork&)> cases[] = {
      {Syndrome::local_queue_operation, [](rdma::RawWork& w) { w.inline_bytes = 14; }},
      {Syndrome::local_queue_operation, [](rdma::RawWork& w) { w.inline_bytes = 0; }},
      {Syndrome::local_length, [](rdma::RawWork& w) { w.frame.length = 13; }},
      {Syndrome::local_protection, [](rdma::RawWork& w) { w.frame.lkey ^= 0x100000; }},
      {Syndrome::local_protection, [](rdma::RawWork& w) { w.frame.length = 4097; }},
      {Syndrome::local_protection, [](rdma::RawWork& w) { w.frame.address -= 40; }}};
  for (const auto& [syndrome, change] : cases) {
    Card card;
    Memory memory(card, 4096, {});
    Owner owner(card, kBlocks, 4, kWanted);
    rdma::RawWork wrong = work(size_);
    wrong.frame = {memory.address(), size_, memory.key()};
    change(wrong);
    rdma::write_raw_entry(owner.send.ring, 0, owner.send.number, wrong);
    owner.posted.posted = owner.posted.published = 1;
    rdma::ring_up_to(owner.send, 1, 0);
    while (card.progress()) continue;
    EXPECT_EQ(card.fault(), "");
    const auto failed = owner.poll();
    ASSERT_TRUE(failed);
    EXPECT_EQ(failed->kind, CqeKind::request_error);
    EXPECT_EQ(failed->syndrome, syndrome);
  }
}

/// An entry that violates the format is a fault of its owner, which the card describes.
TEST_F(RawCardTest, WhatBreaksTheFormatIsAFault) {
  using rdma::big_endian;
  const std::pair<const char*, void (*)(Segment*)> cases[] = {
      {"entry 0: its inline header is longer than the entry",
       [](Segment* s) { s[1].words[3] |= big_endian(200U << 16); }},
      {"entry 0: a reserved field is not 0", [](Segment* s) { s[1].words[0] = 1; }},
      {"entry 0: a reserved field is not 0", [](Segment* s) { s[1].words[2] = 1; }},
      {"entry 0: a reserved field is not 0", [](Segment* s) { s[1].words[1] |= big_endian(1); }},
      {"entry 0: a reserved field is not 0",
       [](Segment* s) { s[1].words[1] |= big_endian(1U << 29); }},
      {"entry 0: it has no Ethernet segment",
       [](Segment* s) { s[0].words[1] ^= big_endian(4 ^ 1); }},
      {"entry 0: its operation is unknown",
       [](Segment* s) { s[0].words[0] ^= big_endian(0x0aU ^ 0x08U); }},
      {"entry 0: a buffer has length 0", [](Segment* s) { s[3].words[0] = 0; }},
      {"entry 0: its inline data is invalid",
       [](Segment* s) { s[3].words[0] |= big_endian(0x8000'0000U); }},
      {"entry 0: it names another queue", [](Segment* s) { s[0].words[1] ^= big_endian(0x100); }},
      {"entry 0: its index is wrong", [](Segment* s) { s[0].words[0] ^= big_endian(0x100); }},
      {"entry 0: it is not completely published",
       [](Segment* s) { s[0].words[1] ^= big_endian(4 ^ 5); }}};
  for (const auto& [words, change] : cases) {
    Card card;
    Owner owner(card, kBlocks, 4, kWanted);
    rdma::write_raw_entry(owner.send.ring, 0, owner.send.number, work(size_));
    change(&owner.send.ring.at(0, 0));
    rdma::ring_up_to(owner.send, 1, 0);
    while (card.progress()) continue;
    EXPECT_EQ(card.fault(), "queue 64: " + std::string(words));
  }
}

}  // namespace
}  // namespace offload::rdma::model::test
