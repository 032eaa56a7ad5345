#include <array>
#include <bitset>
#include <cstdio>
#include <random>

#include "tests/examples/example_body.hpp"
#include "tests/support/temp_dir.hpp"
//
#include "examples/services/grep/grep.cu"

namespace offload::kernels::test {
namespace {

using Classes = std::vector<std::bitset<256>>;

/// One pattern at every place, one position after the other.
Octets grep_plainly(const std::vector<Classes>& patterns, const Octets& message) {
  std::uint64_t mask = 0;
  std::uint32_t first = ~0U;
  for (std::size_t number = 0; number < patterns.size(); ++number) {
    const Classes& pattern = patterns[number];
    for (std::size_t at = 0; at + pattern.size() <= message.size(); ++at) {
      std::size_t matched = 0;
      while (matched < pattern.size() && pattern[matched][message[at + matched]]) ++matched;
      if (matched != pattern.size()) continue;
      mask |= std::uint64_t{1} << number;
      first = std::min(first, static_cast<std::uint32_t>(at));
      break;
    }
  }
  Octets answer;
  for (std::uint32_t i = 0; i < 8; ++i)
    answer.push_back(static_cast<std::uint8_t>(mask >> (8 * i)));
  for (std::uint32_t i = 0; i < 4; ++i) {
    answer.push_back(static_cast<std::uint8_t>(first >> (8 * i)));
  }
  return answer;
}

/// A pattern of classes [x-y], as text and as sets.
std::pair<std::string, Classes> random_pattern(std::minstd_rand& random, std::size_t length) {
  std::string text;
  Classes classes;
  for (std::size_t i = 0; i < length; ++i) {
    const auto first = static_cast<std::uint32_t>(random() >> 8) % 128;
    const std::uint32_t last = first + 64 + static_cast<std::uint32_t>(random() >> 8) % 64;
    std::array<char, 16> range{};
    std::snprintf(range.data(), range.size(), "[\\x%02x-\\x%02x]", first, last);
    text += range.data();
    auto& set = classes.emplace_back();
    for (std::uint32_t byte = first; byte <= last; ++byte) set[byte] = true;
  }
  return {text, classes};
}

template <class Runner>
void expect_right_matches(std::uint32_t step) {
  std::minstd_rand random(7);
  for (const std::size_t count : {1U, 3U, 64U}) {
    const offload::support::TempDir folder;
    std::vector<Classes> patterns;
    std::string lines;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t length = count == 1 ? 7 : 1 + static_cast<std::size_t>(random() >> 8) % 20;
      auto [text, classes] = random_pattern(random, length);
      lines += text + "\n";
      patterns.push_back(std::move(classes));
    }
    std::FILE* const file = std::fopen(folder.file("patterns").c_str(), "w");
    EXPECT_GE(std::fputs(lines.c_str(), file), 0);
    EXPECT_EQ(std::fclose(file), 0);
    const MadeExample<Grep> made({{"patterns", folder.file("patterns")}});
    expect_example_right<Runner>(
        *made, example_messages(step), kExampleLongest,
        [&](const Octets& message) { return grep_plainly(patterns, message); });
  }
}

}  // namespace

TEST(GrepExample, AnswersAsAPlainSearch) {
  expect_right_matches<HostRunner>(1);
}

TEST(GrepExample, AnswersAsAPlainSearchByAWarp) {
  expect_right_matches<ExampleWarp>(13);
}

// The one match of a long message, across every border of two lanes' stretches.
TEST(GrepExample, FindsWhatCrossesStretches) {
  const MadeExample<Grep> made(ExampleOptions{{"pattern", "needle"}});
  std::vector<Octets> messages;
  for (std::uint32_t at = 0; at < 2042; at += 61) {
    Octets message(2048, 'n');
    const std::string needle = "needle";
    std::copy(needle.begin(), needle.end(), message.begin() + at);
    messages.push_back(message);
  }
  Classes needle;
  for (const char character : std::string("needle")) {
    needle.emplace_back()[static_cast<std::uint8_t>(character)] = true;
  }
  expect_example_right<ExampleWarp>(*made, messages, 2048, [&](const Octets& message) {
    return grep_plainly({needle}, message);
  });
}

}  // namespace offload::kernels::test
