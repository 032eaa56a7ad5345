#include "rdma/mlx5/handles.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <span>
#include <vector>

#include "tests/rdma/mlx5/page.hpp"
#include "tests/support/thrown.hpp"

namespace offload::rdma::mlx5 {
namespace {

using core::ErrorCode;

/// The handles that libmlx5 would return for 64 blocks and 32 receives.
struct HandlesTest : testing::Test {
  HandlesTest() {
    native.number = 0x1234;
    native.pair.dbrec = at<__be32>(0);
    native.pair.rq = {at<void>(4096), 32, 16};
    native.pair.sq = {at<void>(4608), 64, 64};
    native.pair.bf = {&card_register, 256};
    native.sends = {at<void>(12288), at<__be32>(64), 64, 64, nullptr, 1, 0};
    native.receives = {at<void>(16384), at<__be32>(128), 32, 64, nullptr, 2, 0};
  }
  template <class T>
  T* at(std::size_t offset) {
    return reinterpret_cast<T*>(std::as_writable_bytes(std::span(memory)).data() + offset);
  }

  std::vector<Page> memory = std::vector<Page>(5);
  Arena arena{std::as_writable_bytes(std::span(memory))};
  std::uint64_t card_register = 0;
  NativeQueues native;
};

TEST_F(HandlesTest, AreWhatLibmlx5Tells) {
  const QueuePairMemory queues = handles_of(native, arena);
  EXPECT_EQ(queues.send.number, 0x1234U);
  EXPECT_EQ(queues.send.ring.blocks, 64U);
  EXPECT_EQ(queues.send.ring.segments, native.pair.sq.buf);
  EXPECT_EQ(queues.send.record, native.pair.dbrec + 1);
  EXPECT_EQ(queues.send.doorbell, &card_register);
  EXPECT_TRUE(queues.send.has_record);
  EXPECT_EQ(queues.send.completions.entries, native.sends.buf);
  EXPECT_EQ(queues.send.completions.log2, 6U);
  EXPECT_EQ(queues.send.completions.record, native.sends.dbrec);
  EXPECT_EQ(queues.send.completions.number, 1U);
  EXPECT_EQ(queues.receive.ring, native.pair.rq.buf);
  EXPECT_EQ(queues.receive.entries, 32U);
  EXPECT_EQ(queues.receive.record, native.pair.dbrec);
  EXPECT_EQ(queues.receive.completions.entries, native.receives.buf);
  EXPECT_EQ(queues.receive.completions.log2, 5U);
  EXPECT_EQ(queues.receive.completions.record, native.receives.dbrec);
  EXPECT_EQ(queues.receive.completions.number, 2U);
}

TEST_F(HandlesTest, AreNotMadeOfWhatKernelsDoNotKnow) {
  using Change = std::function<void(NativeQueues&)>;
  std::uint32_t elsewhere[2]{};
  const std::tuple<const char*, ErrorCode, Change> changes[] = {
      {"blocks of a send queue of 128 bytes", ErrorCode::not_supported,
       [](auto& n) { n.pair.sq.stride = 128; }},
      {"entries of a receive queue of 32 bytes", ErrorCode::not_supported,
       [](auto& n) { n.pair.rq.stride = 32; }},
      {"completions of 128 bytes", ErrorCode::not_supported,
       [](auto& n) { n.receives.cqe_size = 128; }},
      {"a queue of 48 entries", ErrorCode::invalid_value, [](auto& n) { n.pair.sq.wqe_cnt = 48; }},
      {"a queue of 0 entries", ErrorCode::invalid_value, [](auto& n) { n.pair.rq.wqe_cnt = 0; }},
      {"a queue of 65536 entries", ErrorCode::invalid_value,
       [](auto& n) { n.pair.sq.wqe_cnt = 65536; }},
      {"24 places", ErrorCode::invalid_value, [](auto& n) { n.receives.cqe_cnt = 24; }},
      {"2^5 places", ErrorCode::invalid_value, [](auto& n) { n.sends.cqe_cnt = 32; }},
      {"no doorbell", ErrorCode::not_supported, [](auto& n) { n.pair.bf.reg = nullptr; }},
      {"no doorbell", ErrorCode::not_supported,
       [](auto& n) { n.pair.bf.reg = static_cast<std::byte*>(n.pair.bf.reg) + 4; }},
      {"no record of a queue pair", ErrorCode::not_supported,
       [](auto& n) { n.pair.dbrec = nullptr; }},
      {"no record of a completion queue", ErrorCode::not_supported,
       [](auto& n) { n.sends.dbrec = nullptr; }},
      {"no send queue", ErrorCode::not_supported, [](auto& n) { n.pair.sq.buf = nullptr; }},
      {"no receive queue", ErrorCode::not_supported,
       [](auto& n) { n.pair.rq.buf = static_cast<std::byte*>(n.pair.rq.buf) + 8; }},
      {"no completions", ErrorCode::not_supported, [](auto& n) { n.receives.buf = nullptr; }},
      {"the record of a queue pair outside of the given memory", ErrorCode::not_supported,
       [&](auto& n) { n.pair.dbrec = elsewhere; }},
      {"the send queue outside of the given memory", ErrorCode::not_supported,
       [](auto& n) { n.pair.sq.buf = static_cast<std::byte*>(n.pair.sq.buf) + 3 * 4096; }},
  };
  for (const auto& [words, code, change] : changes) {
    NativeQueues changed = native;
    change(changed);
    const auto error = support::thrown_by([&] { handles_of(changed, arena); });
    EXPECT_EQ(error.code(), code) << words;
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace offload::rdma::mlx5
