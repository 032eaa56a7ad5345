#include <arpa/inet.h>
#include <linux/capability.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <string>
#include <thread>

#include "core/error.hpp"
#include "core/fd.hpp"
#include "tests/packets/card_station.hpp"
#include "tests/softcard/fixture.hpp"
#include "tests/support/thrown.hpp"

/// Queue pairs for raw packets and rules of the real libmlx5 on the software card. Threads take the
/// part of a kernel.
namespace offload::packets::test {
namespace {

using core::ErrorCode;
using rdma::mlx5::CardTraffic;
using softcard::test::held;
using support::thrown_by;

/// Returns the network interface of the card's port.
std::string interface_of_port() {
  std::string name;
  std::ifstream("/sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0") >> name;
  return name;
}

/// The Ethernet address of the port.
struct PortAddress {
  std::uint8_t bytes[6]{};

  PortAddress() {
    const core::Fd any(::socket(AF_INET, SOCK_DGRAM, 0));
    ifreq about{};
    std::strncpy(about.ifr_name, interface_of_port().c_str(), sizeof about.ifr_name - 1);
    EXPECT_EQ(::ioctl(any.get(), SIOCGIFHWADDR, &about), 0);
    std::memcpy(bytes, about.ifr_hwaddr.sa_data, sizeof bytes);
  }
};

/// A process's view of the card: its own context, with a port.
struct Process {
  explicit Process(CardTraffic traffic = CardTraffic::frames) : station(device, domain, traffic) {}
  Process& operator=(Process&&) = delete;

  [[nodiscard]] CardRule rule(const char* text, std::uint16_t priority = 0) const {
    return {station.port(), parse_rule(text, 1), priority};
  }

  rdma::DeviceContext device{"mlx5_0"};
  rdma::ProtectionDomain domain{device};
  CardStation station;
};

class RawPacketsTest : public testing::Test {
 protected:
  /// A frame for the card's own port.
  [[nodiscard]] Bytes frame(std::uint16_t port, const FrameKind& kind = {.payload = 64}) const {
    return frame_for(address_.bytes, port, kind);
  }
  /// Sends `frame` and then one that `rule` matches; returns whether the first one came to `to`
  /// before it. The card steers frames of one queue in their order.
  bool comes(Process& to, const Bytes& frame, const Bytes& sentinel) {
    EXPECT_TRUE(here_.station.send(frame));
    EXPECT_TRUE(here_.station.send(sentinel));
    bool came = false;
    for (;;) {
      const auto frames = to.station.take(1);
      if (frames.empty()) {
        ADD_FAILURE() << "the frame of the last rule did not come";
        return came;
      }
      for (const CameFrame& each : frames) {
        if (each.bytes == sentinel) return came;
        EXPECT_EQ(each.bytes, frame);
        came = true;
      }
    }
  }

