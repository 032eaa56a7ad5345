#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/kernels/bodies/runner_suite.hpp"
#include "tests/kernels/packets/card_wire.hpp"
#include "tests/kernels/packets/frame_maker.hpp"
#include "tests/kernels/packets/queue_body.hpp"
#include "tests/kernels/packets/request_frame.hpp"
#include "tests/kernels/packets/wire.hpp"

/// Tests the device functions of both kinds of queues with threads, warps and blocks, and with a
/// wire behind the queue that checks every byte. A setup selects where the groups run, and the
/// wire.
namespace offload::kernels::packets::test {

/// Selects groups of the runner, with AF_XDP's rings.
template <class Groups>
struct WithRings {
  using Runner = Groups;
  using Wire = RingWire<Groups>;
  static Wire* make(std::uint32_t frames) { return new Wire(frames); }
};
/// Selects a card that needs nothing inline, or the Ethernet header with a tag; `seed` selects its
/// rudeness.
template <class Groups, std::uint32_t inline_bytes,
          std::uint32_t seed = rdma::test::ModelCard::kPolite>
struct WithCard {
  using Runner = Groups;
  using Wire = CardWire<Groups>;
  static Wire* make(std::uint32_t frames) { return new Wire(frames, inline_bytes, seed); }
};

/// Words that groups and the host share, zero at first.
template <class Place>
class Shared {
 public:
  explicit Shared(std::size_t bytes) : memory_(bytes) {}
  template <class T>
  [[nodiscard]] T* as() const {
    return reinterpret_cast<T*>(memory_.data());
  }

 private:
  typename Place::Memory memory_;
};

inline Bytes packet_of(std::uint32_t number) {
  Bytes packet(80);
  packet.resize(write_packet(packet.data(), number));
  return packet;
}
inline std::uint32_t number_of(const Bytes& packet) {
  std::uint32_t number = 0;
  std::memcpy(&number, packet.data(), sizeof number);
  return number;
}

template <class Setup>
class PacketQueues : public kernels::test::RunnerSuite<typename Setup::Runner> {
 protected:
  using TestRunner = typename Setup::Runner;
  using TestWire = typename Setup::Wire;
  using TestQueue = std::decay_t<decltype(std::declval<TestWire&>().queue())>;
  static constexpr std::uint32_t kMostGroups = 64;

  void SetUp() override {
    kernels::test::RunnerSuite<TestRunner>::SetUp();
    if (!testing::Test::IsSkipped()) {
      reports_ = std::make_unique<Shared<TestRunner>>(kMostGroups * sizeof(Report));
    }
  }
  void make(std::uint32_t frames) { wire_.reset(Setup::make(frames)); }
  [[nodiscard]] TestWire& wire() { return *wire_; }
  [[nodiscard]] const TestQueue& queue() { return wire_->queue(); }
  [[nodiscard]] Report* reports() { return reports_->template as<Report>(); }

  /// Runs a body in `groups` groups; none may fail. Returns the number of frames that were
  /// returned.
  template <class Body>
  std::uint32_t run(std::uint32_t groups, const Body& body) {
    TestRunner::run(groups, body);
    std::uint32_t recycled = 0;
    for (std::uint32_t i = 0; i < groups; ++i) {
      EXPECT_EQ(reports()[i].failed, 0U) << "group " << i;
      recycled += reports()[i].recycled;
    }
    return recycled;
  }
  /// Ends after `sent` packets, `recycled` of whose frames are returned: expects all back, and
  /// stops.
  void end(std::uint32_t sent, std::uint32_t recycled, std::uint32_t frames) {
    wire().drain(sent);
    const std::uint32_t rest = run(1, RecycleRest<TestQueue>{queue(), sent - recycled, reports()});
    EXPECT_EQ(recycled + rest, sent);
    EXPECT_EQ(wire().stop(), "");
    EXPECT_EQ(wire().frames_at_home(), frames);
    ASSERT_EQ(wire().sent().size(), sent);
  }

