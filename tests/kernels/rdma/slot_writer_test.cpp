#include "kernels/rdma/slot_writer.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "kernels/serve.hpp"
#include "kernels/services/echo.hpp"
#include "rdma/queues/queue_memory.hpp"
#include "softcard/card/card.hpp"
#include "tests/support/bytes.hpp"

/// Slots that are written by RDMA, and what their reader sees after each operation of the card.
namespace offload::kernels::rdma::test {
namespace {

constexpr std::uint32_t kDepth = 4;
constexpr std::uint32_t kLongest = 1500;

/// The responses of one side's channel.
class Responses {
 public:
  Responses()
      : bytes_(layout_.response_bytes / sizeof(Line)),
        view_{nullptr, reinterpret_cast<std::uint8_t*>(bytes_.data()), layout_} {}

  [[nodiscard]] const ChannelView& view() const { return view_; }
  [[nodiscard]] std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(bytes_)); }
  [[nodiscard]] std::span<const std::uint8_t> slot(std::uint64_t sequence, std::size_t size) const {
    return {reinterpret_cast<const std::uint8_t*>(view_.response(sequence).packets), size};
  }

 private:
  struct alignas(kSlotAlignment) Line {
    std::byte bytes[kSlotAlignment];
  };
  ChannelLayout layout_ = make_layout(kDepth, kLongest);
  std::vector<Line> bytes_;
  ChannelView view_;
};

