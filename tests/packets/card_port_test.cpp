#include "packets/card_port.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "softcard/card/card.hpp"
#include "tests/packets/card_station.hpp"
#include "tests/rdma/fake_fixture.hpp"
#include "tests/rdma/fake_mlx5.hpp"
#include "tests/support/thrown.hpp"

/// Ports of a card, with the fake libmlx5 and the model of a card; tests/softcard has the real
/// libmlx5.
namespace offload::packets::test {
namespace {

using core::ErrorCode;
using rdma::mlx5::CardTraffic;
using rdma::test::fake;
using support::thrown_by;

constexpr std::uint8_t kEthernet[6] = {2, 0, 0, 0, 0, 9};

int flow_error = 0;
std::vector<std::vector<std::byte>> flows;  // of the rules that were made
void (*extend_before)(verbs_context& context) = nullptr;

ibv_flow* create_flow(ibv_qp* pair, ibv_flow_attr* attributes) {
  if (flow_error != 0) {
    errno = flow_error;
    return nullptr;
  }
  const auto* const begin = reinterpret_cast<const std::byte*>(attributes);
  flows.emplace_back(begin, begin + attributes->size);
  ++fake().open["flow"];
  return new ibv_flow{0, pair->context, 0};
}

int destroy_flow(ibv_flow* flow) {
  --fake().open["flow"];
  delete flow;
  return 0;
}

struct FlowFunctions : rdma::FakeDeviceTest {
  FlowFunctions() {
    rdma::test::reset_fake_mlx5();
    flow_error = 0;
    flows.clear();
    extend_before = fake().extend;
    fake().extend = [](verbs_context& context) {
      extend_before(context);
      context.ibv_create_flow = create_flow;
      context.ibv_destroy_flow = destroy_flow;
    };
  }
};

class CardPortTest : public FlowFunctions {
 protected:
  CardPortTest() {
    card_.set_port_address({2, 0, 0, 0, 0, 9});
    fake().make_key = [this](void* address, std::size_t length) {
      return card_.register_memory({static_cast<std::byte*>(address), length}, {});
    };
  }
  /// Makes the queue pair of a port known to the card, as the program `softcard` does.
  void add(const CardPort& port) {
    const rdma::QueuePairMemory& host = port.queue_pair().host();
    rdma::model::PairLayout layout;
    layout.number = host.send.number;
    layout.sends = host.send.ring;
    layout.send_record = host.send.record;
    layout.receives = {reinterpret_cast<const std::byte*>(host.receive.ring), host.receive.entries,
                       4, false, host.receive.record};
    layout.sent = 2 * host.send.number;
    layout.came = layout.sent + 1;
    layout.format = rdma::EntryFormat::raw_packet;
    layout.owner = host.send.number;
    card_.add_completions(host.send.completions, {.checks_overrun = true, .number = layout.sent});
    card_.add_completions(host.receive.completions,
                          {.checks_overrun = true, .number = layout.came});
    card_.add(layout);
    card_.change(layout.number, {.state = rdma::model::State::sending});
    ports_.push_back(&port);
  }
  void steer_all_to(const CardPort& port) {
    card_.flow_rules().add(1, {.pair = port.queue_pair().queue_pair().qp_num()});
  }
  std::function<void()> look() {
    return [this] {
      for (const CardPort* const port : ports_) {
        const std::uint64_t doorbell = *port->queue_pair().card_register();
        if (doorbell == 0) continue;
        EXPECT_TRUE(card_.ring(port->queue_pair().queue_pair().qp_num(), doorbell,
                               rdma::model::SendRegister::with_record));
      }
      card_.progress();
      EXPECT_EQ(card_.fault(), "");
    };
  }

