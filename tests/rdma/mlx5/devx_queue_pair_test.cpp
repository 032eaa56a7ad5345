#include "rdma/mlx5/devx_queue_pair.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "tests/rdma/fake_devx.hpp"
#include "tests/rdma/fake_fixture.hpp"
#include "tests/rdma/fake_mlx5.hpp"
#include "tests/rdma/mlx5/page.hpp"
#include "tests/support/thrown.hpp"

/// Commands are expected word by word, as the layouts of mlx5_ifc.h of the Linux kernel have them.
namespace offload::rdma::mlx5 {
namespace {

using core::ErrorCode;
using support::thrown_by;
using test::DevxCall;
using test::DevxWords;
using test::fake;
using test::fake_devx;
using test::FakeDevx;

constexpr std::uint32_t kObject = FakeDevx::kFirstObject;
constexpr std::uint32_t kSpace = FakeDevx::kFirstSpace;
constexpr std::uint32_t kRegisters = FakeDevx::kFirstRegisters;
constexpr QueueSizes kSizes{64, 16};
// Of these sizes: 256 bytes of receives and 4096 of sends, completions of both, records.
constexpr std::size_t kSends = 0x2000;
constexpr std::size_t kReceives = 0x3000;
constexpr std::size_t kRecord = 0x4000;
constexpr std::size_t kBytes = 0x5000;

class DevxQueuePairTest : public FakeDeviceTest {
 protected:
  DevxQueuePairTest() {
    test::reset_fake_mlx5();
    fake_devx() = {};
  }

  QueueSpace space(std::size_t size = kBytes) { return {memory_.data(), size}; }
  /// Lets the card have queue pairs without a record.
  static void allow_without_record() { fake_devx().answers[0x41] = {{0x6c, 1U << 30}}; }
  /// Returns the latest command, which made or changed `object`.
  static DevxCall latest() { return fake_devx().calls.back(); }
  static DevxCall made(const DevxWords& words) { return {0, 272, words}; }

