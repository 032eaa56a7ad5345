#include "packets/steering.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "packets/image.hpp"
#include "packets/port.hpp"
#include "packets/privileges.hpp"
#include "tests/packets/veth.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/thrown.hpp"

namespace offload::packets {
namespace {

using kernels::SingleLane;
using test::Bytes;
using test::make_datagram;
using test::Veth;

/// Datagrams from v1 to a socket of the kernel's own stack on v0, one after the other.
class StackTraffic {
 public:
  StackTraffic()
      : socket_(core::check_errno(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket")) {
    EXPECT_EQ(std::system("ip addr add 10.0.0.1/24 dev v0"), 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(9);
    core::check_errno(
        ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), "bind");
    const timeval limit{2, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }

  /// Returns whether a datagram gets through.
  bool passes(const Veth& veth) {
    const std::uint8_t number = sent_++;
    veth.write(make_datagram(9, {&number, 1}));
    std::uint8_t came = 0;
    return ::recv(socket_.get(), &came, 1, 0) == 1 && came == number;
  }

 private:
  core::Fd socket_;
  std::uint8_t sent_ = 0;
};

class SteeringTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!veth_.unavailable().empty()) GTEST_SKIP() << veth_.unavailable();
    if (!missing_privileges().empty()) GTEST_SKIP() << "unprivileged" << missing_privileges();
  }
  Veth veth_{2};
};

TEST_F(SteeringTest, CountsByRule) {
  const PortOptions options{.interface = "v0", .queues = 2};
  FrameMemory memory({.homes = homes_of(options), .frames_per_home = 256});
  Port port(memory, options);
  progress::Engine engine;
  port.connect(engine);
  port.steering().set_rules({parse_rule("udp dport 1-5 src 10.0.0.0/8 to drop", 2),
                             parse_rule("udp dport 6 to 1", 2), parse_rule("udp to stack", 2)});
  port.start();
  for (std::uint16_t to = 1; to <= 10; ++to) veth_.write(make_datagram(to, Bytes(58)));
  ASSERT_TRUE(support::eventually([&] {
    const auto counts = port.steering().counts();
    return counts[0].packets + counts[1].packets + counts[2].packets == 10;
  }));
  const auto counts = port.steering().counts();
  EXPECT_EQ(counts[0].rule, "udp dport 1-5 src 10.0.0.0/8 to drop");
  EXPECT_EQ(counts[0].packets, 5U);
  EXPECT_EQ(counts[0].bytes, 500U);
  EXPECT_EQ(counts[1].packets, 1U);
  EXPECT_EQ(counts[2].packets, 4U);
  EXPECT_EQ(counts[3].rule, "no rule");
  port.steering().set_rules({});
  EXPECT_EQ(port.steering().counts().at(0).bytes, 0U);
  veth_.write(make_datagram(1, Bytes(58)));
  EXPECT_TRUE(support::eventually([&] { return port.steering().counts().at(0).packets == 1; }));
  // Its counters are those of the first set.
  port.steering().set_rules({parse_rule("udp to drop", 2)});
  EXPECT_EQ(port.steering().counts().at(0).packets, 0U);
  EXPECT_EQ(support::thrown_by([&] {
              port.steering().set_rules(std::vector<Rule>(OFFLOAD_MOST_RULES + 1));
            }).code(),
            core::ErrorCode::invalid_value);
  port.stop();
}

TEST_F(SteeringTest, AnInterfaceHasOneProgram) {
  Steering first("v0", ::if_nametoindex("v0"));
  first.attach();
  Steering second("v0", ::if_nametoindex("v0"));
  const auto error = support::thrown_by([&] { second.attach(); });
  EXPECT_EQ(error.code(), core::ErrorCode::in_use);
  EXPECT_STREQ(error.what(), "v0 has an XDP program of another process (ip link show v0)");
  first.detach();
  second.attach();
  EXPECT_EQ(std::system("ip -d link show v0 | grep -q xdp"), 0);
}

/// Returns a frame with these tags, each of 16 bits of control.
Bytes tagged(std::initializer_list<std::uint32_t> tags) {
  Bytes frame = make_datagram(7, Bytes(20));
  Bytes bytes;
  for (const std::uint32_t tag : tags) {
    Bytes one(4);
    kernels::packets::store_16(one.data(), 0x8100);
    kernels::packets::store_16(one.data() + 2, tag);
    bytes.insert(bytes.end(), one.begin(), one.end());
  }
  frame.insert(frame.begin() + 12, bytes.begin(), bytes.end());
  return frame;
}

TEST_F(SteeringTest, LooksAtVlans) {
  const PortOptions options{.interface = "v0"};
  FrameMemory memory({.homes = homes_of(options), .frames_per_home = 64});
  Port port(memory, options);
  progress::Engine engine;
  port.connect(engine);
  port.steering().set_rules(
      {parse_rule("udp vlan 0 to drop", 1), parse_rule("udp vlan 7 to drop", 1)});
  port.start();
  veth_.write(tagged({}));
  veth_.write(tagged({0xe000}));  // a priority alone
  veth_.write(tagged({0x6007}));
  veth_.write(tagged({0, 7}));
  veth_.write(tagged({7, 8}));
  veth_.write(tagged({8}));
  ASSERT_TRUE(support::eventually([&] {
    const auto counts = port.steering().counts();
    return counts[0].packets + counts[1].packets + counts[2].packets == 6;
  }));
  EXPECT_EQ(port.steering().counts().at(0).packets, 2U);
  EXPECT_EQ(port.steering().counts().at(1).packets, 3U);
  port.stop();
}

TEST_F(SteeringTest, IsChangedWhilePacketsCome) {
  constexpr int kChanges = 50;
  const PortOptions options{.interface = "v0", .queues = 2};
  FrameMemory memory({.homes = homes_of(options), .frames_per_home = 64});
  Port port(memory, options);
  progress::Engine engine;
  port.connect(engine);
  const Port* const ports[] = {&port};
  const HostImage image(memory, ports);
  port.start();
  StackTraffic stack;
  ASSERT_TRUE(stack.passes(veth_));

  std::atomic<unsigned> passed{0};
  std::atomic<bool> lost{false};
  std::jthread load([&](const std::stop_token& stop) {
    while (!stop.stop_requested() && !lost) {
      if (stack.passes(veth_)) {
        ++passed;
      } else {
        lost = true;
      }
    }
  });
  std::vector<std::uint32_t> received(image.queues().size());
  for (int i = 0; i < kChanges && !lost; ++i) {
    const unsigned target = static_cast<unsigned>(i) % 2;
    port.steering().set_rules({parse_rule("udp dport 7 to " + std::to_string(target), 2)});
    for (int k = 0; k < 3; ++k) veth_.write(make_datagram(7, Bytes(8)));
    std::uint32_t right = 0;
    const bool all = support::eventually(
        [&] {
          for (std::size_t q = 0; q < image.queues().size(); ++q) {
            const auto& queue = image.queues()[q];
            const auto batch =
                kernels::packets::receive(SingleLane{}, queue, received[q], 8, {10'000});
            kernels::packets::finish(
                SingleLane{}, queue, queue, received[q], batch, {1'000'000},
                [](kernels::packets::EthernetFrame&) { return kernels::packets::Verdict::drop; });
            if (port.queues()[q].number == target) {
              right += batch.count;
            } else {
              EXPECT_EQ(batch.count, 0U) << "change " << i;
            }
          }
          return right >= 3;
        },
        [] {});
    ASSERT_TRUE(all) << "change " << i;
    ASSERT_EQ(right, 3U);
  }
  load.request_stop();
  load.join();
  EXPECT_FALSE(lost);
  EXPECT_GT(passed, 0U);
  RecordProperty("passed", static_cast<int>(passed));
  port.stop();
}

}  // namespace
}  // namespace offload::packets