  PortAddress address_;
  Process here_;
};

/// Each queue gets the frames of its rule, whole and in order, over many laps of all rings, and no
/// other.
TEST_F(RawPacketsTest, AFrameGetsToTheQueueOfItsRule) {
  Process one;
  Process other;
  const CardRule to_one = one.rule("udp dport 4000 to 0");
  const CardRule to_other = other.rule("udp dport 4001 to 0");
  constexpr std::uint32_t kRounds = 5 * CardStation::kFrames;
  for (std::uint32_t i = 0; i < kRounds; ++i) {
    const FrameKind kind{.is_v6 = i % 3 == 0, .payload = i * 7 % 1400};
    const Bytes first = frame(4000, kind);
    const Bytes second = frame(4001, kind);
    ASSERT_TRUE(here_.station.send(frame(4002, kind)));  // no rule matches
    ASSERT_TRUE(here_.station.send(first));
    ASSERT_TRUE(here_.station.send(second));
    const auto at_one = one.station.take(1);
    const auto at_other = other.station.take(1);
    ASSERT_EQ(at_one.size(), 1U) << i;
    ASSERT_EQ(at_other.size(), 1U) << i;
    ASSERT_EQ(at_one[0].bytes, first) << i;
    ASSERT_EQ(at_other[0].bytes, second) << i;
    ASSERT_TRUE(at_one[0].ip_is_right && at_one[0].transport_is_right) << i;
    ASSERT_NE(at_one[0].time, 0U);
  }
  EXPECT_TRUE(here_.station.take(0).empty());
}

TEST_F(RawPacketsTest, NothingComesWithoutARuleAndAfterItsEnd) {
  Process there;
  const CardRule last = there.rule("udp dport 9 to 0");
  const Bytes sentinel = frame(9);
  EXPECT_FALSE(comes(there, frame(4000), sentinel));
  {
    const CardRule rule = there.rule("udp dport 4000 to 0");
    EXPECT_TRUE(comes(there, frame(4000), sentinel));
  }
  EXPECT_FALSE(comes(there, frame(4000), sentinel));
}

TEST_F(RawPacketsTest, EachFieldOfARuleCounts) {
  struct Case {
    const char* rule;
    FrameKind matches;
    FrameKind others;
  };
  using kernels::packets::kTcp;
  using kernels::packets::kUdp;
  const Case cases[] = {
      {"udp dport 4000 to 0", {.payload = 9}, {.protocol = kTcp, .payload = 9}},
      {"tcp dport 4000 to 0", {.protocol = kTcp, .payload = 9}, {.payload = 9}},
      {"ip to 0", {.payload = 9}, {.is_v6 = true, .payload = 9}},
      {"ip6 to 0", {.is_v6 = true, .payload = 9}, {.payload = 9}},
      {"ip src 10.0.0.0/24 dst 10.0.0.1 to 0", {.payload = 9}, {.is_v6 = true, .payload = 9}},
      {"udp dst fd00::1 to 0", {.is_v6 = true, .payload = 9}, {.payload = 9}},
      {"icmp to 0", {.protocol = 1, .payload = 9}, {.protocol = kUdp, .payload = 9}},
      {"vlan 7 to 0", {.tags = 1, .payload = 9, .vlan = 7}, {.tags = 1, .payload = 9, .vlan = 8}},
      {"vlan 7 to 0", {.tags = 1, .payload = 9, .vlan = 7}, {.payload = 9}}};
  Process there;
  const CardRule last = there.rule("udp dport 9 to 0");
  const auto made = [this](const FrameKind& kind) {
    if (kind.protocol != 1) return frame(4000, kind);
    Bytes frame = FrameMaker::make(kind);
    std::memcpy(frame.data(), address_.bytes, sizeof address_.bytes);
    return frame;
  };
  for (const Case& each : cases) {
    const CardRule rule = there.rule(each.rule);
    EXPECT_TRUE(comes(there, made(each.matches), frame(9))) << each.rule;
    EXPECT_FALSE(comes(there, made(each.others), frame(9))) << each.rule;
  }
  for (const char* rule : {"udp sport 1 dport 4000 to 0", "ip dst 10.0.0.2 to 0",
                           "ip src 10.0.1.0/24 to 0", "udp dport 4001 to 0"}) {
    const CardRule other = there.rule(rule);
    EXPECT_FALSE(comes(there, frame(4000), frame(9))) << rule;
  }
}

TEST_F(RawPacketsTest, TheLowestPriorityNumberComesFirst) {
  Process one;
  Process other;
  const CardRule of_all = one.rule("udp to 0", 1);
  {
    const CardRule special = other.rule("udp dport 4000 to 0", 0);
    EXPECT_TRUE(here_.station.send(frame(4000)));
    EXPECT_EQ(other.station.take(1).size(), 1U);
    EXPECT_FALSE(comes(one, frame(4000), frame(9)));
    EXPECT_EQ(other.station.take(1).size(), 1U);
  }
  const CardRule later = other.rule("udp dport 4000 to 0", 2);
  EXPECT_TRUE(comes(one, frame(4000), frame(9)));
  EXPECT_TRUE(other.station.take(0).empty());
}

/// A thread answers in place, as a kernel does, with many frames under way.
TEST_F(RawPacketsTest, AThreadAnswersFrames) {
  constexpr std::uint32_t kCount = 1000;
  constexpr std::uint32_t kUnderWay = 16;
  Process there;
  const CardRule asked = there.rule("udp dport 4000 to 0");
  const CardRule answered = here_.rule("udp sport 4000 to 0");
  std::uint32_t answers = 0;
  std::thread answering([&] { answers = there.station.echo(4000, kCount); });
  std::uint32_t sent = 0;
  std::uint32_t came = 0;
  std::vector<bool> seen(kCount);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
  while (came < kCount && std::chrono::steady_clock::now() < deadline) {
    for (; sent < kCount && sent - came < kUnderWay; ++sent) {
      Bytes question = frame(4000);
      // The answer has the payload's bytes in reverse order.
      std::memcpy(&question[question.size() - sizeof sent], &sent, sizeof sent);
      std::memcpy(&question[6], address_.bytes, sizeof address_.bytes);
      const auto length = static_cast<std::uint32_t>(question.size());
      kernels::packets::write_udp_checksum(
          question.data(), kernels::packets::parse_headers(question.data(), length));
      ASSERT_TRUE(here_.station.send(question));
    }
    for (const CameFrame& each : here_.station.take(1)) {
      ++came;
      ASSERT_TRUE(each.transport_is_right);
      std::uint32_t number = 0;
      std::array<std::uint8_t, sizeof number> bytes;
      std::reverse_copy(&each.bytes[42], &each.bytes[42] + sizeof number, bytes.begin());
      std::memcpy(&number, bytes.data(), sizeof number);
      ASSERT_LT(number, kCount);
      ASSERT_FALSE(seen[number]) << number;
      seen[number] = true;
    }
  }
  answering.join();
  EXPECT_EQ(answers, kCount);
  EXPECT_EQ(came, kCount);
}

TEST_F(RawPacketsTest, TheCardWritesAndChecksChecksums) {
  Process there;
  const CardRule rule = there.rule("ip to 0");
  const Bytes right = frame(4000, {.payload = 33});
  Bytes wrong = right;
  wrong[24] ^= 0x55;  // of the IPv4 header
  wrong[40] ^= 0x55;  // of UDP
  ASSERT_TRUE(here_.station.send(wrong));
  ASSERT_TRUE(
      here_.station.send(wrong, kernels::rdma::kIpChecksum | kernels::rdma::kTransportChecksum));
  const auto came = there.station.take(2);
  ASSERT_EQ(came.size(), 2U);
  EXPECT_EQ(came[0].bytes, wrong);
  EXPECT_FALSE(came[0].ip_is_right);
  EXPECT_FALSE(came[0].transport_is_right);
  EXPECT_EQ(came[1].bytes, right);
  EXPECT_TRUE(came[1].ip_is_right);
  EXPECT_TRUE(came[1].transport_is_right);
}

/// A context gets its own frames only if it asks for them, as with a card.
TEST_F(RawPacketsTest, OwnFramesComeOnlyIfTheyAreWanted) {
  CardStation silent(here_.device, here_.domain);
  const CardRule rule(silent.port(), parse_rule("udp dport 4000 to 0", 1));
  CardStation wanting(here_.device, here_.domain, CardTraffic::frames_and_own);
  const CardRule other(wanting.port(), parse_rule("udp dport 4001 to 0", 1));
  ASSERT_TRUE(here_.station.send(frame(4000)));
  ASSERT_TRUE(here_.station.send(frame(4001)));
  EXPECT_EQ(wanting.take(1).size(), 1U);
  EXPECT_TRUE(silent.take(0).empty());
}

/// A frame for another machine is on the port's network interface.
TEST_F(RawPacketsTest, AFrameForAnotherMachineGoesToTheWire) {
  const core::Fd wire(::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(ETH_P_ALL)));
  sockaddr_ll interface {};
  interface.sll_family = AF_PACKET;
  interface.sll_protocol = htons(ETH_P_ALL);
  interface.sll_ifindex = static_cast<int>(::if_nametoindex(interface_of_port().c_str()));
  ASSERT_EQ(::bind(wire.get(), reinterpret_cast<const sockaddr*>(&interface), sizeof interface), 0);
  Process there;
  const CardRule rule = there.rule("udp to 0");
  constexpr std::uint8_t kElsewhere[6] = {2, 1, 2, 3, 4, 5};
  const Bytes away = frame_for(kElsewhere, 4000, {.payload = 200});
  EXPECT_FALSE(comes(there, away, frame(9)));
  const auto deadline = std::chrono::steady_clock::now() + softcard::test::kPatience;
  Bytes found;
  while (found != away && std::chrono::steady_clock::now() < deadline) {
    found.resize(2048);
    const auto length = ::recv(wire.get(), found.data(), found.size(), 0);
    found.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
  }
  EXPECT_EQ(found, away);
}

/// A queue pair for raw packets that libmlx5 itself posts to and polls.
class LibraryPair {
 public:
  LibraryPair() {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = 1;
    change(attributes, IBV_QP_STATE | IBV_QP_PORT);
    attributes.qp_state = IBV_QPS_RTR;
    change(attributes, IBV_QP_STATE);
    attributes.qp_state = IBV_QPS_RTS;
    change(attributes, IBV_QP_STATE);
  }

