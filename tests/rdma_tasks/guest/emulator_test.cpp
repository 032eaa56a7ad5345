#include <cstring>
#include <random>
#include <tuple>

#include "rdma/emulator/queue_emulator.hpp"
#include "rdma_tasks/cm/cm_connection.hpp"
#include "tests/rdma_tasks/guest/emulator_fixture.hpp"
#include "tests/rdma_tasks/guest/program.hpp"

/// Entries in mlx5's formats, carried out over a device that is not an mlx5 device.

namespace offload::rdma {
namespace {

/// Bytes of a message, and whether it goes from b to a; then the engine may sleep between its
/// polls.
class EmulatorOperationsTest : public EmulatorGuestTest,
                               public testing::WithParamInterface<std::tuple<std::size_t, bool>> {
 protected:
  EmulatorOperationsTest() {
    EmulatorEnd& a = make_end("a");
    EmulatorEnd& b = make_end("b");
    connect_ends(a, b);
    from_ = std::get<1>(GetParam()) ? &b : &a;
    to_ = std::get<1>(GetParam()) ? &a : &b;
    fill(0, size());
    buffers_[0] = local(0, size() / 3);
    buffers_[1] = local(size() / 3, size() - size() / 3);
  }

  [[nodiscard]] std::size_t size() const { return std::get<0>(GetParam()); }
  [[nodiscard]] bool asleep() const { return std::get<1>(GetParam()); }
  void expect_received(CqeKind kind, std::uint32_t immediate) {
    const auto completion = next_receive(*to_, asleep());
    EXPECT_EQ(completion.kind, kind);
    EXPECT_EQ(completion.byte_count, size());
    EXPECT_EQ(completion.immediate, immediate);
  }

  EmulatorEnd* from_;
  EmulatorEnd* to_;
  LocalBuffer buffers_[2];
};

TEST_P(EmulatorOperationsTest, Write) {
  wire::SendWork work = work_of(Opcode::rdma_write, buffers_, 2);
  work.remote = remote(kTo);
  post(*from_, work);
  expect_done(*from_, asleep());
  expect_same(0, kTo, size());
}

TEST_P(EmulatorOperationsTest, WriteWithImmediate) {
  post_receive(*to_, {});
  wire::SendWork work = work_of(Opcode::rdma_write_with_imm, buffers_, 2);
  work.remote = remote(kTo);
  work.immediate = 0xdead'beef;
  post(*from_, work);
  expect_received(CqeKind::received_write_with_imm, 0xdead'beef);
  expect_same(0, kTo, size());
  expect_done(*from_, asleep());
}

TEST_P(EmulatorOperationsTest, SendsWithAndWithoutImmediate) {
  for (const bool has_immediate : {false, true}) {
    clear(kTo, size());
    post_receive(*to_, local(kTo, size() + 100));
    wire::SendWork work =
        work_of(has_immediate ? Opcode::send_with_imm : Opcode::send, buffers_, 2);
    if (has_immediate) work.immediate = 0x0102'0304;
    post(*from_, work);
    expect_received(has_immediate ? CqeKind::received_send_with_imm : CqeKind::received_send,
                    work.immediate);
    expect_same(0, kTo, size());
    expect_done(*from_, asleep());
  }
}

TEST_P(EmulatorOperationsTest, Read) {
  fill(kTo, size());
  clear(0, size() + 1);
  wire::SendWork work = work_of(Opcode::rdma_read, buffers_, 2);
  work.remote = remote(kTo);
  post(*from_, work);
  const auto completion = next(*from_, asleep());
  EXPECT_EQ(completion.kind, CqeKind::request);
  EXPECT_EQ(completion.byte_count, size());
  expect_same(kTo, 0, size());
}

INSTANTIATE_TEST_SUITE_P(, EmulatorOperationsTest,
                         testing::Combine(testing::Values(1, 100, 5000, 1U << 20),
                                          testing::Bool()));

TEST_F(EmulatorPairTest, Atomics) {
  make();
  auto* const word = reinterpret_cast<std::uint64_t*>(bytes(kTo, 8).data());
  auto* const before = reinterpret_cast<std::uint64_t*>(bytes(0, 8).data());
  *word = 100;
  const LocalBuffer result = local(0, 8);
  wire::SendWork add = work_of(Opcode::fetch_add, &result, 1);
  add.remote = remote(kTo);
  add.compare_add = 0x1'0000'0005;
  post(*a_, add);
  expect_done(*a_);
  EXPECT_EQ(*before, 100U);
  EXPECT_EQ(*word, 0x1'0000'0069U);
  wire::SendWork swap = work_of(Opcode::compare_swap, &result, 1);
  swap.remote = remote(kTo);
  swap.compare_add = 1;
  swap.swap = 7;
  post(*b_, swap);
  expect_done(*b_);
  EXPECT_EQ(*before, 0x1'0000'0069U) << "not equal: nothing is swapped";
  swap.compare_add = 0x1'0000'0069;
  post(*b_, swap);
  expect_done(*b_);
  EXPECT_EQ(*word, 7U);
}

// A write and the atomic that signals it, behind a fence, like a put with signal.
TEST_F(EmulatorPairTest, APutWithSignalAndWhatVerbsDoNotHave) {
  make();
  fill(0, 1000);
  const LocalBuffer data = local(0, 1000);
  const LocalBuffer result = local(8192, 8);
  wire::SendWork put = work_of(Opcode::rdma_write, &data, 1);
  put.flags = 0;
  put.remote = remote(kTo);
  ASSERT_EQ(a_->owner->post(put), Posted::done);
  wire::SendWork signal = work_of(Opcode::fetch_add, &result, 1);
  signal.flags = wire::kFence;
  signal.remote = remote(kTo + 8192);
  signal.compare_add = 1;
  ASSERT_EQ(a_->owner->post(signal), Posted::done);
  wire::SendWork dump = work_of(kDump, &result, 1);
  dump.flags = 0;
  ASSERT_EQ(a_->owner->post(dump), Posted::done);
  post(*a_, work_of(Opcode::nop, nullptr, 0));
  const auto* const seen = reinterpret_cast<const std::uint64_t*>(bytes(kTo + 8192, 8).data());
  EXPECT_TRUE(until([&] { return __atomic_load_n(seen, __ATOMIC_ACQUIRE) == 1; }, false));
  expect_same(0, kTo, 1000);
  const auto completion = next(*a_);
  EXPECT_EQ(completion.kind, CqeKind::request);
  EXPECT_EQ(completion.counter, 3U);
}

// Both ends write, send and read at random lengths, inline and not, over many laps of their
// rings.
TEST_F(EmulatorPairTest, BothEndsAtOnceOverManyLaps) {
  make();
  constexpr std::size_t kRoom = 2048;
  constexpr std::uint32_t kCount = 400;
  struct Half {
    EmulatorEnd* from;
    EmulatorEnd* to;
    std::size_t base;
    std::minstd_rand random;
    std::uint32_t done = 0;
  };
  Half halves[] = {{a_, b_, 0, std::minstd_rand(1)}, {b_, a_, 1UL << 20, std::minstd_rand(2)}};
  while (halves[0].done < kCount) {
    for (Half& half : halves) {
      const auto length = 1 + half.random() % (half.done % 2 == 0 ? kMostInline - 20 : kRoom);
      const bool sends = half.random() % 2 == 0;
      fill(half.base + (half.done % 7) * kRoom, length);
      clear(kTo + half.base, kRoom + 1);
      const LocalBuffer buffer = local(half.base + (half.done % 7) * kRoom, length);
      wire::SendWork work = work_of(sends ? Opcode::send : Opcode::rdma_write, &buffer, 1);
      if (half.done % 2 == 0) {
        work.inline_data = std::bit_cast<const void*>(buffer.address);
        work.inline_length = buffer.length;
      }
      work.remote = remote(kTo + half.base);
      if (sends) {
        post_receive(*half.to, local(kTo + half.base, kRoom));
      }
      post(*half.from, work);
      if (sends) {
        const auto completion = next_receive(*half.to);
        ASSERT_EQ(completion.kind, CqeKind::received_send);
        ASSERT_EQ(completion.byte_count, length);
      }
      ASSERT_EQ(next(*half.from).kind, CqeKind::request) << half.from->told;
      expect_same(half.base + (half.done % 7) * kRoom, kTo + half.base, length);
      ++half.done;
    }
  }
}

// The ring is filled with entries, of which one in eight is signaled: all arrive, in order.
TEST_F(EmulatorPairTest, RunsOfEntriesWithFewSignals) {
  make();
  std::uint64_t sent = 0;
  std::uint64_t completed = 0;
  auto* const words = reinterpret_cast<std::uint64_t*>(bytes(kTo, 4096).data());
  while (completed < 1000) {
    for (;; ++sent) {
      wire::SendWork work = work_of(Opcode::rdma_write, nullptr, 0);
      work.flags = sent % 8 == 7 ? std::uint8_t{wire::kSignaled} : std::uint8_t{0};
      work.inline_data = &sent;
      work.inline_length = sizeof sent;
      work.remote = remote(kTo + 8 * (sent % 512));
      if (a_->owner->post(work) != Posted::done) break;
    }
    a_->owner->publish();
    const auto completion = next(*a_);
    ASSERT_EQ(completion.kind, CqeKind::request) << a_->told;
    completed += 8;
    for (std::uint64_t i = completed - 8; i != completed; ++i) ASSERT_EQ(words[i % 512], i);
  }
}

// ---- rping: another project's program at the other end, connected by librdmacm

TEST_F(EmulatorGuestTest, RpingFindsItsOwnDataAgain) {
  if (!is_there("rping")) GTEST_SKIP() << "rping is missing (package rdmacm-utils)";
  constexpr std::uint32_t kMessage = 16;
  constexpr std::uint32_t kLength = 64;
  EmulatorEnd& end = make_end("rping's peer");
  std::vector<std::string> told;
  const std::string address = to_string(choose_gid(device_.gids(), {}).gid);
  std::optional<CmConnection> cm;
  const CmListener listener(
      engine_, {address, 0},
      [&](ConnectRequest request) {
        for (std::size_t i = 0; i < 2; ++i) {
          ASSERT_EQ(end.owner->post_receive(local(64 * i, kMessage)), Posted::done);
        }
        cm.emplace(engine_, end.connection,
                   CmConnection::Callbacks{
                       [&](CmConnection&) { told.emplace_back("connected"); },
                       [&](CmConnection&, const core::Error&) { told.emplace_back("ended"); }});
        cm->accept(std::move(request), std::chrono::seconds(10));
      },
      CmExchange::parameters);
  Program client("rping -c -a " + address + " -p " + std::to_string(listener.port()) +
                 " -C 1 -S 64 -V -v");
  ASSERT_TRUE(until([&] { return !told.empty(); }));
  ASSERT_EQ(told.front(), "connected");
  end.emulator->start_sends();
  // rping sends the place of its memory: address, key and length, big endian.
  const auto await_place = [&](std::size_t number) {
    EXPECT_EQ(next_receive(end).byte_count, kMessage);
    std::uint32_t words[4];
    std::memcpy(words, bytes(64 * number, kMessage).data(), sizeof words);
    EXPECT_EQ(wire::big_endian(words[3]), kLength);
    return wire::RemotePointer{
        std::uint64_t{wire::big_endian(words[0])} << 32 | wire::big_endian(words[1]),
        wire::big_endian(words[2])};
  };
  const LocalBuffer copy = local(4096, kLength);
  wire::SendWork read = work_of(Opcode::rdma_read, &copy, 1);
  read.remote = await_place(0);
  ASSERT_EQ(end.owner->post(read), Posted::done);
  wire::SendWork go_on = work_of(Opcode::send, nullptr, 0);
  const std::vector<std::byte> message(kMessage);
  go_on.flags |= wire::kFence;  // behind the read
  go_on.inline_data = message.data();
  go_on.inline_length = kMessage;
  post(end, go_on);
  expect_done(end);
  expect_done(end);
  wire::SendWork write = work_of(Opcode::rdma_write, &copy, 1);
  write.remote = await_place(1);
  ASSERT_EQ(end.owner->post(write), Posted::done);
  post(end, go_on);
  EXPECT_TRUE(until([&] { return told.size() == 2; })) << "it goes";
  std::string output;
  EXPECT_EQ(client.wait(output), 0) << output;
  EXPECT_NE(output.find("ping data: rdma-ping-0"), std::string::npos) << output;
}

}  // namespace
}  // namespace offload::rdma
