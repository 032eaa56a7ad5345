#include "net/source/make_room.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <string>

namespace offload::net {
namespace {

struct Peer {
  char source;
  int number;
};

/// Returns the peers that must make room in a row of peers, each given by the letter of its source:
/// for each the source and its place in the row.
std::string chosen(const std::string& sources, std::size_t count) {
  std::deque<Peer> peers;
  std::vector<Peer*> all;
  for (const char source : sources) {
    peers.push_back({source, static_cast<int>(peers.size())});
    all.push_back(&peers.back());
  }
  std::string text;
  for (const Peer* const peer : choose_to_make_room(
           all, count, [](const Peer& of) { return Source{static_cast<std::byte>(of.source)}; })) {
    text += peer->source + std::to_string(peer->number);
  }
  return text;
}

TEST(ChooseToMakeRoom, TheSourceThatHasTheMostPays) {
  EXPECT_EQ(chosen("abbbc", 1), "b1");
  EXPECT_EQ(chosen("abbbc", 2), "b1b2");
  EXPECT_EQ(chosen("cbaabba", 2), "b1a2");
}

TEST(ChooseToMakeRoom, NoSourcePaysForOneThatHasMore) {
  EXPECT_EQ(chosen("aaaaabbb", 2), "a0a1");
  EXPECT_EQ(chosen("aaaaabbb", 4), "a0a1a2b5");
}

TEST(ChooseToMakeRoom, OfEqualOnesTheFirst) {
  EXPECT_EQ(chosen("cab", 1), "c0");
  EXPECT_EQ(chosen("abab", 1), "a0");
}

TEST(ChooseToMakeRoom, NoMoreThanThereAre) {
  EXPECT_EQ(chosen("ab", 5), "a0b1");
  EXPECT_EQ(chosen("", 1), "");
  EXPECT_EQ(chosen("ab", 0), "");
}

}  // namespace
}  // namespace offload::net