 private:
  std::unique_ptr<TestWire> wire_;
  std::unique_ptr<Shared<TestRunner>> reports_;
};
TYPED_TEST_SUITE_P(PacketQueues);

TYPED_TEST_P(PacketQueues, AreServed) {
  using Queue = typename TestFixture::TestQueue;
  constexpr std::uint32_t kCount = TestFixture::TestRunner::kSharedRounds;
  this->make(64);
  for (std::uint32_t i = 0; i < kCount; ++i) this->wire().add(packet_of(i));
  this->wire().start();
  const std::uint32_t recycled =
      this->run(1, AnswerEven<Queue>{this->queue(), kCount, 48, this->reports()});
  ASSERT_EQ(this->reports()[0].count, kCount);
  this->end((kCount + 1) / 2, recycled, 128);
  for (std::uint32_t i = 0; i < this->wire().sent().size(); ++i) {
    Bytes expected = packet_of(2 * i);
    for (std::size_t k = 4; k < expected.size(); ++k) ++expected[k];
    ASSERT_EQ(this->wire().sent()[i], expected) << i;
  }
}

TYPED_TEST_P(PacketQueues, SayWhenNothingComes) {
  using Queue = typename TestFixture::TestQueue;
  this->make(8);
  const Shared<typename TestFixture::TestRunner> stop(sizeof(std::uint32_t));
  *stop.template as<std::uint32_t>() = 1;
  this->run(
      1, ReceiveNothing<Queue>{this->queue(), stop.template as<std::uint32_t>(), this->reports()});
  EXPECT_EQ(this->reports()[0].count, 0U);
}

TYPED_TEST_P(PacketQueues, SendUntilFramesAreShort) {
  using Queue = typename TestFixture::TestQueue;
  this->make(8);
  this->run(1, SendNew<Queue>{this->queue(), 9, 1'000'000, this->reports()});
  EXPECT_EQ(this->reports()[0].count, 8U);
  this->wire().start();
  this->run(1, SendNew<Queue>{this->queue(), 100, long_wait().nanoseconds, this->reports()});
  EXPECT_EQ(this->reports()[0].count, 100U);
  this->wire().drain(108);
  EXPECT_EQ(this->wire().stop(), "");
  ASSERT_EQ(this->wire().sent().size(), 108U);
  for (std::uint32_t i = 0; i < 108; ++i) {
    ASSERT_EQ(this->wire().sent()[i], packet_of(i < 8 ? i : i - 8));
  }
}

/// Groups send their packets at positions that give the order: 0, 1, 2... whichever group is first.
TYPED_TEST_P(PacketQueues, SendInOrderByManyGroups) {
  using Queue = typename TestFixture::TestQueue;
  constexpr std::uint32_t kGroups = TestFixture::TestRunner::kGroups;
  constexpr std::uint32_t kEach = 50;
  this->make(512);  // a frame for each packet, so that nothing is recycled
  this->wire().start();
  this->run(kGroups, SendInOrder<Queue>{this->queue(), kEach, this->reports()});
  this->wire().drain(kGroups * kEach * 9 / 10);
  EXPECT_EQ(this->wire().stop(), "");
  ASSERT_EQ(this->wire().sent().size(), kGroups * kEach * 9 / 10);
  std::uint32_t expected = 0;
  for (const Bytes& packet : this->wire().sent()) {
    ASSERT_EQ(packet, packet_of(expected)) << number_of(packet);
    expected += expected % 10 == 8 ? 2 : 1;
  }
}

/// Several groups that share a queue recycle and give back frames at the same time.
TYPED_TEST_P(PacketQueues, HaveFramesComeHomeByManyGroups) {
  using Queue = typename TestFixture::TestQueue;
  constexpr std::uint32_t kCount = TestFixture::TestRunner::kSharedRounds;
  this->make(64);
  const typename TestFixture::TestRunner::Scratch done(sizeof(std::uint64_t));
  this->wire().start();
  const SendWhileOthersRecycle<Queue> body{
      this->queue(), kCount, reinterpret_cast<std::uint64_t*>(done.data()), this->reports()};
  this->run(3, body);
  EXPECT_EQ(this->reports()[0].count, kCount);
  this->wire().drain(kCount);
  // A sender recycles too, uncounted: so repeat until all frames are there, or no more come.
  for (std::uint32_t i = 0; i < 100 && this->wire().frames_at_home() != 128; ++i) {
    this->run(1, RecycleRest<Queue>{this->queue(), this->wire().frames_at_home() < 128 ? 1U : 0U,
                                    this->reports()});
  }
  EXPECT_EQ(this->wire().stop(), "");
  EXPECT_EQ(this->wire().frames_at_home(), 128U);
  ASSERT_EQ(this->wire().sent().size(), kCount);
  for (std::uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(this->wire().sent()[i], packet_of(i));
}

TYPED_TEST_P(PacketQueues, AnswerEchoesAndPings) {
  using Queue = typename TestFixture::TestQueue;
  constexpr std::uint32_t kCount = 60;
  this->make(64);
  std::vector<Bytes> answers;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    FrameKind kind;
    kind.tags = i % 3;
    kind.is_v6 = i % 2 != 0;
    kind.payload = i * 23 % 1400;
    kind.protocol = i % 4 < 2 ? kUdp : kind.is_v6 ? kIcmpv6 : kIcmp;
    if (i % 10 == 9) kind.protocol = kTcp;
    Bytes frame = FrameMaker::make(kind);
    if (i % 11 == 10) frame[frame.size() - 1] ^= 1;  // a wrong checksum, or a byte of no payload
    this->wire().add(frame);
    // The host makes the same answers; headers_test checks those.
    const auto size = static_cast<std::uint32_t>(frame.size());
    const Headers headers = parse_frame(frame.data(), size);
    if (make_udp_echo(frame.data(), headers, 0) || make_ping_reply(frame.data(), headers)) {
      answers.push_back(frame);
    }
  }
  ASSERT_GT(answers.size(), kCount / 2);
  ASSERT_LT(answers.size(), kCount);
  this->wire().start();
  this->run(1, AnswerFrames<Queue>{this->queue(), kCount, this->reports()});
  EXPECT_EQ(this->reports()[0].count, kCount);
  this->wire().drain(answers.size());
  EXPECT_EQ(this->wire().stop(), "");
  EXPECT_EQ(this->wire().sent(), answers);
}

TYPED_TEST_P(PacketQueues, AreServedByTheWorkersLoop) {
  using Queue = typename TestFixture::TestQueue;
  using Runner = typename TestFixture::TestRunner;
  constexpr std::uint32_t kCount = 60;
  constexpr std::uint32_t kWireMtu = 1500;
  constexpr std::uint32_t kNoise = kCount / 5;
  constexpr std::uint32_t kMartian = kCount / 10;
  this->make(64);
  std::vector<Bytes> requests;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    FrameKind kind;
    kind.is_v6 = i % 3 == 0;
    requests.push_back(request_frame(i * 37 % 1400, i, kind));
    this->wire().add(requests.back());
    if (i % 5 == 0) this->wire().add(Bytes(14 + i, 1));
    if (i % 10 == 0) this->wire().add(request_frame(i, i, {.tags = 1, .vlan = 7}));
  }
  const Shared<Runner> handle(sizeof(Queue));
  *handle.template as<Queue>() = this->queue();
  const Shared<Runner> stop(sizeof(std::uint32_t));
  const Shared<Runner> counts(sizeof(DatagramCounts));
  const Shared<Runner> host(sizeof(HostAddresses));
  *host.template as<HostAddresses>() = host_of_frames();
  const typename Runner::Scratch staging(sizeof(DatagramStaging));
  const auto* const counted = counts.template as<DatagramCounts>();
  const DatagramWorkOf<Queue> work{handle.template as<Queue>(),
                                   stop.template as<std::uint32_t>(),
                                   counts.template as<DatagramCounts>(),
                                   long_wait().nanoseconds,
                                   16,
                                   kWireMtu,
                                   host.template as<HostAddresses>()};
  this->wire().start();
  this->run(1, ServeDatagrams<Queue>{work, kCount + kNoise + kMartian,
                                     reinterpret_cast<DatagramStaging*>(staging.data()),
                                     this->reports()});
  this->wire().drain(kCount);
  EXPECT_EQ(this->wire().stop(), "");
  EXPECT_EQ(counted->datagrams, kCount + kNoise + kMartian);
  EXPECT_EQ(counted->martians[static_cast<std::uint32_t>(Martian::vlan)], kMartian);
  EXPECT_EQ(counted->answered, kCount);
  EXPECT_EQ(counted->malformed, kNoise);
  ASSERT_EQ(this->wire().sent().size(), kCount);
  for (std::uint32_t i = 0; i < kCount; ++i) {
    expect_reversed(this->wire().sent()[i], requests[i], i * 37 % 1400, i);
  }
}