  void send(const Bytes& frame, unsigned flags) {
    std::memcpy(memory_.bytes().data(), frame.data(), frame.size());
    ibv_sge piece = memory_.piece(0, static_cast<std::uint32_t>(frame.size()));
    ibv_send_wr request{};
    request.sg_list = &piece;
    request.num_sge = 1;
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_SIGNALED | flags;
    ibv_send_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_send(pair_.get(), &request, &bad), 0);
    EXPECT_EQ(softcard::test::Pair::next(sent_.get()).status, IBV_WC_SUCCESS);
  }
  void post_receive() {
    ibv_sge piece = memory_.piece(kRoom, kRoom);
    ibv_recv_wr request{};
    request.sg_list = &piece;
    request.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    ASSERT_EQ(ibv_post_recv(pair_.get(), &request, &bad), 0);
  }
  ibv_wc next_came() { return softcard::test::Pair::next(came_.get()); }
  [[nodiscard]] Bytes received(std::uint32_t length) {
    const auto* const begin = reinterpret_cast<const std::uint8_t*>(&memory_.bytes()[kRoom]);
    return {begin, begin + length};
  }
  [[nodiscard]] ibv_qp* get() const { return pair_.get(); }

 private:
  static constexpr std::uint32_t kRoom = 2048;

  void change(ibv_qp_attr& attributes, int mask) {
    const int errnum = ibv_modify_qp(pair_.get(), &attributes, mask);
    EXPECT_EQ(errnum, 0) << std::strerror(errnum);
  }
  ibv_qp* make() {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = sent_.get();
    attributes.recv_cq = came_.get();
    attributes.qp_type = IBV_QPT_RAW_PACKET;
    attributes.cap = {16, 16, 1, 1, 0};
    return ibv_create_qp(domain_.get(), &attributes);
  }

