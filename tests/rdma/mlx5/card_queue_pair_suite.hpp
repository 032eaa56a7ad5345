#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <vector>

#include "core/error.hpp"
#include "rdma/mlx5/card_queue_pair.hpp"
#include "tests/rdma/mlx5/page.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/thrown.hpp"

/// Tests of CardQueuePair that run alike with the fake libmlx5 and the model of a card, and with
/// the real libmlx5 and a card.
namespace offload::rdma::mlx5 {

/// The keys of registered memory.
struct MemoryKeys {
  std::uint32_t local;
  std::uint32_t remote;
};

/// `Card` is a fixture with `device_`, `domain_`, and these functions:
///   MemoryKeys share(std::span<std::byte>): registers memory until the end of the test
///   void connect(CardQueuePair&, CardQueuePair&)
///   void look(): gives the card time, if it has no thread or process
template <class Card>
class CardQueuePairSuite : public Card {
 protected:
  /// Two connected queue pairs, and memory that both use.
  class Pairs {
   public:
    explicit Pairs(CardQueuePairSuite& suite)
        : suite_(suite),
          one_(suite.device_, suite.domain_, kSizes, suite.memory(kSizes)),
          other_(suite.device_, suite.domain_, kSizes, suite.memory(kSizes)),
          keys_(suite.share(std::as_writable_bytes(std::span(words_)))) {
      suite.connect(one_, other_);
    }
    Pairs& operator=(Pairs&&) = delete;

    /// Posts writes of a word, one by one, over many laps of the ring.
    void write(const kernels::rdma::SendQueue& queue) {
      for (std::uint64_t i = 1; i <= 2000; ++i) {
        words_[0] = i * 0x9e37'79b9'7f4a'7c15;
        const kernels::rdma::LocalBuffer buffer{address(0), 8, keys_.local};
        kernels::rdma::SendWork work;
        work.opcode = kernels::rdma::Opcode::rdma_write;
        work.flags = kernels::rdma::kSignaled;
        work.remote = {address(kThere), keys_.remote};
        work.buffers = &buffer;
        work.buffer_count = 1;
        ASSERT_EQ(kernels::rdma::post_send(queue, posted_, work), kernels::rdma::Posted::done);
        kernels::rdma::publish(queue, posted_);
        ASSERT_FALSE(next().is_error()) << i;
        ASSERT_EQ(words_[kThere], words_[0]) << i;
      }
    }
    /// Sends `length` bytes inline, into a receive that is posted before.
    void send_inline(std::uint32_t length) {
      const kernels::rdma::LocalBuffer room{address(kThere), 256, keys_.local};
      const auto& receive = other_.host().receive;
      ASSERT_EQ(kernels::rdma::post_receive(receive, received_, room), kernels::rdma::Posted::done);
      kernels::rdma::publish(receive, received_);
      for (std::size_t i = 0; i < kThere; ++i) words_[i] = (length + i) * 0x9e37'79b9'7f4a'7c15;
      kernels::rdma::SendWork work;
      work.opcode = kernels::rdma::Opcode::send_with_imm;
      work.flags = kernels::rdma::kSignaled;
      work.immediate = length;
      work.inline_data = words_.data();
      work.inline_length = length;
      ASSERT_EQ(kernels::rdma::post_send(one_.host().send, posted_, work),
                kernels::rdma::Posted::done);
      kernels::rdma::publish(one_.host().send, posted_);
      ASSERT_FALSE(next().is_error()) << length;
      kernels::rdma::Completion came{};
      const auto deadline = std::chrono::steady_clock::now() + kPatience;
      while (!kernels::rdma::poll_receive(receive, received_, came)) {
        suite_.look();
        ASSERT_LT(std::chrono::steady_clock::now(), deadline) << length;
      }
      EXPECT_EQ(came.kind, kernels::rdma::CqeKind::received_send_with_imm);
      EXPECT_EQ(came.immediate, length);
      EXPECT_EQ(came.byte_count, length);
      ASSERT_EQ(std::memcmp(&words_[0], &words_[kThere], length), 0) << length;
    }
    [[nodiscard]] CardQueuePair& one() noexcept { return one_; }

   private:
    static constexpr QueueSizes kSizes{64, 16};
    static constexpr std::chrono::seconds kPatience{20};
    static constexpr std::size_t kThere = 64;  ///< the first word of the memory that is written to

    [[nodiscard]] std::uint64_t address(std::size_t word) const {
      return reinterpret_cast<std::uint64_t>(&words_[word]);
    }
    /// Rings for the work that was posted at `one_`, and returns the completion; one that has
    /// failed if there is none in time.
    kernels::rdma::Completion next() {
      const auto deadline = std::chrono::steady_clock::now() + kPatience;
      kernels::rdma::Completion completion{};
      while (!kernels::rdma::poll_send(one_.host().send, posted_, completion)) {
        one_.relay();
        suite_.look();
        if (std::chrono::steady_clock::now() > deadline) {
          ADD_FAILURE() << "no completion";
          completion.kind = kernels::rdma::CqeKind::request_error;
          return completion;
        }
      }
      return completion;
    }

    CardQueuePairSuite& suite_;
    CardQueuePair one_;
    CardQueuePair other_;
    std::array<std::uint64_t, 2 * kThere> words_{};
    MemoryKeys keys_;
    kernels::rdma::SendState posted_;
    kernels::rdma::ReceiveState received_;
  };

  SeenMemory memory(const QueueSizes& sizes) {
    auto& pages = memory_.emplace_back(arena_bytes(sizes) / sizeof(Page) + 1);
    return {std::as_writable_bytes(std::span(pages)), nullptr, {}};
  }