REGISTER_TYPED_TEST_SUITE_P(PacketQueues, AreServed, SayWhenNothingComes, SendUntilFramesAreShort,
                            SendInOrderByManyGroups, HaveFramesComeHomeByManyGroups,
                            AnswerEchoesAndPings, AreServedByTheWorkersLoop);

/// Items in memory of a runner.
template <class Place>
class TestItems {
 public:
  explicit TestItems(std::uint32_t log2)
      : log2_(log2),
        statuses_(sizeof(Semaphore::Status) << log2),
        items_(sizeof(std::uint64_t) << log2) {}
  [[nodiscard]] Semaphore view() const {
    return {statuses_.template as<Semaphore::Status>(), items_.template as<std::uint8_t>(),
            sizeof(std::uint64_t), log2_};
  }

 private:
  std::uint32_t log2_;
  Shared<Place> statuses_, items_;
};

/// Tests functions that need no queue.
template <class Runner>
class PacketFunctions : public kernels::test::RunnerSuite<Runner> {};
TYPED_TEST_SUITE_P(PacketFunctions);

/// A thread of the host gives items to the groups and takes theirs.
TYPED_TEST_P(PacketFunctions, HandItemsBothWays) {
  constexpr std::uint32_t kGroups = TypeParam::kGroups;
  constexpr std::uint32_t kCount = TypeParam::kSharedRounds;
  const TestItems<TypeParam> there(3);
  const TestItems<TypeParam> back(3);
  const Shared<TypeParam> reports(kGroups * sizeof(Report));
  const Semaphore give = there.view();
  const Semaphore take = back.view();
  std::uint32_t wrong = 0;
  std::thread giver([&give] {
    for (std::uint64_t i = 0; i < kCount; ++i) {
      ItemStatus status{};
      if (wait_for_item(SingleLane{}, give, i, false, long_wait(), status) != WorkResult::done)
        return;
      std::memcpy(give.item(i), &i, sizeof i);
      set_status(SingleLane{}, give, i, i % 7 == 3 ? ItemStatus::error : ItemStatus::ready);
    }
  });
  std::thread taker([&take, &wrong] {
    for (std::uint64_t i = 0; i < kCount; ++i) {
      ItemStatus status{};
      if (wait_for_item(SingleLane{}, take, i, true, long_wait(), status) != WorkResult::done) {
        ++wrong;
        return;
      }
      std::uint64_t value = 0;
      std::memcpy(&value, take.item(i), sizeof value);
      if (value != i * i || status != (i % 7 == 3 ? ItemStatus::error : ItemStatus::ready)) ++wrong;
      set_status(SingleLane{}, take, i, ItemStatus::free);
    }
  });
  TypeParam::run(kGroups, SquareItems{give, take, kCount, kGroups, reports.template as<Report>()});
  giver.join();
  taker.join();
  EXPECT_EQ(wrong, 0U);
  for (std::uint32_t i = 0; i < kGroups; ++i) {
    EXPECT_EQ(reports.template as<Report>()[i].failed, 0U) << i;
  }
}

