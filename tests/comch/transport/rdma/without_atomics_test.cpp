#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/comch/session/session_fixture.hpp"
#include "tests/rdma/fake_verbs.hpp"

/// Sessions whose worker prefers written slots, on a device without atomic operations. Each
/// side opens the fake device separately, and keeps the properties that it read then.
namespace offload::comch {
namespace {

using protocol::Refusal;
using rdma::test::fake;

constexpr const char* kReason =
    "fake0 has no atomic operations, which --data-path gpu needs and cpu does not";

class WithoutAtomicsTest : public test::SessionTest {
 protected:
  WithoutAtomicsTest() { rdma::test::reset_fake(); }
  void TearDown() override {
    worker_session_.reset();
    server_session_.reset();
    EXPECT_EQ(fake().open_objects(), 0);
  }

  void listen_at(const std::string& scheme) {
    address_ = Address::parse(scheme + ":127.0.0.1:0");
    address_.insecure = true;
    if (scheme == "rdma") address_.path_choice.device = "fake0";
    listen();
    address_.port = server_session_->address().port;
  }
  /// The worker attaches, and must be refused: now or later.
  void expect_refused(const std::string& reason) {
    auto greeting = test::hello();
    greeting.capabilities |= protocol::kWritesSlots;
    worker_session_.emplace(worker_engine_, address_, greeting, kMostMemory, server_events_);
    ASSERT_TRUE(run_until([&] { return server_events_.lost == 1; }));
    EXPECT_EQ(server_events_.reason, reason);
    EXPECT_EQ(server_events_.refused, Refusal::bad_hello);
    EXPECT_TRUE(fake().queue_pairs.empty());
  }
};

TEST_F(WithoutAtomicsTest, AServerRefusesTheGreeting) {
  fake().device.atomic_cap = IBV_ATOMIC_NONE;
  listen_at("rdma");
  fake().device.atomic_cap = IBV_ATOMIC_HCA;
  expect_refused(std::string("this server cannot write into a worker's slots: ") + kReason);
}

TEST_F(WithoutAtomicsTest, AWorkerGivesUpAtItsFirstChannel) {
  listen_at("rdma");
  fake().device.atomic_cap = IBV_ATOMIC_NONE;
  expect_refused(kReason);
  EXPECT_TRUE(run_until([&] { return log_.has(std::string("it refused: ") + kReason); }))
      << log_.text();
}

// A limit of 0 means that no operation of that kind may be under way.
TEST_F(WithoutAtomicsTest, ADeviceThatTakesOrBeginsNoneHasNone) {
  for (int* const most : {&fake().device.max_qp_rd_atom, &fake().device.max_qp_init_rd_atom}) {
    const int former = std::exchange(*most, 0);
    listen_at("rdma");
    *most = former;
    expect_refused(std::string("this server cannot write into a worker's slots: ") + kReason);
    worker_session_.reset();
    server_session_.reset();
    server_events_ = {};
  }
}

TEST_F(WithoutAtomicsTest, NeitherHasTcp) {
  listen_at("tcp");
  expect_refused(
      "this server cannot write into a worker's slots: a back end can post responses "
      "(--data-path gpu) only over RDMA");
}

// An action that failed, such as opening the device, may succeed later.
TEST_F(WithoutAtomicsTest, AWorkerTriesAgainWhereTheDeviceFails) {
  listen_at("rdma");
  auto greeting = test::hello();
  greeting.capabilities |= protocol::kWritesSlots;
  worker_session_.emplace(worker_engine_, address_, greeting, kMostMemory, server_events_);
  fake().gids.clear();
  ASSERT_TRUE(run_until([&] { return server_events_.lost == 1; }));
  EXPECT_EQ(server_events_.refused, Refusal::busy);
}

}  // namespace
}  // namespace offload::comch