  std::vector<Page> memory_{8};
  DeviceContext device_{"fake0"};
  ProtectionDomain domain_{device_};
};

/// create_qp_in of a queue pair that has all for itself, made after its two completion queues.
DevxWords words_of_pair() {
  return {{0x00, 0x0500'0000},
          {0x18, 0x0000'1800},          // pm_state: migrated
          {0x1c, FakeDevx::kDomain},    // pd
          {0x20, 4U << 19 | 6U << 11},  // log_rq_size, log_sq_size
          {0x24, kRegisters},           // uar_page
          {0x94, kObject},              // cqn_snd
          {0xb4, kObject + 1},          // cqn_rcv
          {0xbc, kRecord},              // dbr_addr
          {0xe8, 0x1000'0000},          // dbr_umem_valid
          {0xfc, kSpace},               // dbr_umem_id
          {0x108, kSpace},              // wq_umem_id
          {0x10c, 0x8000'0000}};        // wq_umem_valid
}

TEST_F(DevxQueuePairTest, MakesItsPartsInItsSpace) {
  const DevxQueuePair pair(device_, domain_, kSizes, space());
  EXPECT_EQ(pair.number(), kObject + 2);
  EXPECT_FALSE(pair.waits_for_completions());
  ASSERT_EQ(fake_devx().calls.size(), 5U);  // two are questions
  for (const auto& [call, place, log2] :
       {std::tuple{2U, kSends, 6U}, std::tuple{3U, kReceives, 4U}}) {
    const DevxWords& words = fake_devx().calls[call].words;
    EXPECT_EQ(words.at(0x10), 0x0200'0000U);
    EXPECT_EQ(words.at(0x1c), log2 << 24 | kRegisters);
    EXPECT_EQ(words.at(0x4c), kRecord + (call == 2 ? 64 : 128));
    EXPECT_EQ(words.at(0x54), place);
  }
  EXPECT_EQ(latest(), made(words_of_pair()));
  EXPECT_EQ(fake_devx().kinds, std::vector<std::uint32_t>{1});
  EXPECT_EQ(reinterpret_cast<std::byte*>(pair.card_register()), fake_devx().page + 0x800);
}

TEST_F(DevxQueuePairTest, IsAMasterIfTheCardWaits) {
  fake_devx().answers[1] = {{0x54, 1U << 19}};
  const DevxQueuePair pair(device_, domain_, kSizes, space());
  EXPECT_TRUE(pair.waits_for_completions());
  DevxWords words = words_of_pair();
  words[0xa8] = 1;  // cd_master
  EXPECT_EQ(latest(), made(words));
}

TEST_F(DevxQueuePairTest, WithoutARecordTheDoorbellIsItsOwn) {
  const DevxQueuePair::Options options{.has_record = false};
  const auto make = [&](const DevxQueuePair::Options& with) {
    DevxQueuePair(device_, domain_, kSizes, space(), with);
  };
  const auto unable = thrown_by([&] { make(options); });
  EXPECT_EQ(unable.code(), ErrorCode::not_supported);
  EXPECT_STREQ(unable.what(), "fake0 has no queue pairs without a record");
  allow_without_record();
  const CardRegisters given(device_);
  const auto shared = thrown_by([&] { make({.has_record = false, .registers = &given}); });
  EXPECT_EQ(shared.code(), ErrorCode::invalid_value);
  fake_devx().kinds.clear();
  fake_devx().spaces.clear();
  fake_devx().made = 0;
  const DevxQueuePair pair(device_, domain_, kSizes, space(), options);
  DevxWords words = words_of_pair();
  words[0x28] = 0x4000'0000;  // send_dbr_mode: none in memory
  EXPECT_EQ(latest(), made(words));
  EXPECT_EQ(fake_devx().kinds, std::vector<std::uint32_t>{0});  // combining
  EXPECT_EQ(reinterpret_cast<std::byte*>(pair.card_register()), fake_devx().page + 0x600);
  EXPECT_FALSE(pair.seen_at(memory_.data(), nullptr).send.has_record);
}

TEST_F(DevxQueuePairTest, OverrunsAreIgnoredInBothQueues) {
  const DevxQueuePair pair(device_, domain_, kSizes, space(), {.checks_overrun = false});
  for (const unsigned call : {2U, 3U})
    EXPECT_EQ(fake_devx().calls[call].words.at(0x10), 0x0202'0000U);
}

TEST_F(DevxQueuePairTest, UsesWhatItIsGiven) {
  const CardRegisters registers(device_);
  const DevxQueuePair::CompletionNumbers completions{0x11'2233, 0x44'5566};
  const DevxQueuePair pair(device_, domain_, kSizes, space(),
                           {.registers = &registers, .completions = completions});
  EXPECT_EQ(fake_devx().kinds.size(), 1U);
  DevxWords words = words_of_pair();
  words[0x94] = completions.sends;
  words[0xb4] = completions.receives;
  EXPECT_EQ(latest(), made(words));
  const QueuePairMemory seen = pair.seen_at(memory_.data(), nullptr);
  EXPECT_EQ(seen.send.completions.entries, nullptr);
  EXPECT_EQ(seen.receive.completions.entries, nullptr);
  EXPECT_EQ(seen.receive.entries, kSizes.receives);

  const DevxQueuePair::Places places{0x77, 0x1'0000'0040, 0x88, 0x2'0000'0080};
  const DevxQueuePair placed(
      device_, domain_, kSizes, {},
      {.registers = &registers, .completions = completions, .places = places});
  EXPECT_EQ(fake_devx().spaces.size(), 1U);
  words[0xb8] = 0x2;
  words[0xbc] = 0x80;
  words[0xfc] = 0x88;
  words[0x100] = 0x1;
  words[0x104] = 0x40;
  words[0x108] = 0x77;
  EXPECT_EQ(latest(), made(words));
}

TEST_F(DevxQueuePairTest, ReceivesInASharedRing) {
  constexpr std::uint32_t kEntries = 8;
  std::vector<Page> ring(4);
  ASSERT_EQ(DevxReceives::bytes_of(kEntries), 0x3000U);
  const DevxReceives shared(device_, domain_, kEntries, {ring.data(), 0x3000});
  EXPECT_EQ(shared.completions(), kObject);
  EXPECT_EQ(shared.number(), kObject + 1);
  const DevxWords& queue = fake_devx().calls.at(0).words;
  EXPECT_EQ(queue.at(0x1c), 3U << 24 | kRegisters);
  EXPECT_EQ(queue.at(0x4c), 0x2080U);
  EXPECT_EQ(queue.at(0x54), 0x1000U);
  // create_rmp_in
  EXPECT_EQ(latest(), made({{0x00, 0x090c'0000},
                            {0x20, 0x0010'0000},        // state: ready
                            {0x24, 0x8000'0000},        // basic_cyclic_rcv_wqe
                            {0x50, 0x1000'0000},        // wq_type: cyclic
                            {0x58, FakeDevx::kDomain},  // pd
                            {0x64, 0x2000},             // dbr_addr
                            {0x70, 0x0004'0003},        // log_wq_stride, log_wq_sz
                            {0x74, 0xc000'0000},        // dbr_umem_valid, wq_umem_valid
                            {0x78, kSpace},             // dbr_umem_id
                            {0x7c, kSpace}}));          // wq_umem_id
  const DevxQueuePair pair(device_, domain_, kSizes, space(), {.shared = &shared});
  DevxWords words = words_of_pair();
  words[0x20] = 6U << 11;  // no own receives
  words[0x24] = kRegisters + 1;
  words[0x94] = kObject + 2;
  words[0xb4] = kObject;
  words[0xc4] = 1U << 24 | (kObject + 1);  // rq_type: SRQ, srqn_rmpn_xrqn
  words[0xfc] = words[0x108] = kSpace + 1;
  EXPECT_EQ(latest(), made(words));
  EXPECT_EQ(pair.number(), kObject + 3);

  const auto seen = shared.seen_at(ring.data());
  const auto place = [&](const void* part) {
    return static_cast<const std::byte*>(part) - ring[0].bytes;
  };
  EXPECT_EQ(place(seen.ring), 0);
  EXPECT_EQ(seen.entries, kEntries);
  EXPECT_EQ(place(seen.record), 0x2000);
  EXPECT_EQ(place(seen.completions.entries), 0x1000);
  EXPECT_EQ(place(seen.completions.record), 0x2080);
  EXPECT_EQ(seen.completions.log2, 3U);
  EXPECT_EQ(seen.completions.number, kObject);
  const QueuePairMemory of_pair = pair.seen_at(memory_.data(), nullptr);
  EXPECT_EQ(static_cast<const void*>(of_pair.send.ring.segments), memory_.data());
  EXPECT_EQ(of_pair.receive.ring, nullptr);
  EXPECT_EQ(of_pair.receive.entries, 0U);
}

TEST_F(DevxQueuePairTest, IsSeenWhereItsUserHasTheSpace) {
  const DevxQueuePair pair(device_, domain_, kSizes, space());
  std::uint64_t doorbell = 0;
  const QueuePairMemory seen = pair.seen_at(memory_.data(), &doorbell);
  const auto place = [&](const void* part) {
    return static_cast<const std::byte*>(part) - memory_[0].bytes;
  };
  EXPECT_EQ(place(seen.send.ring.segments), 0x100);
  EXPECT_EQ(seen.send.ring.blocks, kSizes.send_blocks);
  EXPECT_EQ(seen.send.number, pair.number());
  EXPECT_EQ(seen.send.doorbell, &doorbell);
  EXPECT_TRUE(seen.send.has_record);
  EXPECT_EQ(place(seen.send.record), 0x4004);
  EXPECT_EQ(place(seen.send.completions.entries), 0x2000);
  EXPECT_EQ(place(seen.send.completions.record), 0x4040);
  EXPECT_EQ(seen.send.completions.log2, 6U);
  EXPECT_EQ(seen.send.completions.number, kObject);
  EXPECT_EQ(place(seen.receive.ring), 0);
  EXPECT_EQ(seen.receive.entries, kSizes.receives);
  EXPECT_EQ(place(seen.receive.record), 0x4000);
  EXPECT_EQ(place(seen.receive.completions.entries), 0x3000);
  EXPECT_EQ(place(seen.receive.completions.record), 0x4080);
  EXPECT_EQ(seen.receive.completions.log2, 4U);
  EXPECT_EQ(seen.receive.completions.number, kObject + 1);
}

/// Returns the places of entries that belong to the card; all other bytes are 0.
std::vector<std::size_t> fresh_entries(std::vector<std::byte> content) {
  std::vector<std::size_t> places;
  for (std::size_t place = 0; place < content.size(); ++place) {
    if (std::to_integer<int>(content[place]) == 0) continue;
    EXPECT_EQ(std::to_integer<int>(content[place]), 0xf1);
    EXPECT_EQ(place % 64, 63U);
    places.push_back(place / 64 * 64);
  }
  return places;
}

std::vector<std::size_t> entries_at(std::vector<std::pair<std::size_t, std::size_t>> rings) {
  std::vector<std::size_t> places;
  for (const auto& [begin, count] : rings) {
    for (std::size_t i = 0; i < count; ++i) places.push_back(begin + 64 * i);
  }
  return places;
}

TEST_F(DevxQueuePairTest, TheFirstContentIsFreshCompletions) {
  EXPECT_EQ(DevxQueuePair::bytes_of(kSizes), kBytes);
  const auto pair = DevxQueuePair::first_content(kSizes);
  EXPECT_EQ(pair.size(), kBytes);
  EXPECT_EQ(fresh_entries(pair), entries_at({{kSends, 64}, {kReceives, 16}}));
  // A single receive becomes four, so that the sends begin at a multiple of 64 bytes.
  EXPECT_EQ(fresh_entries(DevxQueuePair::first_content({1, 1})),
            entries_at({{0x1000, 1}, {0x2000, 4}}));
  EXPECT_EQ(DevxQueuePair::bytes_of({1, 1}), 0x4000U);
  const auto receives = DevxReceives::first_content(8);
  EXPECT_EQ(receives.size(), 0x3000U);
  EXPECT_EQ(fresh_entries(receives), entries_at({{0x1000, 8}}));
  const auto code = [](const auto& act) { return thrown_by(act).code(); };
  EXPECT_EQ(code([] { (void)DevxQueuePair::bytes_of({3, 4}); }), ErrorCode::invalid_value);
  EXPECT_EQ(code([] { (void)DevxQueuePair::bytes_of({4, 0}); }), ErrorCode::invalid_value);
  EXPECT_EQ(code([] { (void)DevxReceives::bytes_of(3); }), ErrorCode::invalid_value);
}

TEST_F(DevxQueuePairTest, ASpaceThatDoesNotFitIsRefused) {
  const auto refusal = [&](const QueueSpace& given) {
    return thrown_by([&] { DevxQueuePair(device_, domain_, kSizes, given); });
  };
  const auto small = refusal(space(kBytes - 1));
  EXPECT_EQ(small.code(), ErrorCode::no_memory);
  EXPECT_STREQ(small.what(), "queues need 20480 bytes; available are 20479");
  EXPECT_EQ(refusal({memory_[0].bytes + 64, kBytes}).code(), ErrorCode::invalid_value);
  EXPECT_EQ(refusal({nullptr, kBytes, 0, 64}).code(), ErrorCode::invalid_value);
  EXPECT_TRUE(fake_devx().spaces.empty());
  EXPECT_EQ(thrown_by([&] {
              DevxReceives(device_, domain_, 8, {memory_.data(), 0x2fff});
            }).code(),
            ErrorCode::no_memory);
  const DevxQueuePair in_dma_buf(device_, domain_, kSizes, {memory_[0].bytes + 1, kBytes, 0, 4096});
  EXPECT_TRUE(fake_devx().spaces.at(0).is_dma_buf);
}

/// A queue pair that exists, whose commands alone are looked at.
class ConnectTest : public DevxQueuePairTest {
 protected:
  ConnectTest() {
    fake_devx().calls.clear();
    rtr_.ah_attr = {};
    rtr_.ah_attr.port_num = 3;
    rtr_.ah_attr.sl = 0xd;
    rtr_.ah_attr.static_rate = 7;
    rtr_.dest_qp_num = 0x12'3456;
    rtr_.rq_psn = 0x65'4321;
    rtr_.path_mtu = IBV_MTU_2048;
    rtr_.max_dest_rd_atomic = 16;
    rtr_.min_rnr_timer = 21;
    rts_ = {.sq_psn = 0xab'cdef, .max_rd_atomic = 5, .timeout = 17, .retry_cnt = 5, .rnr_retry = 3};
  }
  /// Returns what `opcode` tells the card.
  [[nodiscard]] DevxCall change(std::uint32_t opcode, DevxWords words) const {
    words[0] = opcode << 16;
    words[8] = pair_.number();
    return {pair_.number(), 272, words};
  }

  DevxQueuePair pair_{device_, domain_, kSizes, space()};
  RtrAttributes rtr_;
  RtsAttributes rts_;
};

// Over InfiniBand: rst2init_qp_in, init2rtr_qp_in, rtr2rts_qp_in.
TEST_F(ConnectTest, AWayOverInfiniBand) {
  rtr_.ah_attr.dlid = 0x4321;
  rtr_.ah_attr.src_path_bits = 0x55;
  pair_.connect(rtr_, rts_);
  ASSERT_EQ(fake_devx().calls.size(), 3U);
  EXPECT_EQ(fake_devx().calls[0],
            change(0x502, {{0x18, 0x1800},    // pm_state
                           {0x54, 3U << 16},  // vhca_port_num
                           {0xa8, 1U << 16 | 1U << 15 | 1U << 14 |
                                      1U << 13}}));  // atomic_mode, rre, rwe, rae
  EXPECT_EQ(fake_devx().calls[1],
            change(0x503, {{0x20, 4U << 29 | 30U << 24},      // mtu, log_msg_max
                           {0x2c, 0x12'3456},                 // remote_qpn
                           {0x34, 0x55U << 16 | 0x4321},      // mlid, rlid
                           {0x38, 7U << 8},                   // stat_rate
                           {0x54, 0xdU << 24 | 3U << 16},     // sl, vhca_port_num
                           {0xa8, 4U << 21},                  // log_rra_max
                           {0xac, 21U << 24 | 0x65'4321}}));  // min_rnr_nak, next_rcv_psn
  EXPECT_EQ(
      fake_devx().calls[2],
      change(0x504, {{0x38, 17U << 27},                       // ack_timeout
                     {0x88, 2U << 21 | 5U << 16 | 3U << 13},  // log_sra_max, retry_count, rnr_retry
                     {0x90, 0xab'cdef}}));                    // next_send_psn
}

TEST_F(ConnectTest, AWayOverEthernet) {
  ibv_ah_attr& path = rtr_.ah_attr;
  path.is_global = 1;
  path.grh.sgid_index = 9;
  path.grh.hop_limit = 64;
  path.grh.traffic_class = 0xb7;
  path.grh.flow_label = 0x1'2345;
  for (int i = 0; i < 16; ++i) path.grh.dgid.raw[i] = static_cast<std::uint8_t>(0xa0 + i);
  rtr_.max_dest_rd_atomic = 0;
  pair_.ready_to_receive(rtr_);
  EXPECT_EQ(
      latest(),
      change(0x503, {{0x20, 4U << 29 | 30U << 24},
                     {0x2c, 0x12'3456},
                     {0x34, 1U << 23},                 // grh
                     {0x38, 9U << 16 | 7U << 8 | 64},  // src_addr_index, hop_limit
                     {0x3c, 0xb7U << 20 | 0x1'2345},   // tclass, flow_label
                     {0x40, 0xa0a1'a2a3},              // rgid_rip
                     {0x44, 0xa4a5'a6a7},
                     {0x48, 0xa8a9'aaab},
                     {0x4c, 0xacad'aeaf},
                     {0x50, 0x2dU << 16 | 0xc003},                       // dscp, udp_sport
                     {0x54, 5U << 28 | 0xdU << 24 | 3U << 16 | 0x0211},  // eth_prio, sl, port, rmac
                     {0x58, 0x2233'4455},
                     {0xac, 21U << 24 | 0x65'4321}}));
  EXPECT_EQ(fake().path.port_num, path.port_num);
  EXPECT_EQ(fake().path.grh.sgid_index, path.grh.sgid_index);
  EXPECT_TRUE(std::ranges::equal(fake().path.grh.dgid.raw, path.grh.dgid.raw));
}

TEST_F(ConnectTest, AGlobalRouteOverInfiniBandIsRefused) {
  fake().port.link_layer = IBV_LINK_LAYER_INFINIBAND;
  rtr_.ah_attr.is_global = 1;
  const auto error = thrown_by([&] { pair_.ready_to_receive(rtr_); });
  EXPECT_EQ(error.code(), ErrorCode::not_supported);
  EXPECT_TRUE(fake_devx().calls.empty());
}

TEST_F(ConnectTest, APeerHasTheRightsThatAreGiven) {
  using memory::Access;
  const std::pair<Access, std::uint32_t> rights[] = {{Access::remote_read, 1U << 15},
                                                     {Access::remote_write, 1U << 14},
                                                     {Access::remote_atomic, 1U << 13}};
  for (const auto& [right, bit] : rights) {
    pair_.initialize(1, right);
    EXPECT_EQ(latest().words.at(0xa8), 1U << 16 | bit);
  }
}

TEST_F(ConnectTest, OutstandingReadsAreRoundedDownToAPower) {
  for (const auto& [count, log2] : {std::pair{0, 0U}, std::pair{1, 0U}, std::pair{2, 1U},
                                    std::pair{3, 1U}, std::pair{16, 4U}, std::pair{128, 7U}}) {
    rts_ = {.max_rd_atomic = static_cast<std::uint8_t>(count), .retry_cnt = 0, .rnr_retry = 0};
    pair_.ready_to_send(rts_);
    const DevxWords& words = fake_devx().calls.back().words;
    const auto found = words.find(0x88);
    EXPECT_EQ(found == words.end() ? 0 : found->second, log2 << 21) << count;
  }
}

TEST_F(ConnectTest, ResetAndFailAreShortCommands) {
  pair_.reset();
  EXPECT_EQ(latest(), (DevxCall{pair_.number(), 16, {{0, 0x050a'0000}, {8, pair_.number()}}}));
  pair_.fail();
  EXPECT_EQ(latest(), (DevxCall{pair_.number(), 16, {{0, 0x0507'0000}, {8, pair_.number()}}}));
}

TEST_F(ConnectTest, EachCallThatFailsNamesTheStep) {
  rtr_.ah_attr.is_global = 1;
  const auto check = [&](const char* call, const std::string& text, const auto& act) {
    fake().fail_call = call;
    fake().fail_with = EREMOTEIO;
    const auto error = thrown_by(act);
    EXPECT_EQ(error.cause().status, EREMOTEIO);
    EXPECT_EQ(std::string(error.what()).substr(0, text.size()), text);
  };
  const auto receive = [&] { pair_.ready_to_receive(rtr_); };
  check("ibv_query_port", "query a port", receive);
  check("ibv_create_ah", "find the way to a peer", receive);
  check("mlx5dv_init_obj", "ask libmlx5 about an address handle", receive);
  const char* const modify = "mlx5dv_devx_obj_modify";
  check(modify, "take a queue pair to RTR", receive);
  check(modify, "take a queue pair to INIT", [&] { pair_.initialize(1, memory::kRemoteAccess); });
  check(modify, "take a queue pair to RTS", [&] { pair_.ready_to_send(rts_); });
  check(modify, "take a queue pair to RESET", [&] { pair_.reset(); });
  check(modify, "take a queue pair to ERR", [&] { pair_.fail(); });
  check("mlx5dv_devx_obj_create", "make a completion queue by devx",
        [&] { DevxQueuePair(device_, domain_, kSizes, space()); });
}

}  // namespace
}  // namespace offload::rdma::mlx5