/// Valid and invalid frames are parsed as on the host, whose results headers_test checks.
TYPED_TEST_P(PacketFunctions, ParseFrames) {
  constexpr std::uint32_t kStride = 256;
  constexpr std::uint32_t kCount = 400;
  const Shared<TypeParam> frames(kCount * kStride);
  const Shared<TypeParam> lengths(kCount * sizeof(std::uint32_t));
  const Shared<TypeParam> found(kCount * sizeof(Headers));
  auto* const bytes = frames.template as<std::uint8_t>();
  auto* const sizes = lengths.template as<std::uint32_t>();
  constexpr std::uint32_t kProtocols[] = {kUdp, kTcp, kIcmp, kIcmpv6};
  for (std::uint32_t i = 0; i < kCount; ++i) {
    FrameKind kind;
    kind.tags = i % 3;
    kind.is_v6 = i % 2 != 0;
    kind.protocol = kProtocols[i / 2 % 4];
    kind.payload = i % 60;
    kind.extensions = i % 5 == 0 ? 2 : 0;
    kind.options = i % 4;
    Bytes frame = FrameMaker::make(kind);
    if (i % 4 == 1)
      frame[12 + i * 7 % (frame.size() - 12)] ^= static_cast<std::uint8_t>(1U << i % 8);
    if (i % 4 == 2) frame.resize(i * 13 % (frame.size() + 1));
    sizes[i] = static_cast<std::uint32_t>(frame.size());
    std::copy(frame.begin(), frame.end(), bytes + i * kStride);
  }
  TypeParam::run(1, ParseEach{bytes, sizes, found.template as<Headers>(), kCount, kStride});
  std::uint32_t wrong = 0;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    const Headers expected = parse_frame(bytes + i * kStride, sizes[i]);
    const Headers& is = found.template as<Headers>()[i];
    wrong += expected.error != FrameError::none;
    ASSERT_EQ(is.error, expected.error) << i;
    ASSERT_EQ(is.ethertype, expected.ethertype) << i;
    ASSERT_EQ(is.protocol, expected.protocol) << i;
    ASSERT_EQ(is.transport, expected.transport) << i;
    ASSERT_EQ(is.payload, expected.payload) << i;
    ASSERT_EQ(is.end, expected.end) << i;
    ASSERT_EQ(is.is_fragment, expected.is_fragment) << i;
    ASSERT_EQ(is.destination_port, expected.destination_port) << i;
  }
  EXPECT_GT(wrong, kCount / 8);
  EXPECT_LT(wrong, kCount / 2);
}

REGISTER_TYPED_TEST_SUITE_P(PacketFunctions, HandItemsBothWays, ParseFrames);

}  // namespace offload::kernels::packets::test
