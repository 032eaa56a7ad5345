#include "rdma/mlx5/devx.hpp"

#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include "tests/rdma/fake_devx.hpp"
#include "tests/rdma/fake_fixture.hpp"
#include "tests/rdma/fake_mlx5.hpp"
#include "tests/support/thrown.hpp"

/// Commands are expected word by word, as the layouts of mlx5_ifc.h of the Linux kernel have them.
namespace offload::rdma::mlx5 {
namespace {

using core::ErrorCode;
using support::thrown_by;
using test::DevxCall;
using test::DevxSpace;
using test::DevxWords;
using test::fake;
using test::fake_devx;
using test::FakeDevx;

class DevxTest : public FakeDeviceTest {
 protected:
  DevxTest() {
    test::reset_fake_mlx5();
    fake_devx() = {};
  }

  std::array<std::byte, 2 * kRingAlignment> memory_{};
  DeviceContext device_{"fake0"};
};

// query_hca_cap_in: opcode and op_mod. cmd_hca_cap: cd, wait_on_time; cmd_hca_cap_2:
// send_dbr_mode_no_dbr_ext.
TEST_F(DevxTest, AbilitiesOfBothGroups) {
  constexpr std::uint32_t kGeneral = 1;
  constexpr std::uint32_t kSecondGroup = 0x41;
  const auto abilities = [&](const DevxWords& general, const DevxWords& second) {
    fake_devx().answers = {{kGeneral, general}, {kSecondGroup, second}};
    const CardAbilities told = query_abilities(device_);
    return std::array{told.waits_for_completions, told.waits_for_times, told.rings_without_record};
  };
  constexpr std::uint32_t kEach = ~0U;
  EXPECT_EQ(abilities({}, {}), (std::array{false, false, false}));
  EXPECT_EQ(abilities({{0x54, 1U << 19}}, {}), (std::array{true, false, false}));
  EXPECT_EQ(abilities({{0x54, ~(1U << 19)}}, {}), (std::array{false, false, false}));
  EXPECT_EQ(abilities({{0xe0, 1U << 19}}, {}), (std::array{false, true, false}));
  EXPECT_EQ(abilities({{0xe0, ~(1U << 19)}}, {}), (std::array{false, false, false}));
  EXPECT_EQ(abilities({}, {{0x6c, 1U << 30}}), (std::array{false, false, true}));
  EXPECT_EQ(abilities({{0x6c, kEach}}, {{0x54, kEach}, {0xe0, kEach}, {0x6c, ~(1U << 30)}}),
            (std::array{false, false, false}));
  ASSERT_EQ(fake_devx().calls.size(), 14U);
  EXPECT_EQ(fake_devx().calls[0], (DevxCall{0, 16, {{0, 0x0100'0000}, {4, kGeneral}}}));
  EXPECT_EQ(fake_devx().calls[1], (DevxCall{0, 16, {{0, 0x0100'0000}, {4, kSecondGroup}}}));
}

TEST_F(DevxTest, AnotherDeviceIsAskedForNothing) {
  test::fake_mlx5().drives = false;
  const auto refused = [&](const auto& make) {
    const auto error = thrown_by(make);
    EXPECT_EQ(error.code(), ErrorCode::not_supported);
    EXPECT_STREQ(error.what(), "fake0 is not an mlx5 card");
  };
  refused([&] { (void)query_abilities(device_); });
  refused([&] { CardSpace(device_, {memory_.data(), memory_.size()}); });
  refused([&] { CardRegisters(device_, RegisterKind::shared); });
  EXPECT_TRUE(fake_devx().calls.empty());
  EXPECT_TRUE(fake_devx().spaces.empty());
  EXPECT_TRUE(fake_devx().kinds.empty());
}

TEST_F(DevxTest, MemoryOfTheHostAndOfADmaBuf) {
  constexpr std::uint64_t kPagesOf4KiB = 0xffff'ffff'ffff'f000;
  const CardSpace host(device_, {memory_.data(), memory_.size()});
  const CardSpace first(device_, {memory_.data(), 100, 0, 0x7000});
  const CardSpace other(device_, {nullptr, 200, 7, 0});
  EXPECT_EQ(host.number(), FakeDevx::kFirstSpace);
  EXPECT_EQ(first.number(), FakeDevx::kFirstSpace + 1);
  EXPECT_EQ(other.number(), FakeDevx::kFirstSpace + 2);
  const std::vector<DevxSpace> expected{
      {memory_.data(), 8192, IBV_ACCESS_LOCAL_WRITE, kPagesOf4KiB, false, 0},
      {reinterpret_cast<void*>(0x7000), 100, IBV_ACCESS_LOCAL_WRITE, kPagesOf4KiB, true, 0},
      {nullptr, 200, IBV_ACCESS_LOCAL_WRITE, kPagesOf4KiB, true, 7}};
  EXPECT_EQ(fake_devx().spaces, expected);
}

TEST_F(DevxTest, RegistersOfEachKind) {
  const CardRegisters shared(device_);
  const CardRegisters dedicated(device_, RegisterKind::dedicated);
  const CardRegisters combining(device_, RegisterKind::combining);
  EXPECT_EQ(fake_devx().kinds, (std::vector<std::uint32_t>{1, 0x8000'0000, 0}));
  EXPECT_EQ(combining.number(), FakeDevx::kFirstRegisters + 2);
  const auto place = [&](const std::uint64_t* doorbell) {
    return reinterpret_cast<const std::byte*>(doorbell) - fake_devx().page;
  };
  EXPECT_EQ(place(shared.doorbell(true)), 0x800);
  EXPECT_EQ(place(shared.doorbell(false)), 0x600);
}

TEST_F(DevxTest, ACompletionQueueInASpace) {
  const CardSpace first(device_, {memory_.data(), 100});
  const CardSpace space(device_, {memory_.data(), 100});
  const CardRegisters registers(device_);
  const RingPlace place{0x1'2345'6000, 0x2'3456'7040};
  const CardObject checked = make_card_completions(device_, space, registers, place, 13);
  const CardObject other = make_card_completions(device_, space, registers, place, 13, false);
  EXPECT_EQ(checked.number(), FakeDevx::kFirstObject);
  EXPECT_EQ(other.number(), FakeDevx::kFirstObject + 1);
  DevxWords words{{0x00, 0x0400'0000},
                  {0x10, 0x0200'0000},                            // dbr_umem_valid
                  {0x14, FakeDevx::kFirstSpace + 1},              // dbr_umem_id
                  {0x1c, 13U << 24 | FakeDevx::kFirstRegisters},  // log_cq_size, uar_page
                  {0x24, FakeDevx::kEvents},                      // c_eqn
                  {0x48, 0x2},                                    // dbr_addr
                  {0x4c, 0x3456'7040},
                  {0x50, 0x1},  // cq_umem_offset
                  {0x54, 0x2345'6000},
                  {0x58, FakeDevx::kFirstSpace + 1},  // cq_umem_id
                  {0x5c, 0x8000'0000}};               // cq_umem_valid
  ASSERT_EQ(fake_devx().calls.size(), 2U);
  EXPECT_EQ(fake_devx().calls[0], (DevxCall{0, 272, words}));
  words[0x10] |= 0x0002'0000;  // oi
  EXPECT_EQ(fake_devx().calls[1], (DevxCall{0, 272, words}));
}

TEST_F(DevxTest, ANumberOfADomain) {
  const ProtectionDomain domain(device_);
  EXPECT_EQ(number_of(domain), FakeDevx::kDomain);
}

TEST_F(DevxTest, EntriesThatAreFreshBelongToTheCard) {
  std::vector<kernels::rdma::Cqe> entries(3);
  for (auto& entry : entries) std::ranges::fill(entry.words, 0x5555'5555);
  mark_fresh(std::span(entries).first(2));
  for (const auto& [place, expected] :
       {std::pair{0U, 0xf1}, std::pair{1U, 0xf1}, std::pair{2U, 0x55}}) {
    const auto bytes = std::as_bytes(std::span(entries)).subspan(64 * place, 64);
    EXPECT_EQ(std::to_integer<int>(bytes[63]), expected)
        << place;  // MLX5_CQE_INVALID, the owner's bit
    EXPECT_EQ(std::to_integer<int>(bytes[59]), 0x55) << place;
  }
}

TEST(WholePages, AreThoseThatHoldTheBytes) {
  EXPECT_EQ(whole_pages(0), 0U);
  EXPECT_EQ(whole_pages(1), 4096U);
  EXPECT_EQ(whole_pages(4096), 4096U);
  EXPECT_EQ(whole_pages(4097), 8192U);
}

TEST_F(DevxTest, EachCallThatFailsIsAnError) {
  const ProtectionDomain domain(device_);
  const CardSpace space(device_, {memory_.data(), 100});
  const CardRegisters registers(device_);
  CardObject queue = make_card_completions(device_, space, registers, {}, 3);
  const auto complete = [&] { make_card_completions(device_, space, registers, {}, 3); };
  const auto change = [&] {
    ShortDevxCommand command;
    queue.change(command, DevxOpcode::to_error, "change it");
  };
  const auto check = [&](const char* call, const std::string& text, const auto& act) {
    fake().fail_call = call;
    fake().fail_with = EREMOTEIO;
    const auto error = thrown_by(act);
    EXPECT_EQ(error.cause().status, EREMOTEIO) << call;
    EXPECT_EQ(std::string(error.what()).substr(0, text.size()), text);
  };
  check("mlx5dv_devx_general_cmd", "ask fake0 for its abilities by devx",
        [&] { (void)query_abilities(device_); });
  check("mlx5dv_devx_umem_reg_ex", "make memory for queues known to fake0", [&] {
    CardSpace(device_, {memory_.data(), 100});
  });
  check("mlx5dv_devx_alloc_uar", "allocate registers of fake0",
        [&] { CardRegisters(device_, RegisterKind::shared); });
  check("mlx5dv_devx_query_eqn", "ask for the card's queue of events", complete);
  check("mlx5dv_devx_obj_create", "make a completion queue by devx", complete);
  check("mlx5dv_devx_obj_modify", "change it", change);
  check("mlx5dv_init_obj", "ask libmlx5 about a protection domain",
        [&] { (void)number_of(domain); });
  fake().fail_call.clear();
  fake_devx().calls.clear();
  change();
  EXPECT_EQ(fake_devx().calls.at(0),
            (DevxCall{queue.number(), 16, {{0, 0x0507'0000}, {8, queue.number()}}}));
}

}  // namespace
}  // namespace offload::rdma::mlx5
