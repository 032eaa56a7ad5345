#include "rdma/verbs/gid.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/thrown.hpp"

namespace offload::rdma {
namespace {

using core::ErrorCode;
using support::thrown_by;

std::vector<Gid> roce_table() {
  return {{parse_gid("fe80::1"), 0, GidType::roce_v1},
          {parse_gid("fe80::1"), 1, GidType::roce_v2},
          {parse_gid("2001:db8::1"), 2, GidType::roce_v1},
          {parse_gid("2001:db8::1"), 3, GidType::roce_v2},
          {parse_gid("10.1.2.3"), 4, GidType::roce_v1},
          {parse_gid("10.1.2.3"), 5, GidType::roce_v2},
          {parse_gid("10.9.9.9"), 6, GidType::roce_v2}};
}

TEST(Gid, IsWrittenAsTheAddressThatItIs) {
  EXPECT_EQ(to_string(parse_gid("10.1.2.3")), "10.1.2.3");
  EXPECT_EQ(to_string(parse_gid("::ffff:10.1.2.3")), "10.1.2.3");
  EXPECT_EQ(to_string(parse_gid("2001:db8::1")), "2001:db8::1");
  EXPECT_EQ(family_of(parse_gid("10.1.2.3")), Family::ipv4);
  EXPECT_EQ(family_of(parse_gid("fe80::1")), Family::ipv6);
  EXPECT_TRUE(is_link_local(parse_gid("febf::1")));
  EXPECT_FALSE(is_link_local(parse_gid("fec0::1")));
  EXPECT_TRUE(is_unspecified(parse_gid("::")));
  EXPECT_FALSE(is_unspecified(parse_gid("::1")));
  EXPECT_FALSE(is_unspecified(parse_gid("fe80::")));
  for (const char* text : {"", "10.1.2", "host", "10.1.2.3.4", "::g"}) {
    EXPECT_EQ(thrown_by([&] { parse_gid(text); }).code(), ErrorCode::invalid_value) << text;
  }
}

TEST(ChooseGid, TakesARoutedAddressOfRoceV2) {
  EXPECT_EQ(choose_gid(roce_table(), {}).index, 5);
  EXPECT_EQ(choose_gid(roce_table(), {Family::ipv4, {}, false}).index, 5);
  EXPECT_EQ(choose_gid(roce_table(), {Family::ipv6, {}, false}).index, 3);
}

TEST(ChooseGid, TakesALinkLocalOneIfThereIsNoOther) {
  const auto table = roce_table();
  EXPECT_EQ(choose_gid(std::span(table).first(2), {}).index, 1);
}

TEST(ChooseGid, TakesAnAddressOrRoceV1IfAskedFor) {
  EXPECT_EQ(choose_gid(roce_table(), {Family::any, parse_gid("10.9.9.9"), false}).index, 6);
  EXPECT_EQ(choose_gid(roce_table(), {Family::ipv6, {}, true}).index, 2);
}

TEST(ChooseGid, OfInfiniBandTakesTheFirst) {
  const std::vector<Gid> table = {{parse_gid("fe80::1"), 0, GidType::infiniband},
                                  {parse_gid("fe80::2"), 1, GidType::infiniband}};
  EXPECT_EQ(choose_gid(table, {Family::ipv4, {}, false}).index, 0);
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
