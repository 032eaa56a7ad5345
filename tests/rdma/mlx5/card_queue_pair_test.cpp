#include "rdma/mlx5/card_queue_pair.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "core/error.hpp"
#include "softcard/card/card.hpp"
#include "tests/rdma/fake_fixture.hpp"
#include "tests/rdma/fake_mlx5.hpp"
#include "tests/rdma/mlx5/card_queue_pair_suite.hpp"
#include "tests/rdma/mlx5/page.hpp"
#include "tests/support/thrown.hpp"

namespace offload::rdma::mlx5 {
namespace {

using core::ErrorCode;
using support::thrown_by;
using test::fake;
using test::fake_mlx5;
namespace wire = kernels::rdma;

/// Selects mlx5 cards before the device is opened.
struct FakeCardTest : FakeDeviceTest {
  FakeCardTest() { test::reset_fake_mlx5(); }
};

/// The model of a card behind the fake library.
class FakeCard : public FakeCardTest {
 protected:
  FakeCard() { fake().first_number = kFirstNumber; }

  MemoryKeys share(std::span<std::byte> memory) {
    const std::uint32_t key = card_.register_memory(memory, {.read = true, .write = true});
    return {key, key};
  }
  void connect(CardQueuePair& one, CardQueuePair& other) {
    for (CardQueuePair* const pair : {&one, &other}) {
      QueuePairMemory at_card = pair->host();
      at_card.send.doorbell = pair->card_register();
      EXPECT_EQ(card_.add(at_card), pair->queue_pair().qp_num());
    }
    card_.connect(one.queue_pair().qp_num(), other.queue_pair().qp_num());
  }
  void look() {
    card_.progress();
    EXPECT_EQ(card_.fault(), "");
  }

  DeviceContext device_{"fake0"};
  ProtectionDomain domain_{device_};

 private:
  static constexpr std::uint32_t kFirstNumber = 0x40;  ///< the model's

  model::Card card_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Fake, CardQueuePairSuite, testing::Types<FakeCard>);

/// The tests that need what only the fake can do.
class CardQueuePairTest : public FakeCardTest {
 protected:
  SeenMemory memory(const QueueSizes& sizes) {
    auto& pages = memory_.emplace_back(arena_bytes(sizes) / sizeof(Page) + 1);
    return {std::as_writable_bytes(std::span(pages)), nullptr, {}};
  }

