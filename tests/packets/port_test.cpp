#include "packets/port.hpp"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <csignal>
#include <numeric>
#include <set>

#include "kernels/group.hpp"
#include "packets/image.hpp"
#include "packets/privileges.hpp"
#include "tests/packets/veth.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/thrown.hpp"

/// Ports on veth, over which the kernel carries frames as over any wire.
namespace offload::packets {
namespace {

using kernels::SingleLane;
using kernels::packets::EthernetFrame;
using kernels::packets::FrameBatch;
using kernels::packets::Queue;
using kernels::packets::Verdict;
using kernels::packets::WaitLimit;
using test::Bytes;
using test::make_datagram;
using test::Veth;

constexpr WaitLimit kBriefly{1'000'000};
constexpr WaitLimit kAtOnce{0};

/// A port on v0 with its queues, and rules.
struct TestPort {
  explicit TestPort(const PortOptions& options, const std::vector<std::string>& rules = {},
                    std::uint32_t frames = 64)
      : memory({.homes = homes_of(options), .frames_per_home = frames}),
        port(memory, options, [this](Port&, const core::Error& error) { gone = error.what(); }) {
    std::vector<Rule> read;
    for (const auto& text : rules) read.push_back(parse_rule(text, options.queues));
    port.steering().set_rules(read);
    port.connect(engine);
    const Port* const ports[] = {&port};
    image.emplace(memory, ports);
    received.resize(image->queues().size());
    port.start();
  }
  ~TestPort() {
    if (port.state() == progress::Context::State::running) port.stop();
  }

  /// Answers the packets of each queue by `decide`; returns their number.
  template <class Decide>
  std::uint32_t serve(std::size_t i, const Decide& decide) {
    const Queue& queue = image->queues()[i];
    const FrameBatch batch =
        kernels::packets::receive(SingleLane{}, queue, received[i], 32, kBriefly);
    const auto result =
        kernels::packets::finish(SingleLane{}, queue, queue, received[i], batch, kBriefly, decide);
    EXPECT_EQ(result, kernels::packets::WorkResult::done);
    engine.progress();
    kernels::packets::recycle(SingleLane{}, queue.frames, queue.completions, kAtOnce);
    return batch.count;
  }

  progress::Engine engine;
  FrameMemory memory;
  Port port;
  std::optional<HostImage> image;
  std::vector<std::uint32_t> received;
  std::string gone;
};

Verdict echo(EthernetFrame& packet) {
  const auto headers = kernels::packets::parse_frame(packet.data, packet.length);
  return kernels::packets::make_udp_echo(packet.data, headers, 0) ? Verdict::send : Verdict::drop;
}

/// ctest runs each test in a separate process, which has a separate namespace.
class PortTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!veth_.unavailable().empty()) GTEST_SKIP() << veth_.unavailable();
    if (!missing_privileges().empty()) GTEST_SKIP() << "unprivileged" << missing_privileges();
  }

  /// Sends datagrams of all lengths to the port, and checks that each comes back reversed.
  void echo_many(TestPort& setup, std::uint16_t port, std::size_t queue, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      Bytes payload(1 + i * 7 % 1400);
      std::iota(payload.begin(), payload.end(), static_cast<std::uint8_t>(i));
      veth_.write(make_datagram(port, payload));
      ASSERT_TRUE(support::eventually([&] { return setup.serve(queue, echo) == 1; }, [] {}));
      const Bytes answer = veth_.read();
      const auto headers =
          kernels::packets::parse_frame(answer.data(), static_cast<std::uint32_t>(answer.size()));
      ASSERT_EQ(headers.error, kernels::packets::FrameError::none);
      ASSERT_EQ(headers.source_port, port);
      ASSERT_EQ(headers.destination_port, 1000U);
      const Bytes reversed(payload.rbegin(), payload.rend());
      ASSERT_EQ(Bytes(answer.begin() + headers.payload, answer.begin() + headers.end), reversed);
    }
  }

  Veth veth_;
};

TEST_F(PortTest, AnswersWhatARuleGivesIt) {
  TestPort setup({.interface = "v0"}, {"udp dport 7 to 0"});
  // There are many laps of the rings, which have 64 frames.
  echo_many(setup, 7, 0, 500);
  const auto counts = setup.port.steering().counts();
  EXPECT_EQ(counts.at(0).packets, 500U);
  EXPECT_EQ(setup.port.statistics().invalid_sends, 0U);
  EXPECT_EQ(setup.port.statistics().dropped, 0U);
  EXPECT_GT(setup.port.wake_ups(), 0U);
  setup.port.stop();
  EXPECT_EQ(support::thrown_by([&] { setup.port.start(); }).code(), core::ErrorCode::bad_state);
}

