#include "softcard/card/card.hpp"
#include "tests/comch/transport/rdma/slots_fixture.hpp"
#include "tests/rdma/fake_mlx5.hpp"
#include "tests/rdma/queue_owner.hpp"
#include "tests/support/eventually.hpp"

/// The worker's slots on an mlx5 card: libmlx5's functions are the test's, and the model reads the
/// rings at the card's register.
namespace offload::comch {
namespace {

using rdma::test::fake_mlx5;

class CardRingsTest : public rdma::FakeDeviceTest {
 protected:
  CardRingsTest() { rdma::test::reset_fake_mlx5(); }
  ~CardRingsTest() override {
    path_.reset();
    fake_mlx5() = {};
  }

  void make_path() {
    path_.emplace(std::make_shared<Adapter>("fake0"), rdma::PathOptions{}, view_, engine_);
    SlotDescription peer = SlotDescription::decode(path_->describe());
    peer.region.address = reinterpret_cast<std::uint64_t>(there_.responses);
    peer.length = there_.layout.response_bytes;
    path_->connect(peer.encode());
    path_->start();
  }
  /// The model in the place of the card, and what a back end has then: numbers and keys of it.
  kernels::rdma::SlotWriter plug_in_card() {
    kernels::rdma::SlotWriter writer = path_->writer().slots;
    rdma::QueuePairMemory at_card{writer.queue.queue, peer_.queues.receive};
    at_card.send.doorbell = &fake_mlx5().registers[0];
    writer.queue.queue.number = card_.add(at_card);
    card_.connect(writer.queue.queue.number, card_.add(peer_.queues));
    for (std::uint32_t i = 0; i < kSlotDepth; ++i) {
      EXPECT_EQ(peer_.post_receive({}), rdma::wire::Posted::done);
    }
    writer.own.key = key_of(view_);
    writer.peer.key = key_of(there_);
    return writer;
  }
  std::uint32_t key_of(const kernels::ChannelView& view) {
    return card_.register_memory(
        {reinterpret_cast<std::byte*>(view.responses), view.layout.response_bytes},
        {true, true, true});
  }
  /// Takes the next response, `sequence`, as a server does. False: it is not there whole.
  [[nodiscard]] bool take(std::uint64_t sequence) {
    if (!peer_.poll_receive()) return false;
    EXPECT_EQ(peer_.post_receive({}), rdma::wire::Posted::done);
    kernels::rdma::set_flag(there_.response(sequence), there_.layout.flag_of(sequence));
    return kernels::is_complete(there_.response(sequence), there_.layout.flag_of(sequence));
  }