  std::vector<std::vector<Page>> memory_;
  DeviceContext device_{"fake0"};
  ProtectionDomain domain_{device_};
};

TEST_F(CardQueuePairTest, IsMadeAsKernelsNeedIt) {
  const CardQueuePair pair(device_, domain_, {}, memory({}));
  EXPECT_TRUE(fake_mlx5().has_thread_domain);
  EXPECT_EQ(fake_mlx5().pair.create_flags, unsigned{MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE});
}

TEST_F(CardQueuePairTest, IsReadyForRawPacketsWhenItIsMade) {
  const unsigned flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE;
  const unsigned own = flags | MLX5DV_QP_CREATE_TIR_ALLOW_SELF_LOOPBACK_UC;
  for (const auto& [traffic, wanted] :
       {std::pair{CardTraffic::frames, flags}, std::pair{CardTraffic::frames_and_own, own}}) {
    for (const QueueSizes sizes : {QueueSizes{4, 4}, QueueSizes{64, 256}, QueueSizes{4096, 64}}) {
      const SeenMemory room = memory(sizes);
      const CardQueuePair pair(device_, domain_, sizes,
                               {room.bytes.first(arena_bytes(sizes)), nullptr, {}}, traffic);
      EXPECT_EQ(fake_mlx5().pair.create_flags, wanted);
      EXPECT_EQ(pair.queue_pair().type(), QpType::raw_packet);
      EXPECT_EQ(pair.queue_pair().get()->qp_type, IBV_QPT_RAW_PACKET);
      EXPECT_EQ(pair.queue_pair().state(), IBV_QPS_RTS);
      EXPECT_EQ(pair.host().send.ring.blocks, sizes.send_blocks);
      EXPECT_EQ(pair.host().receive.entries, sizes.receives);
    }
  }
}

TEST_F(CardQueuePairTest, RawPacketsNeedACapability) {
  fake().fail_call = "ibv_create_qp";
  fake().fail_with = EPERM;
  const SeenMemory room = memory({});
  const auto error =
      thrown_by([&] { CardQueuePair(device_, domain_, {}, room, CardTraffic::frames); });
  EXPECT_EQ(error.code(), ErrorCode::not_permitted);
  EXPECT_NE(std::string(error.what()).find("CAP_NET_RAW"), std::string::npos);
}

TEST_F(CardQueuePairTest, ARegisterWithoutWriteCombiningIsEnough) {
  fake_mlx5().combines_writes = false;
  for (const int refusal : {EOPNOTSUPP, EPERM}) {
    fake().fail_call = "alloc_td";
    fake().fail_with = refusal;
    const CardQueuePair pair(device_, domain_, {}, memory({}));
    EXPECT_FALSE(fake_mlx5().has_thread_domain);
    EXPECT_FALSE(pair.combines_writes());
    EXPECT_EQ(pair.why_refused(), core::describe_errno(refusal));
  }
  fake().fail_call.clear();
  EXPECT_EQ(CardQueuePair(device_, domain_, {}, memory({})).why_refused(), "");
}

// Two queue pairs must not write to it at the same time.
TEST_F(CardQueuePairTest, ASharedRegisterWithWriteCombiningIsRefused) {
  fake_mlx5().combines_writes = true;
  fake().fail_call = "alloc_td";
  fake().fail_with = EPERM;
  const auto error = thrown_by([&] { CardQueuePair(device_, domain_, {}, memory({})); });
  EXPECT_EQ(error.cause().status, EPERM);
}

TEST_F(CardQueuePairTest, QueuesOfAnotherFormAreRefused) {
  const auto make = [&](const SeenMemory& given) { CardQueuePair(device_, domain_, {}, given); };
  const SeenMemory good = memory({});
  fake_mlx5().asks_domain = false;
  EXPECT_EQ(thrown_by([&] { make(good); }).code(), ErrorCode::not_supported);
  fake_mlx5().asks_domain = true;
  fake_mlx5().divisor = 2;
  EXPECT_EQ(thrown_by([&] { make(good); }).code(), ErrorCode::not_supported);
  fake_mlx5().divisor = 1;
  fake_mlx5().drives = false;
  EXPECT_EQ(thrown_by([&] { make(good); }).code(), ErrorCode::not_supported);
}

// The fixture sees that nothing stays open.
TEST_F(CardQueuePairTest, EachCallThatFailsIsAnError) {
  const SeenMemory good = memory({});
  fake().fail_with = EMFILE;
  for (const char* call :
       {"alloc_td", "ibv_alloc_pd", "ibv_create_cq", "ibv_create_qp", "mlx5dv_init_obj"}) {
    fake().fail_call = call;
    const auto error = thrown_by([&] { CardQueuePair(device_, domain_, {}, good); });
    EXPECT_EQ(error.cause().status, EMFILE) << call;
  }
  const auto before = static_cast<int>(fake().calls.size());
  fake().fail_call.clear();
  fake().fail_at = before + 2;  // the second completion queue
  thrown_by([&] { CardQueuePair(device_, domain_, {}, good); });
}

// Posted through the handles, carried by relay(), and done by the model at the card's register.
TEST_F(CardQueuePairTest, WhatIsPostedIsCarriedOut) {
  const QueueSizes sizes{16, 8};
  model::Card card;
  std::array<std::unique_ptr<CardQueuePair>, 2> pairs;
  std::array<wire::SendQueue, 2> sends;
  std::array<std::uint32_t, 2> numbers{};
  for (std::size_t i = 0; i < 2; ++i) {
    pairs[i] = std::make_unique<CardQueuePair>(device_, domain_, sizes, memory(sizes));
    QueuePairMemory at_card = pairs[i]->host();
    at_card.send.doorbell = &fake_mlx5().registers[i];
    numbers[i] = card.add(at_card);
    sends[i] = pairs[i]->host().send;
    sends[i].number = numbers[i];
  }
  card.connect(numbers[0], numbers[1]);
  std::array<std::byte, 4096> data{};
  const std::uint32_t key = card.register_memory(data, {});
  const wire::ReceiveQueue& receives = pairs[1]->host().receive;
  wire::SendState sent;
  wire::ReceiveState received;
  wire::Completion completion{};
  for (std::uint32_t i = 0; i < 100; ++i) {
    const wire::LocalBuffer to{reinterpret_cast<std::uint64_t>(&data[2048]), 4, key};
    ASSERT_EQ(wire::post_receive(receives, received, to), wire::Posted::done);
    wire::publish(receives, received);
    wire::SendWork work;
    work.opcode = wire::Opcode::send;
    work.flags = wire::kSignaled;
    work.inline_data = &i;
    work.inline_length = sizeof i;
    ASSERT_EQ(wire::post_send(sends[0], sent, work), wire::Posted::done);
    wire::publish(sends[0], sent);
    EXPECT_FALSE(card.progress());  // the card was not rung
    ASSERT_TRUE(pairs[0]->relay());
    ASSERT_TRUE(card.progress());
    ASSERT_TRUE(wire::poll_send(sends[0], sent, completion));
    EXPECT_EQ(completion.kind, wire::CqeKind::request);
    ASSERT_TRUE(wire::poll_receive(receives, received, completion));
    EXPECT_EQ(completion.byte_count, 4U);
    EXPECT_TRUE(std::equal(&data[2048], &data[2052], reinterpret_cast<std::byte*>(&i)));
  }
  EXPECT_EQ(card.fault(), "");
}

}  // namespace
}  // namespace offload::rdma::mlx5