class SlotWriterTest : public testing::Test {
 protected:
  SlotWriterTest() {
    const offload::rdma::QueueSizes sizes{16, kDepth};
    for (auto& queues : queues_) {
      memory_.push_back(std::make_unique<Responses>());
      rings_.emplace_back(offload::rdma::queue_memory_bytes(sizes) +
                          offload::rdma::kQueueAlignment);
      void* at = rings_.back().data();
      std::size_t room = rings_.back().size();
      std::align(offload::rdma::kQueueAlignment, offload::rdma::queue_memory_bytes(sizes), at,
                 room);
      queues = offload::rdma::lay_out_queues({static_cast<std::byte*>(at), room}, sizes, 0);
      queues.send.number = card_.add(queues);
    }
    card_.connect(queues_[0].send.number, queues_[1].send.number);
    for (std::uint32_t i = 0; i < kDepth; ++i) await_immediate();
    const auto region = [this](Responses& of) {
      return SlotRegion{reinterpret_cast<std::uint64_t>(of.view().responses),
                        card_.register_memory(of.bytes(), {true, true, true})};
    };
    writer_.queue = {queues_[0].send, &state_, marks_.data()};
    writer_.own = region(own());
    writer_.peer = region(peer());
    writer_.limit = {1'000'000'000};
  }

  Responses& own() { return *memory_[0]; }
  Responses& peer() { return *memory_[1]; }

  /// Answers message `sequence` with `length` bytes, and posts that.
  void answer_with(std::uint64_t sequence, std::uint32_t length) {
    const auto payload = support::random_bytes(length + 2 * kSlack, length);
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(payload.data()) + kSlack;
    const Packet header =
        kernels::answer(SingleLane{}, Echo{}, Request(bytes, length),
                        own().view().response(sequence), own().view().layout.flag_of(sequence));
    ASSERT_EQ(write_response(SingleLane{}, writer_, own().view(), sequence, header),
              WorkResult::done);
  }
  void await_immediate() {
    ASSERT_EQ(post_receive(queues_[1].receive, receives_, {}), Posted::done);
    publish(queues_[1].receive, receives_);
  }
  /// Whether the peer has response `sequence`, the next one: it sets the flag when it comes.
  bool has(std::uint64_t sequence) {
    const Slot slot = peer().view().response(sequence);
    const std::uint32_t flag = peer().view().layout.flag_of(sequence);
    EXPECT_FALSE(is_complete(slot, flag));
    Completion completion{};
    if (!poll_receive(queues_[1].receive, receives_, completion)) return false;
    EXPECT_EQ(completion.kind, CqeKind::received_write_with_imm);
    EXPECT_EQ(completion.immediate, big_endian(static_cast<std::uint32_t>(sequence % kDepth)));
    await_immediate();
    set_flag(slot, flag);
    return is_complete(slot, flag);
  }
  /// Whether it comes, in time.
  bool comes(std::uint64_t sequence) {
    for (int turns = 0; turns < 100; ++turns) {
      if (has(sequence)) return true;
      card_.progress();
    }
    return false;
  }
  void expect_same(std::uint64_t sequence, std::uint32_t length) {
    const std::size_t size =
        length <= kMaxPacketPayload ? packets_for(length) * sizeof(Packet) : sizeof(Packet);
    EXPECT_TRUE(std::ranges::equal(own().slot(sequence, size), peer().slot(sequence, size)));
    if (length <= kMaxPacketPayload) return;
    EXPECT_TRUE(std::equal(own().view().response(sequence).plain(),
                           own().view().response(sequence).plain() + length,
                           peer().view().response(sequence).plain()));
  }

  void answer_many();

  offload::rdma::model::Card card_;
  std::vector<std::unique_ptr<Responses>> memory_;
  std::vector<std::vector<std::byte>> rings_;
  offload::rdma::QueuePairMemory queues_[2];
  SharedSendState state_{};
  std::vector<std::uint64_t> marks_ = std::vector<std::uint64_t>(16);
  SlotWriter writer_{};
  ReceiveState receives_;
};

void SlotWriterTest::answer_many() {
  std::minstd_rand random(3);
  for (std::uint64_t sequence = 0; sequence < 300; ++sequence) {
    const auto length =
        static_cast<std::uint32_t>(random() % (sequence % 2 == 0 ? kMaxPacketPayload : kLongest));
    answer_with(sequence, length);
    ASSERT_TRUE(comes(sequence)) << length;
    expect_same(sequence, length);
  }
  EXPECT_EQ(card_.fault(), "");
}

TEST_F(SlotWriterTest, AResponseIsThereWhenAllOfItIs) {
  card_.set_rude(7);  // an operation or a few in each turn
  answer_many();
}

TEST_F(SlotWriterTest, AResponseIsThereWhenItsWritesComeInAnyOrder) {
  card_.set_unordered(7);
  answer_many();
}

TEST_F(SlotWriterTest, TheFirstAndTheLastLengthsOfEachForm) {
  std::uint64_t sequence = 0;
  for (const std::uint32_t length :
       {0U, 1U, kPacketData, kPacketData + 1, kMaxPacketPayload, kMaxPacketPayload + 1, kLongest}) {
    answer_with(sequence, length);
    ASSERT_TRUE(comes(sequence)) << length;
    expect_same(sequence++, length);
  }
}

TEST_F(SlotWriterTest, ALapThatRewritesSlotsWritesAllPackets) {
  const std::uint64_t sequence = (std::uint64_t{kRewriteLaps} - 1) * kDepth;
  ASSERT_TRUE(rewrites_slot(own().view().layout.flag_of(sequence)));
  for (const std::uint32_t length : {0U, 100U, 1000U}) {
    const std::uint64_t at = sequence + (length == 100 ? 1 : 0) + (length == 1000 ? 2 : 0);
    answer_with(at, length);
    ASSERT_TRUE(comes(at));
    expect_same(at, length);
    EXPECT_TRUE(std::ranges::equal(own().slot(at, kMaxPackets * sizeof(Packet)),
                                   peer().slot(at, kMaxPackets * sizeof(Packet))));
  }
}

TEST_F(SlotWriterTest, ABrokenQueueEndsTheWait) {
  writer_.peer.key += 77;
  WorkResult result = WorkResult::done;
  for (std::uint64_t sequence = 0; sequence < 100 && result == WorkResult::done; ++sequence) {
    const Packet header = kernels::refuse(SingleLane{}, own().view().response(sequence),
                                          own().view().layout.flag_of(sequence));
    result = write_response(SingleLane{}, writer_, own().view(), sequence, header);
    while (card_.progress()) continue;
  }
  EXPECT_EQ(result, WorkResult::failed);
}

}  // namespace
}  // namespace offload::kernels::rdma::test
