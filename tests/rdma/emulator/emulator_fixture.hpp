#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rdma/emulator/queue_emulator.hpp"
#include "tests/rdma/fake_fixture.hpp"
#include "tests/rdma/queue_owner.hpp"

namespace offload::rdma {

/// An emulator on a device that does what the test says.
class EmulatorTest : public FakeDeviceTest {
 protected:
  static constexpr std::uint32_t kMostSends = 4;
  static constexpr QueueSizes kSizes{32, 8};

  static QueuePairOptions options(QpType type) {
    QueuePairOptions result;
    result.qp_type = type;
    result.max_send_wr = kMostSends;
    result.max_recv_wr = 4;
    result.max_sge = 3;
    result.max_inline_data = 48;  // the fake grants 64
    return result;
  }

  explicit EmulatorTest(QpType type = QpType::rc)
      : pair_(domain_, loop_.queue(), loop_.queue(), options(type)),
        owner_(kSizes, pair_.qp_num()) {
    emulator_.emplace(QueueEmulatorParts{domain_, loop_, pair_}, owner_.queues,
                      [this](QueueEmulator& emulator, const core::Error& why) {
                        told_.push_back(why.what());
                        if (stops_on_error_) emulator.stop();
                      });
    emulator_->connect(engine_);
    emulator_->start();
    emulator_->start_sends();
  }
  ~EmulatorTest() override {
    if (emulator_->state() == progress::Context::State::running) emulator_->stop();
    turn();
    EXPECT_EQ(emulator_->state(), progress::Context::State::idle);
  }

  test::FakeQueuePair& native() { return *test::fake().queue_pairs.at(0); }
  void turn() {
    for (int i = 0; i < 20; ++i) engine_.progress();
  }
  /// Posts it alone, and has the emulator work.
  void go(const wire::SendWork& work) {
    ASSERT_EQ(owner_.post(work), wire::Posted::done);
    owner_.publish();
    turn();
  }
  void finish(ibv_wc_status status = IBV_WC_SUCCESS) {
    test::fake().finish_send(native(), status);
    turn();
  }
  void expect(wire::Syndrome syndrome, std::uint16_t counter) {
    const auto completion = owner_.poll();
    ASSERT_TRUE(completion) << "of entry " << counter;
    EXPECT_EQ(completion->syndrome, syndrome);
    EXPECT_EQ(completion->counter, counter);
    EXPECT_EQ(completion->queue, pair_.qp_num());
    EXPECT_EQ(completion->kind, syndrome == wire::Syndrome::none ? wire::CqeKind::request
                                                                 : wire::CqeKind::request_error);
  }
  static wire::SendWork work_of(wire::Opcode opcode, std::uint8_t flags = wire::kSignaled) {
    wire::SendWork work;
    work.opcode = opcode;
    work.flags = flags;
    return work;
  }

  DeviceContext device_{"fake0"};
  ProtectionDomain domain_{device_};
  progress::Engine engine_;
  CompletionLoop loop_{device_, engine_, 16};
  QueuePair pair_;
  QueueOwner owner_;
  std::vector<std::string> told_;
  bool stops_on_error_ = false;
  std::optional<QueueEmulator> emulator_;
};

}  // namespace offload::rdma