  support::LogCapture log_;
  channel::ChannelMemory memory_{0, kSlotDepth, kSlotLongest, -1};
  channel::ChannelMemory peer_memory_{0, kSlotDepth, kSlotLongest, -1};
  kernels::ChannelView view_ = memory_.endpoint().view;
  kernels::ChannelView there_ = peer_memory_.endpoint().view;
  rdma::model::Card card_;
  rdma::QueueOwner peer_{rdma::QueueSizes{4, 4}, 0};
  progress::Engine engine_;
  std::optional<RdmaSlotPath> path_;
};

TEST_F(CardRingsTest, TheCardCarriesOutWhatIsPostedAndNobodyElseDoes) {
  make_path();
  EXPECT_EQ(path_->writer().carrier, "fake0 itself carries that out");
  EXPECT_EQ(path_->writer().card_register, &fake_mlx5().registers[0]);
  const auto writer = plug_in_card();
  for (std::uint64_t sequence = 0; sequence < 40; ++sequence) {
    const Bytes payload = support::random_bytes(static_cast<std::size_t>(sequence * 50), 3);
    ASSERT_EQ(respond_with(writer, view_, sequence, payload), kernels::rdma::WorkResult::done);
    EXPECT_FALSE(card_.progress());  // it was not rung
    engine_.progress();
    while (card_.progress()) continue;
    ASSERT_TRUE(take(sequence)) << sequence << ": " << card_.fault();
  }
  EXPECT_EQ(card_.fault(), "");
  EXPECT_TRUE(fake().queue_pairs.back()->sends.empty());
  EXPECT_EQ(path_->failure(), nullptr);
}

// The GPU does the same if CUDA accepts the page.
TEST_F(CardRingsTest, TheRegisterMayBeRungInPlaceOfTheWord) {
  make_path();
  auto writer = plug_in_card();
  writer.queue.queue.doorbell = path_->writer().card_register;
  ASSERT_EQ(respond_with(writer, view_, 0, support::random_bytes(100, 1)),
            kernels::rdma::WorkResult::done);
  while (card_.progress()) continue;
  EXPECT_TRUE(take(0));
}

TEST_F(CardRingsTest, AQueuePairInErrorEndsThePath) {
  make_path();
  fake().queue_pairs.back()->attributes.qp_state = IBV_QPS_ERR;
  EXPECT_TRUE(support::eventually([&] {
    engine_.progress();
    return path_->failure() != nullptr;
  }));
  EXPECT_NE(path_->failure()->find("is in error"), std::string::npos);
}

TEST_F(CardRingsTest, StopMovesTheQueuePairToError) {
  make_path();
  path_->stop();
  const auto& pair = *fake().queue_pairs.back();
  EXPECT_EQ(pair.attributes.qp_state, IBV_QPS_ERR);
  const std::size_t changes = pair.modified.size();
  path_->stop();
  EXPECT_EQ(pair.modified.size(), changes);
}

TEST_F(CardRingsTest, WhatWasNotStartedIsNotStopped) {
  path_.emplace(std::make_shared<Adapter>("fake0"), rdma::PathOptions{}, view_, engine_);
  const auto& pair = *fake().queue_pairs.back();
  const std::size_t changes = pair.modified.size();
  path_->stop();
  EXPECT_EQ(pair.modified.size(), changes);
}

TEST_F(CardRingsTest, ATurnHasWorkedIfItRang) {
  make_path();
  EXPECT_FALSE(engine_.progress());
  const auto writer = plug_in_card();
  ASSERT_EQ(respond_with(writer, view_, 0, support::random_bytes(100, 1)),
            kernels::rdma::WorkResult::done);
  EXPECT_TRUE(engine_.progress());
  EXPECT_FALSE(engine_.progress());
  while (card_.progress()) continue;
}

// One line for all channels of an attachment.
TEST_F(CardRingsTest, ARegisterWithoutWriteCombiningIsUsedAndLoggedOnce) {
  fake_mlx5().combines_writes = false;
  fake().fail_call = "alloc_td";
  fake().fail_with = EOPNOTSUPP;
  const auto adapter = std::make_shared<Adapter>("fake0");
  for (int channel = 0; channel < 3; ++channel) {
    path_.emplace(adapter, rdma::PathOptions{}, view_, engine_);
    EXPECT_EQ(path_->writer().carrier, "fake0 itself carries that out");
  }
  const std::string line =
      "info: fake0 refuses a register with write combining (Operation not supported): doorbells "
      "use one without\n";
  const auto first = log_.text().find(line);
  ASSERT_NE(first, std::string::npos) << log_.text();
  EXPECT_EQ(log_.text().find("refuses", first + line.size()), std::string::npos) << log_.text();
}

TEST_F(CardRingsTest, AnEmulatorStandsInForACardThatCannot) {
  fake().fail_call = "mlx5dv_init_obj";
  fake().fail_with = EOPNOTSUPP;
  make_path();
  EXPECT_EQ(path_->writer().carrier, "a thread carries that out on fake0");
  EXPECT_EQ(path_->writer().card_register, nullptr);
  EXPECT_TRUE(log_.has("fake0 does not read rings itself, an emulator does: ")) << log_.text();
}

TEST_F(CardRingsTest, AnotherDeviceHasAnEmulatorWithoutAWord) {
  fake_mlx5().drives = false;
  make_path();
  EXPECT_EQ(path_->writer().carrier, "a thread carries that out on fake0");
  EXPECT_FALSE(log_.has("does not read rings")) << log_.text();
}

}  // namespace
}  // namespace offload::comch
