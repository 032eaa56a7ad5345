#include "results/json_field.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "core/error.hpp"

namespace offload::results {
namespace {

using nlohmann::json;

/// Returns the refusal of a call; empty: there is none.
template <class Call>
std::string refused(Call call) {
  try {
    call();
  } catch (const core::Error& error) {
    return error.what();
  }
  return "";
}

TEST(JsonField, ValuesMayBeAsLargeAsTheirLimits) {
  const json value = {{"count", std::uint64_t{1} << 53}, {"number", 5}, {"list", {1U, 2U}}};
  const JsonField root(value, "a.json");
  EXPECT_EQ(root.at("count").count(), std::uint64_t{1} << 53);
  EXPECT_EQ(root.at("number").number(5), 5);
  EXPECT_EQ(root.at("list").elements(2).size(), 2U);
  EXPECT_EQ(root.members(3).size(), 3U);
}

TEST(JsonField, LargerValuesAreRefusedByName) {
  const json value = {{"count", (std::uint64_t{1} << 53) + 1}, {"number", 5}, {"list", {1U, 2U}}};
  const JsonField root(value, "a.json");
  EXPECT_EQ(refused([&] { (void)root.at("count").count(); }),
            "'a.json' count is not a whole number from 0 to 2^53");
  EXPECT_EQ(refused([&] { (void)root.at("number").number(4); }),
            "'a.json' number is not from 0 to 4");
  EXPECT_EQ(refused([&] { (void)root.at("list").elements(1); }),
            "'a.json' list has more than 1 elements");
  EXPECT_EQ(refused([&] { (void)root.members(2); }), "'a.json' has more than 2 members");
  EXPECT_EQ(root.at("list").elements(2)[1].count(), 2U);
  EXPECT_EQ(refused([&] { (void)root.at("list").elements(2)[1].text(); }),
            "'a.json' list[1] is not text");
}

TEST(JsonField, TextMayBeNestedToALimit) {
  const auto nested = [](std::size_t levels) {
    return std::string(levels, '[') + "1" + std::string(levels, ']');
  };
  EXPECT_EQ(refused([&] { (void)parse_json(nested(16), "a.json"); }), "");
  EXPECT_EQ(refused([&] { (void)parse_json(nested(17), "a.json"); }),
            "'a.json' is nested more than 16 levels deep");
}

TEST(JsonField, AnOptionIsAScalarOrAnArrayOfThem) {
  const auto option = [](const json& value) { return JsonField(value, "a.json").scalar_json(); };
  EXPECT_EQ(option(1.5), "1.5");
  EXPECT_EQ(option(json::array({1, "two"})), "[1,\"two\"]");
  for (const json& value : {json::object({{"a", 1}}), json::array({1, json::array({2})})}) {
    EXPECT_NE(refused([&] { (void)option(value); }).find("is neither a scalar nor an array"),
              std::string::npos);
  }
  EXPECT_EQ(plain_text("\"two\""), "two");
  EXPECT_EQ(plain_text("null"), "–");
  EXPECT_EQ(plain_text("[1]"), "[1]");
}

}  // namespace
}  // namespace offload::results