TEST_F(PortTest, ReceivesIntoEachFrameOfItsHome) {
  const TestPort setup({.interface = "v0"});
  const auto& ring = setup.port.queues()[0].socket.fill();
  const std::uint64_t first = std::uint64_t{setup.port.hardware_queues()[0].home} * 64;
  EXPECT_EQ(*ring.producer, 64U);
  for (std::uint64_t i = 0; i < 64; ++i) {
    EXPECT_EQ(ring.entries[i], (first + i) * setup.memory.sizes().frame_bytes);
  }
}

TEST_F(PortTest, LeavesItsEngineWithItsObject) {
  progress::Engine engine;
  {
    const PortOptions options{.interface = "v0"};
    FrameMemory memory({.homes = homes_of(options), .frames_per_home = 64});
    Port port(memory, options);
    port.connect(engine);
    port.start();
    EXPECT_EQ(engine.progress(), false);
  }
  EXPECT_EQ(engine.progress(), false);
}

TEST_F(PortTest, CountsWhatItHasNoFrameFor) {
  const support::LogCapture log;
  TestPort setup({.interface = "v0", .queues = 2}, {"udp dport 7 to 0", "udp dport 8 to 1"});
  EXPECT_TRUE(log.has("info: port 'v0': 2 queues on 1 of the interface, ")) << log.text();
  // Both queues receive into the same 64 frames.
  for (std::uint16_t i = 0; i < 70; ++i)
    veth_.write(make_datagram(static_cast<std::uint16_t>(7 + i % 2), Bytes(8)));
  ASSERT_TRUE(support::eventually([&] {
    const auto counts = setup.port.steering().counts();
    return counts[0].packets == 35 && counts[1].packets == 35;
  }));
  const auto statistics = setup.port.statistics();
  EXPECT_EQ(statistics.dropped, 6U);
  EXPECT_EQ(statistics.no_frames, 6U);
  EXPECT_EQ(statistics.ring_full, 0U);
  EXPECT_EQ(setup.serve(0, echo), 32U);
  EXPECT_EQ(setup.serve(1, echo), 32U);
}

TEST_F(PortTest, IsWokenByThoseWhoSendIfItsEngineIsNotToWakeTheDriver) {
  TestPort setup({.interface = "v0", .wakes_driver = false});
  EXPECT_FALSE(setup.port.wake(0));
  const Bytes frame = make_datagram(9, Bytes{1});
  const auto sent = kernels::packets::send_new(SingleLane{}, setup.image->queues()[0], 1, kBriefly,
                                               [&](std::uint8_t* bytes, std::uint32_t) {
                                                 std::memcpy(bytes, frame.data(), frame.size());
                                                 return static_cast<std::uint32_t>(frame.size());
                                               });
  ASSERT_EQ(sent, 1U);
  for (int i = 0; i < 3; ++i) setup.engine.progress();
  EXPECT_EQ(setup.port.wake_ups(), 0U);
  EXPECT_TRUE(setup.port.wake(0));
  EXPECT_EQ(setup.port.wake_ups(), 1U);
  EXPECT_EQ(veth_.read(), frame);
  EXPECT_FALSE(setup.port.wake(0));
  EXPECT_EQ(setup.port.wake_ups(), 1U);
}