  softcard::test::Handle<ibv_context> device_ = softcard::test::open_device();
  softcard::test::Handle<ibv_pd> domain_ =
      held(ibv_alloc_pd(device_.get()), ibv_dealloc_pd, "a domain");
  softcard::test::Memory memory_{domain_.get(), 2 * kRoom};
  softcard::test::Handle<ibv_cq> sent_ =
      held(ibv_create_cq(device_.get(), 64, nullptr, nullptr, 0), ibv_destroy_cq, "a queue");
  softcard::test::Handle<ibv_cq> came_ =
      held(ibv_create_cq(device_.get(), 64, nullptr, nullptr, 0), ibv_destroy_cq, "a queue");
  softcard::test::Handle<ibv_qp> pair_ = held(make(), ibv_destroy_qp, "a queue pair");
};

/// Device functions receive frames that libmlx5 posts, and libmlx5 receives theirs.
TEST_F(RawPacketsTest, UnderstandsLibmlx5) {
  LibraryPair library;
  Process there;
  const CardRule rule = there.rule("udp dport 4000 to 0");
  for (std::uint32_t i = 0; i < 40; ++i) {
    const Bytes right = frame(4000, {.payload = 33 * i});
    Bytes wrong = right;
    wrong[24] ^= 0x55;
    wrong[40] ^= 0x55;
    library.send(wrong, IBV_SEND_IP_CSUM);
    const auto came = there.station.take(1);
    ASSERT_EQ(came.size(), 1U) << i;
    ASSERT_EQ(came[0].bytes, right) << i;
  }
  auto flow = flow_of(parse_rule("udp dport 4001 to 0", 1), 0);
  const softcard::test::Handle<ibv_flow> to_library(
      ibv_create_flow(library.get(), reinterpret_cast<ibv_flow_attr*>(flow.data())),
      [](ibv_flow* each) { return ibv_destroy_flow(each); });
  ASSERT_NE(to_library, nullptr) << std::strerror(errno);
  for (std::uint32_t i = 0; i < 40; ++i) {
    const Bytes frame_to_library = frame(4001, {.payload = 31 * i});
    library.post_receive();
    ASSERT_TRUE(there.station.send(frame_to_library));
    const ibv_wc came = library.next_came();
    ASSERT_EQ(came.status, IBV_WC_SUCCESS) << i;
    ASSERT_EQ(came.byte_len, frame_to_library.size()) << i;
    ASSERT_NE(came.wc_flags & IBV_WC_IP_CSUM_OK, 0U) << i;
    ASSERT_EQ(library.received(came.byte_len), frame_to_library) << i;
  }
}