  std::vector<std::vector<Page>> memory_;
};

TYPED_TEST_SUITE_P(CardQueuePairSuite);

TYPED_TEST_P(CardQueuePairSuite, HasItsQueuesInTheMemoryGiven) {
  for (const std::uint32_t blocks : {1U, 4U, 64U, 4096U, 32768U}) {
    for (const std::uint32_t receives : {1U, 64U, 32768U}) {
      const QueueSizes sizes{blocks, receives};
      const SeenMemory memory = this->memory(sizes);
      CardQueuePair pair(this->device_, this->domain_, sizes,
                         {memory.bytes.first(arena_bytes(sizes)), nullptr, {}});
      EXPECT_EQ(pair.host().send.ring.blocks, std::max(blocks, 4U));
      EXPECT_EQ(pair.host().receive.entries, std::max(receives, 4U));
      EXPECT_EQ(pair.host().send.number, pair.queue_pair().qp_num());
      EXPECT_EQ(pair.ringer(), DoorbellRinger::relay);
      this->memory_.clear();
    }
  }
}

TYPED_TEST_P(CardQueuePairSuite, AGpuSeesItsOwnAddresses) {
  SeenMemory given = this->memory({});
  std::vector<Page> seen(this->memory_.back().size());  // as if it were mapped there
  std::uint64_t seen_register = 0;
  void* mapped = nullptr;
  given.device_address = seen[0].bytes;
  given.map_register = [&](void* address) {
    mapped = address;
    return &seen_register;
  };
  const CardQueuePair pair(this->device_, this->domain_, {}, given);
  EXPECT_EQ(pair.ringer(), DoorbellRinger::gpu);
  EXPECT_NE(mapped, nullptr);
  EXPECT_EQ(mapped, pair.card_register());
  const QueuePairMemory there = pair.device();
  EXPECT_EQ(there.send.doorbell, &seen_register);
  const auto offset = [](const void* pointer, const void* from) {
    return static_cast<const std::byte*>(pointer) - static_cast<const std::byte*>(from);
  };
  EXPECT_EQ(offset(there.send.record, seen[0].bytes),
            offset(pair.host().send.record, given.bytes.data()));
  EXPECT_EQ(offset(there.receive.ring, seen[0].bytes),
            offset(pair.host().receive.ring, given.bytes.data()));
}

TYPED_TEST_P(CardQueuePairSuite, AThreadRingsWhereTheGpuCannot) {
  const support::LogCapture log;
  SeenMemory given = this->memory({});
  given.device_address = given.bytes.data();
  given.map_register = [](void*) -> void* {
    throw core::Error(core::ErrorCode::driver, "cudaHostRegister: not permitted");
  };
  const CardQueuePair pair(this->device_, this->domain_, {}, given);
  EXPECT_EQ(pair.ringer(), DoorbellRinger::relay);
  EXPECT_EQ(pair.combines_writes(), pair.why_refused().empty());  // not on --no-write-combining
  EXPECT_EQ(pair.device().send.doorbell, pair.host().send.doorbell);
  EXPECT_TRUE(log.has(": a thread rings the doorbell, because cudaHostRegister: not permitted\n"))
      << log.text();
  EXPECT_EQ(std::ranges::count(log.text(), '\n'), 1) << log.text();
}

TYPED_TEST_P(CardQueuePairSuite, NoGpuUsesWhatNoneSees) {
  const CardQueuePair pair(this->device_, this->domain_, {}, this->memory({}));
  EXPECT_EQ(support::thrown_by([&] { (void)pair.device(); }).code(), core::ErrorCode::bad_state);
}

TYPED_TEST_P(CardQueuePairSuite, MemoryThatDoesNotFitIsRefused) {
  const auto code = [&](const SeenMemory& given) {
    return support::thrown_by([&] { CardQueuePair(this->device_, this->domain_, {}, given); })
        .code();
  };
  const SeenMemory good = this->memory({});
  EXPECT_EQ(code({good.bytes.first(8192), nullptr, {}}), core::ErrorCode::no_memory);
  EXPECT_EQ(code({good.bytes.subspan(64), nullptr, {}}), core::ErrorCode::invalid_value);
}

TYPED_TEST_P(CardQueuePairSuite, AThreadRings) {
  typename TestFixture::Pairs pairs(*this);
  pairs.write(pairs.one().host().send);
}

// A GPU rings in this way. A strict card sees it if a doorbell comes before its record.
TYPED_TEST_P(CardQueuePairSuite, TheOwnerRings) {
  typename TestFixture::Pairs pairs(*this);
  kernels::rdma::SendQueue queue = pairs.one().host().send;
  queue.doorbell = pairs.one().card_register();
  pairs.write(queue);
}

TYPED_TEST_P(CardQueuePairSuite, InlineMessagesUseReceives) {
  typename TestFixture::Pairs pairs(*this);
  for (std::uint32_t length = 1; length <= 200 && !this->HasFatalFailure(); ++length) {
    pairs.send_inline(length);
  }
}

REGISTER_TYPED_TEST_SUITE_P(CardQueuePairSuite, HasItsQueuesInTheMemoryGiven,
                            AGpuSeesItsOwnAddresses, AThreadRingsWhereTheGpuCannot,
                            NoGpuUsesWhatNoneSees, MemoryThatDoesNotFitIsRefused, AThreadRings,
                            TheOwnerRings, InlineMessagesUseReceives);

}  // namespace offload::rdma::mlx5