  rdma::model::Card card_;
  std::vector<const CardPort*> ports_;
  rdma::DeviceContext device_{"fake0"};
  rdma::ProtectionDomain domain_{device_};
};

TEST_F(CardPortTest, FramesComeOverManyLaps) {
  CardStation here(device_, domain_, CardTraffic::frames, look());
  CardStation there(device_, domain_, CardTraffic::frames, look());
  add(here.port());
  add(there.port());
  steer_all_to(there.port());
  for (std::uint32_t i = 0; i < 20 * CardStation::kFrames; ++i) {
    const Bytes frame = frame_for(kEthernet, 4000, {.payload = i % 1400});
    ASSERT_TRUE(here.send(frame));
    const auto came = there.take(1);
    ASSERT_EQ(came.size(), 1U) << i;
    ASSERT_EQ(came[0].bytes, frame) << i;
    ASSERT_TRUE(came[0].transport_is_right) << i;
  }
  EXPECT_EQ(card_.dropped(), 0U);
}

TEST_F(CardPortTest, AnImageHasAllFramesOfEachHome) {
  const CardStation station(device_, domain_);
  const HostCardQueue made(station.port());
  const kernels::packets::CardQueue& queue = made.queue();
  constexpr std::uint32_t kCount = CardStation::kFrames;
  for (std::uint64_t home = 0; home < 2; ++home) {
    const auto& [ring, order] = queue.frames.homes[home];
    EXPECT_EQ(ring.mask, kCount - 1);
    EXPECT_EQ(*ring.producer, kCount);
    EXPECT_EQ(*ring.consumer, 0U);
    EXPECT_EQ(*ring.flags, 0U);
    for (std::uint64_t i = 0; i < kCount; ++i) {
      EXPECT_EQ(ring.entries[i], (home * kCount + i) * queue.frames.frame_bytes);
    }
    EXPECT_EQ(order->reserved, kCount);
    EXPECT_EQ(order->published, kCount);
    EXPECT_EQ(order->taken, 0U);
    EXPECT_EQ(order->taking, 0U);
  }
  EXPECT_EQ(queue.fill.ring.entries, queue.frames.homes[0].ring.entries);
  EXPECT_EQ(queue.free_frames.ring.entries, queue.frames.homes[1].ring.entries);
}

TEST_F(CardPortTest, ADeviceOfTheFirstKindWantsTheHeaderInline) {
  const CardStation newer(device_, domain_);
  EXPECT_EQ(newer.queue().inline_bytes, 18U);  // the fake has no device number
  for (const auto& [part, bytes] : {std::pair{4118U, 18U}, std::pair{4119U, 0U}}) {
    fake().device.vendor_part_id = part;
    const rdma::DeviceContext device("fake0");
    const rdma::ProtectionDomain domain(device);
    EXPECT_EQ(CardStation(device, domain).queue().inline_bytes, bytes) << part;
  }
}

TEST_F(CardPortTest, ARuleIsMadeAndEndsWithItsObject) {
  const CardStation station(device_, domain_);
  const Rule rule = parse_rule("udp dport 4000 to 0", 1);
  {
    errno = EPERM;  // of an earlier call
    const CardRule made(station.port(), rule, 2);
    ASSERT_EQ(flows.size(), 1U);
    EXPECT_EQ(flows[0], flow_of(rule, 2));
    EXPECT_EQ(fake().open["flow"], 1);
  }
  EXPECT_EQ(fake().open["flow"], 0);
  flow_error = EPERM;
  auto error = thrown_by([&] { CardRule(station.port(), rule); });
  EXPECT_EQ(error.code(), ErrorCode::not_permitted);
  EXPECT_NE(std::string(error.what()).find("CAP_NET_RAW"), std::string::npos);
  flow_error = ENOSPC;
  error = thrown_by([&] { CardRule(station.port(), rule); });
  EXPECT_EQ(error.cause().status, ENOSPC);
  EXPECT_NE(error.code(), ErrorCode::not_permitted);
  EXPECT_NE(std::string(error.what()).find(rule.text), std::string::npos);
}

TEST_F(CardPortTest, FramesOfAnotherNumberOfHomesAreRefused) {
  const FrameMemory memory({.homes = 3, .frames_per_home = 64});
  EXPECT_EQ(thrown_by([&] { CardPort::ring_bytes(memory); }).code(), ErrorCode::invalid_value);
  const FrameMemory many({.homes = 2, .frames_per_home = 32768});
  EXPECT_EQ(thrown_by([&] { CardPort::ring_bytes(many); }).code(), ErrorCode::invalid_value);
  // The rings of a send queue of 32768 blocks of 64 bytes, and what it receives, fit.
  const FrameMemory most({.homes = 2, .frames_per_home = 16384});
  EXPECT_GT(CardPort::ring_bytes(most), std::size_t{32768} * 64);
}

}  // namespace
}  // namespace offload::packets::test