TEST_F(PortTest, AnImageHasEachPartOnce) {
  using kernels::packets::FrameRing;
  using kernels::packets::RingOrder;
  const PortOptions options{.interface = "v0", .queues = 2};
  FrameMemory memory({.homes = 3, .frames_per_home = 64});
  const Port port(memory, options);
  const Port* const ports[] = {&port};
  const Image image(memory, ports);
  ASSERT_EQ(image.queue_count(), 2U);
  const auto whole_lines = [](std::size_t bytes) { return (bytes + 63) / 64 * 64; };
  constexpr std::size_t kOrders = 6;  // of fill and completions, and of each queue two
  EXPECT_EQ(image.bytes(), kOrders * 64 + whole_lines(3 * sizeof(FrameRing)) +
                               whole_lines(2 * sizeof(Queue)) +
                               2 * (sizeof(RingWords) + 64 * sizeof(std::uint64_t)));
  const HostImage made(memory, ports);
  std::set<const RingOrder*> orders;
  const auto expect_order = [&](const RingOrder* order, std::uint64_t published) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(order) % 64, 0U);
    EXPECT_EQ(order->reserved, published);
    EXPECT_EQ(order->published, published);
    EXPECT_EQ(order->taken, 0U);
    EXPECT_EQ(order->taking, 0U);
    orders.insert(order);
  };
  const auto expect_same = [](const auto& ring, const auto& of_socket) {
    EXPECT_EQ(ring.entries, of_socket.entries);
    EXPECT_EQ(ring.producer, of_socket.producer);
    EXPECT_EQ(ring.consumer, of_socket.consumer);
    EXPECT_EQ(ring.flags, of_socket.flags);
    EXPECT_EQ(ring.mask, of_socket.mask);
  };
  const Socket& first = port.queues()[0].socket;
  for (std::size_t i = 0; i < 2; ++i) {
    const Queue& queue = made.queues()[i];
    const Port::PortQueue& of_port = port.queues()[i];
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&queue) % alignof(Queue), 0U);
    expect_same(queue.receive, of_port.socket.receive());
    expect_same(queue.send, of_port.socket.send());
    expect_order(queue.send_order, 0);
    expect_same(queue.completions.ring, first.completions());
    expect_order(queue.completions.order, 0);
    EXPECT_EQ(queue.completions.order, made.queues()[0].completions.order);
    const auto& free_ring = queue.free_frames.ring;
    expect_order(queue.free_frames.order, 64);
    EXPECT_EQ(free_ring.mask, 63U);
    EXPECT_EQ(*free_ring.producer, 64U);
    EXPECT_EQ(*free_ring.consumer, 0U);
    EXPECT_EQ(*free_ring.flags, 0U);
    for (std::uint64_t frame = 0; frame < 64; ++frame) {
      EXPECT_EQ(free_ring.entries[frame], (of_port.home * 64 + frame) * memory.sizes().frame_bytes);
    }
    EXPECT_EQ(reinterpret_cast<std::byte*>(queue.frames.bytes), memory.bytes().data());
    EXPECT_EQ(queue.frames.frame_bytes, memory.sizes().frame_bytes);
    EXPECT_EQ(queue.frames.frames_per_home, 64U);
    EXPECT_EQ(queue.frames.home_count, 3U);
    const FrameRing& home = queue.frames.homes[of_port.home];
    expect_same(home.ring, free_ring);
    EXPECT_EQ(home.order, queue.free_frames.order);
  }
  const FrameRing& fill = made.queues()[0].frames.homes[port.hardware_queues()[0].home];
  expect_same(fill.ring, first.fill());
  expect_order(fill.order, 64);
  EXPECT_EQ(orders.size(), kOrders);
}

TEST_F(PortTest, AnImageIsOfAllItsPagesAndPorts) {
  const PortOptions options{.interface = "v0", .queues = 2};
  FrameMemory memory({.homes = homes_of(options) + 1, .frames_per_home = 64});
  const Port port(memory, options);
  const Port* const ports[] = {&port};
  EXPECT_EQ(support::thrown_by([&] { const Image image(memory, ports); }).code(),
            core::ErrorCode::invalid_value);
  // The frames, four rings of the first socket, and two of the second.
  const auto pages = pages_of(memory, ports);
  ASSERT_EQ(pages.size(), 7U);
  EXPECT_EQ(pages[0].data(), memory.bytes().data());
  EXPECT_EQ(pages[1].data(), port.queues()[0].socket.mappings()[0].data());
  EXPECT_EQ(pages[6].data(), port.queues()[1].socket.mappings()[1].data());
}

TEST_F(PortTest, SaysWhyADriverRefusesItsProgram) {
  ASSERT_EQ(std::system("ip link set v1 mtu 9000 && ip link set v0 mtu 9000"), 0);
  const auto error = support::thrown_by([] { const TestPort setup({.interface = "v0"}); });
  EXPECT_EQ(error.code(), core::ErrorCode::not_supported);
  const std::string text = error.what();
  EXPECT_TRUE(text.starts_with("attaching the XDP program to v0: ")) << text;
  EXPECT_NE(text.find("MTU"), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with(" (" + core::describe_errno(error.system_errno()) + ")")) << text;
}

