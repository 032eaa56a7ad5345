#include "rdma/verbs/gid.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/thrown.hpp"

namespace offload::rdma {
namespace {

using core::ErrorCode;
using support::thrown_by;

ibv_gid_entry entry(std::string_view address, std::uint32_t index, std::uint32_t type) {
  return {parse_gid(address), index, 1, type, 0};
}

std::vector<ibv_gid_entry> roce_table() {
  return {
      entry("fe80::1", 0, IBV_GID_TYPE_ROCE_V1),     entry("fe80::1", 1, IBV_GID_TYPE_ROCE_V2),
      entry("2001:db8::1", 2, IBV_GID_TYPE_ROCE_V1), entry("2001:db8::1", 3, IBV_GID_TYPE_ROCE_V2),
      entry("10.1.2.3", 4, IBV_GID_TYPE_ROCE_V1),    entry("10.1.2.3", 5, IBV_GID_TYPE_ROCE_V2),
      entry("10.9.9.9", 6, IBV_GID_TYPE_ROCE_V2)};
}

TEST(Gid, IsWrittenAsTheAddressThatItIs) {
  EXPECT_EQ(to_string(parse_gid("10.1.2.3")), "10.1.2.3");
  EXPECT_EQ(to_string(parse_gid("::ffff:10.1.2.3")), "10.1.2.3");
  EXPECT_EQ(to_string(parse_gid("2001:db8::1")), "2001:db8::1");
  EXPECT_EQ(family_of(parse_gid("10.1.2.3")), Family::ipv4);
  EXPECT_EQ(family_of(parse_gid("fe80::1")), Family::ipv6);
  EXPECT_TRUE(is_link_local(parse_gid("febf::1")));
  EXPECT_FALSE(is_link_local(parse_gid("fec0::1")));
  EXPECT_TRUE(is_link_local(parse_gid("fe80::")));
  EXPECT_FALSE(is_link_local(parse_gid("fe7f::1")));
  EXPECT_FALSE(is_link_local(parse_gid("ff80::1")));
  EXPECT_EQ(family_of(parse_gid("::fffe:a01:203")), Family::ipv6);
  EXPECT_EQ(family_of(parse_gid("0:0:1:0:0:ffff:a01:203")), Family::ipv6);
  EXPECT_TRUE(is_unspecified(parse_gid("::")));
  EXPECT_FALSE(is_unspecified(parse_gid("::1")));
  EXPECT_FALSE(is_unspecified(parse_gid("fe80::")));
  for (const char* text : {"", "10.1.2", "host", "10.1.2.3.4", "::g"}) {
    EXPECT_EQ(thrown_by([&] { parse_gid(text); }).code(), ErrorCode::invalid_value) << text;
  }
}

TEST(ChooseGid, TakesARoutedAddressOfRoceV2) {
  EXPECT_EQ(choose_gid(roce_table(), {}).gid_index, 5U);
  EXPECT_EQ(choose_gid(roce_table(), {Family::ipv4, {}, false}).gid_index, 5U);
  EXPECT_EQ(choose_gid(roce_table(), {Family::ipv6, {}, false}).gid_index, 3U);
}

// The user chooses the index: RoCE v1 is allowed too.
TEST(ChooseGid, AnIndexIsTheEntryWhateverElseIsSaid) {
  GidRule rule{Family::ipv4, parse_gid("10.9.9.9")};
  rule.index = 2;
  EXPECT_EQ(choose_gid(roce_table(), rule).gid_index, 2U);
  rule.index = 99;
  EXPECT_EQ(thrown_by([&] { choose_gid(roce_table(), rule); }).code(), ErrorCode::not_found);
}

TEST(ChooseGid, TakesALinkLocalOneIfThereIsNoOther) {
  const auto table = roce_table();
  EXPECT_EQ(choose_gid(std::span(table).first(2), {}).gid_index, 1U);
}

TEST(ChooseGid, TakesAnAddressOrRoceV1IfAskedFor) {
  EXPECT_EQ(choose_gid(roce_table(), {Family::any, parse_gid("10.9.9.9"), false}).gid_index, 6U);
  EXPECT_EQ(choose_gid(roce_table(), {Family::ipv6, {}, true}).gid_index, 2U);
}

TEST(ChooseGid, TakesTheEntryOfAnInterfaceOrOfOneThatIsNotTold) {
  std::vector<ibv_gid_entry> table = {entry("fe80::5", 0, IBV_GID_TYPE_ROCE_V2),
                                      entry("fe80::5", 1, IBV_GID_TYPE_ROCE_V2),
                                      entry("fe80::5", 2, IBV_GID_TYPE_ROCE_V2)};
  table[0].ndev_ifindex = 11;
  table[1].ndev_ifindex = 12;
  GidRule rule;
  EXPECT_EQ(choose_gid(table, rule).gid_index, 0U);
  rule.interface = 12;
  EXPECT_EQ(choose_gid(table, rule).gid_index, 1U);
  rule.interface = 13;
  EXPECT_EQ(choose_gid(table, rule).gid_index, 2U);
}

TEST(ChooseGid, OfInfiniBandTakesTheFirst) {
  const std::vector<ibv_gid_entry> table = {entry("fe80::1", 0, IBV_GID_TYPE_IB),
                                            entry("fe80::2", 1, IBV_GID_TYPE_IB)};
  EXPECT_EQ(choose_gid(table, {Family::ipv4, {}, false}).gid_index, 0U);
}

TEST(ChooseGid, WhatIsNotThereIsAnErrorThatListsWhatIs) {
  const auto table = roce_table();
  const auto error = thrown_by([&] {
    choose_gid(std::span(table).first(2), {Family::ipv4, {}, false});
  });
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_NE(std::string(error.what()).find("1 fe80::1 (RoCE v2)"), std::string::npos);
  EXPECT_EQ(thrown_by([] { choose_gid({}, {}); }).code(), ErrorCode::not_found);
}

}  // namespace
}  // namespace offload::rdma