/// Takes CAP_NET_RAW from this thread as long as it lives.
class WithoutNetRaw {
 public:
  WithoutNetRaw() {
    EXPECT_EQ(::syscall(SYS_capget, &header_, before_.data()), 0);
    auto without = before_;
    without[0].effective &= ~(1U << CAP_NET_RAW);
    EXPECT_EQ(::syscall(SYS_capset, &header_, without.data()), 0);
  }
  ~WithoutNetRaw() { EXPECT_EQ(::syscall(SYS_capset, &header_, before_.data()), 0); }

 private:
  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> before_{};
};

TEST_F(RawPacketsTest, AMissingCapabilityIsNamed) {
  const WithoutNetRaw without;
  const auto of_port = thrown_by([] { Process(); });
  EXPECT_EQ(of_port.code(), ErrorCode::not_permitted);
  EXPECT_NE(std::string(of_port.what()).find("CAP_NET_RAW"), std::string::npos) << of_port.what();
  const auto of_rule = thrown_by([this] { static_cast<void>(here_.rule("udp to 0")); });
  EXPECT_EQ(of_rule.code(), ErrorCode::not_permitted);
  EXPECT_NE(std::string(of_rule.what()).find("CAP_NET_RAW"), std::string::npos) << of_rule.what();
}

TEST_F(RawPacketsTest, WhatTheCardRefusesIsAnError) {
  const auto error = thrown_by([this] { static_cast<void>(here_.rule("udp to 0", 16)); });
  EXPECT_EQ(error.cause().status, ENOSPC) << error.what();
  EXPECT_NE(std::string(error.what()).find("udp to 0"), std::string::npos) << error.what();
  const rdma::mlx5::CardQueuePair& pair = here_.station.port().queue_pair();
  ibv_flow_attr sniffer{};
  sniffer.type = IBV_FLOW_ATTR_SNIFFER;
  sniffer.size = sizeof sniffer;
  sniffer.port = 1;
  EXPECT_EQ(ibv_create_flow(pair.queue_pair().get(), &sniffer), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

/// As with a card, and unlike between connected queue pairs.
TEST_F(RawPacketsTest, FramesThatFindNoReceiveAreDropped) {
  Process there;
  const CardRule rule = there.rule("udp to 0");
  for (std::uint32_t i = 0; i < 3 * CardStation::kFrames; ++i) {
    ASSERT_TRUE(here_.station.send(frame(4000, {.payload = i})));
  }
  ASSERT_TRUE(here_.station.finish_sends());
  // All frames that were posted are filled, the oldest ones first, and the queue goes on.
  const auto came = there.station.take(CardStation::kFrames);
  ASSERT_EQ(came.size(), CardStation::kFrames);
  for (std::uint32_t i = 0; i < came.size(); ++i) {
    ASSERT_EQ(came[i].bytes, frame(4000, {.payload = i})) << i;
  }
  EXPECT_TRUE(comes(there, frame(4000), frame(9)));
}

/// The other guest of tests/softcard/packets_guests asks five times, each time again until it has
/// the answer, and ends with a frame of 1000 bytes.
TEST(RawPacketsWire, DatagramsOfAnotherMachineAreAnswered) {
  Process here;
  const CardRule rule = here.rule("udp dport 4000 to 0");
  constexpr auto kAll = std::numeric_limits<std::uint32_t>::max();
  EXPECT_GE(here.station.echo(4000, kAll, 1000, std::chrono::seconds(200)), 6U);
  EXPECT_TRUE(here.station.take(0).empty());
}

}  // namespace
}  // namespace offload::packets::test