TEST_F(PortTest, HasAQueueForEachRuleThatNamesIt) {
  TestPort setup({.interface = "v0", .queues = 3}, {"udp dport 7 to 2", "udp dport 8 to 0"});
  echo_many(setup, 7, 2, 100);
  echo_many(setup, 8, 0, 100);
  EXPECT_EQ(setup.serve(1, echo), 0U);
}

TEST_F(PortTest, SendsByItself) {
  TestPort setup({.interface = "v0"});
  const Queue& queue = setup.image->queues()[0];
  std::uint8_t number = 0;
  for (int i = 0; i < 200; ++i) {
    const auto sent = kernels::packets::send_new(
        SingleLane{}, queue, 1, kBriefly, [&](std::uint8_t* bytes, std::uint32_t) {
          const Bytes frame = make_datagram(9, Bytes{number++});
          std::memcpy(bytes, frame.data(), frame.size());
          return static_cast<std::uint32_t>(frame.size());
        });
    ASSERT_EQ(sent, 1U);
    setup.engine.progress();
    const Bytes frame = veth_.read();
    ASSERT_EQ(frame.size(), 43U);
    ASSERT_EQ(frame[42], static_cast<std::uint8_t>(number - 1));
  }
  // No packet is lost if positions are given up.
  const auto position = kernels::packets::reserve(SingleLane{}, *queue.send_order, 1);
  kernels::packets::send_at(SingleLane{}, queue, position, true,
                            kernels::packets::nothing_to_send(), kBriefly);
  setup.engine.progress();
  EXPECT_TRUE(support::eventually([&] {
    setup.engine.progress();
    return setup.port.statistics().invalid_sends == 1;
  }));
}

