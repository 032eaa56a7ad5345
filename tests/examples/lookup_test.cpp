#include <cstdio>
#include <map>
#include <random>

#include "tests/examples/example_body.hpp"
#include "tests/support/temp_dir.hpp"
//
#include "examples/services/lookup/lookup.cu"

namespace offload::kernels::test {
namespace {

using Table = std::map<std::uint64_t, std::uint64_t>;

Table random_table(std::size_t count) {
  std::mt19937_64 random(1);
  Table table{{0, 1}, {1, ~0ULL}, {~0ULL - 1, 0}};
  while (table.size() < count) table[random()] = random();
  return table;
}

void append(Octets& octets, std::uint64_t number, std::uint32_t bytes) {
  for (std::uint32_t i = 0; i < bytes; ++i) {
    octets.push_back(static_cast<std::uint8_t>(number >> (8 * i)));
  }
}

std::string write_table(const std::string& path, const Table& table) {
  const std::string magic = "lookup-1";
  Octets content(magic.begin(), magic.end());
  append(content, table.size(), 8);
  for (const auto& [key, value] : table) {
    append(content, key, 8);
    append(content, value, 8);
  }
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  EXPECT_EQ(std::fwrite(content.data(), 1, content.size(), file), content.size());
  EXPECT_EQ(std::fclose(file), 0);
  return path;
}

template <class Runner>
void expect_right_values(std::size_t count, std::size_t step) {
  const offload::support::TempDir folder;
  const Table table = random_table(count);
  const MadeExample<Lookup> lookup({{"table", write_table(folder.file("table"), table)}});
  std::vector<Octets> messages;
  std::size_t number = 0;
  for (const auto& [key, value] : table) {
    if (number++ % step != 0) continue;
    for (const std::uint64_t asked :
         {key, key + 1, key ^ (std::uint64_t{1} << 63), ~std::uint64_t{0}}) {
      append(messages.emplace_back(), asked, 8);
    }
  }
  for (const std::size_t length : {0U, 7U, 9U, 16U, 500U}) {
    messages.push_back(random_octets(length));
  }
  expect_example_right<Runner>(*lookup, messages, 500, [&](const Octets& message) {
    Octets answer;
    if (message.size() != 8) return answer;
    std::uint64_t key = 0;
    for (std::uint32_t i = 0; i < 8; ++i) key |= std::uint64_t{message[i]} << (8 * i);
    const auto found = table.find(key);
    append(answer, found == table.end() ? 0 : 1, 4);
    append(answer, found == table.end() ? 0 : found->second, 8);
    return answer;
  });
}

}  // namespace

TEST(LookupExample, AnswersAsAMap) {
  expect_right_values<HostRunner>(20'000, 1);
}

TEST(LookupExample, AnswersAsAMapByAWarp) {
  expect_right_values<ExampleWarp>(1000, 50);
}

TEST(LookupExample, OfATableOfThreeKeys) {
  expect_right_values<HostRunner>(3, 1);
}

}  // namespace offload::kernels::test