TEST_F(PortTest, ForwardsBetweenPortsWithoutACopy) {
  ASSERT_EQ(std::system("ip link add w0 type veth peer name w1 && ip link set w0 up && "
                        "ip link set w1 up"),
            0);
  const PortOptions in_options{.interface = "v0"};
  const PortOptions out_options{.interface = "w0"};
  progress::Engine engine;
  FrameMemory memory({.homes = 4, .frames_per_home = 64});
  Port in(memory, in_options);
  Port out(memory, out_options);
  in.steering().set_rules({parse_rule("udp to 0", 1)});
  for (Port* const port : {&in, &out}) port->connect(engine);
  const Port* const ports[] = {&in, &out};
  const HostImage image(memory, ports);
  in.start();
  out.start();
  const core::Fd other(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL)));
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(::if_nametoindex("w1"));
  ASSERT_EQ(::bind(other.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const Queue& from = image.queues()[0];
  const Queue& to = image.queues()[1];
  std::uint32_t received = 0;
  // There are more packets than frames of the first port: the frames are returned.
  for (unsigned i = 0; i < 300; ++i) {
    const Bytes payload{static_cast<std::uint8_t>(i), 1, 2, 3};
    const Bytes sent = make_datagram(7, payload);
    veth_.write(sent);
    ASSERT_TRUE(support::eventually(
        [&] {
          const FrameBatch batch =
              kernels::packets::receive(SingleLane{}, from, received, 8, kBriefly);
          kernels::packets::finish(SingleLane{}, from, to, received, batch, kBriefly,
                                   [](EthernetFrame&) { return Verdict::send; });
          engine.progress();
          return batch.count != 0;
        },
        [] {}));
    Bytes came(2048);
    for (bool is_it = false; !is_it;) {
      pollfd readable{other.get(), POLLIN, 0};
      ASSERT_EQ(::poll(&readable, 1, 5000), 1) << i;
      const auto bytes = ::recv(other.get(), came.data(), came.size(), 0);
      is_it = Bytes(came.begin(), came.begin() + bytes) == sent;
    }
    kernels::packets::recycle(SingleLane{}, to.frames, to.completions, kAtOnce);
  }
  out.stop();
  in.stop();
}

TEST_F(PortTest, LeavesTheInterfaceAsItWas) {
  const auto has_program = [] { return std::system("ip -d link show v0 | grep -q xdp") == 0; };
  {
    TestPort setup({.interface = "v0"}, {"udp to 0"});
    EXPECT_TRUE(has_program());
    EXPECT_EQ(support::thrown_by([] { TestPort second({.interface = "v0"}); }).code(),
              core::ErrorCode::in_use);
    setup.port.stop();
    EXPECT_FALSE(has_program());
  }
  // Nor does a process that is killed leave anything behind.
  support::ChildProcess child([](int socket) {
    TestPort setup({.interface = "v0"}, {"udp to 0"});
    const char ready = 1;
    if (::write(socket, &ready, 1) != 1) return 1;
    ::raise(SIGKILL);
    return 0;
  });
  char ready = 0;
  ASSERT_EQ(::read(child.socket(), &ready, 1), 1);
  const int status = child.wait();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_TRUE(support::eventually([&] { return !has_program(); }));
  TestPort again({.interface = "v0"}, {"udp dport 7 to 0"});
  echo_many(again, 7, 0, 3);
}

TEST_F(PortTest, OutlivesAnInterfaceThatGoesDown) {
  const support::LogCapture log;
  TestPort setup({.interface = "v0"}, {"udp dport 7 to 0"});
  echo_many(setup, 7, 0, 3);
  ASSERT_EQ(std::system("ip link set v0 down"), 0);
  const auto says = [&](const std::string& text) {
    return support::eventually([&] {
      setup.serve(0, echo);
      return log.has("port 'v0': the interface is " + text);
    });
  };
  EXPECT_TRUE(says("down; packets wait until it is up again")) << log.text();
  EXPECT_FALSE(log.has("the interface is up again"));
  ASSERT_EQ(std::system("ip link set v0 up"), 0);
  EXPECT_TRUE(says("up again\n")) << log.text();
  // The port checks for it at most once a second.
  ASSERT_TRUE(support::eventually([&] {
    std::uint8_t byte = 1;
    veth_.write(make_datagram(7, {&byte, 1}));
    setup.serve(0, echo);
    return !veth_.read().empty();
  }));
  EXPECT_EQ(setup.gone, "");
}

TEST_F(PortTest, SaysThatItsInterfaceIsGone) {
  TestPort setup({.interface = "v0"}, {"udp to 0"});
  const auto turn = [&] {
    setup.engine.run_once(core::Clock::now() + std::chrono::milliseconds(10));
  };
  veth_.write(make_datagram(7, Bytes(8)));
  ASSERT_TRUE(support::eventually([&] {
    turn();
    return setup.serve(0, echo) == 1;
  }));
  turn();
  EXPECT_EQ(setup.gone, "") << "a packet is no error";
  ASSERT_EQ(std::system("ip link del v0"), 0);
  EXPECT_TRUE(support::eventually([&] {
    turn();
    return !setup.gone.empty();
  }));
  EXPECT_EQ(setup.gone, "port 'v0': the interface is gone");
}

TEST_F(PortTest, SaysWhatIsWrong) {
  const auto error_of = [](const PortOptions& options) {
    return support::thrown_by([&] {
      FrameMemory memory({.homes = 2, .frames_per_home = 64});
      const Port port(memory, options);
    });
  };
  EXPECT_EQ(error_of({.interface = "none"}).code(), core::ErrorCode::not_found);
  for (const std::uint32_t queue : {5U, 63U}) {
    const auto error = error_of({.interface = "v0", .hardware_queues = {queue}});
    EXPECT_EQ(error.code(), core::ErrorCode::invalid_value);
    EXPECT_EQ(error.what(), "binding to queue " + std::to_string(queue) +
                                " of v0: Invalid argument; ethtool -l v0 shows how many queues the "
                                "interface has");
    EXPECT_EQ(error.system_errno(), EINVAL);
  }
  EXPECT_STREQ(error_of({.interface = "v0", .hardware_queues = {64}}).what(),
               "queue 64 of v0: at most 63 are allowed");
  EXPECT_EQ(error_of({.interface = "v0", .queues = 2}).code(), core::ErrorCode::full);
  for (const std::uint32_t queues : {0U, 17U}) {
    EXPECT_EQ(error_of({.interface = "v0", .queues = queues}).code(),
              core::ErrorCode::invalid_value);
  }
  EXPECT_EQ(homes_of({.interface = "v0", .queues = 16}), 17U);
  EXPECT_EQ(homes_of({.interface = "v0", .hardware_queues = {3, 4, 5}, .queues = 2}), 9U);
}

}  // namespace
}  // namespace offload::packets
