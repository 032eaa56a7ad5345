#include "apps/server/fair_queue.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

namespace offload::server {
namespace {

constexpr std::size_t kQuantum = 32 * 1024;

/// A sender with `wants` requests to forward.
struct Sender : FairQueueEntry {
  char name = '?';
  int wants = 0;
};

/// Senders a, b, c, ..., and a channel with some room.
class FairQueueTest : public testing::Test {
 protected:
  FairQueueTest() {
    for (std::size_t i = 0; i < senders_.size(); ++i) senders_[i].name = static_cast<char>('a' + i);
  }

  Sender& sender(char name) { return senders_[static_cast<std::size_t>(name - 'a')]; }

  /// Adds senders `names` with `wants` requests each, in this order.
  void come(const std::string& names, int wants) {
    for (const char name : names) {
      sender(name).wants = wants;
      queue_.make_ready(sender(name));
    }
  }

  /// Runs one round with room for `room` more requests; returns the senders that forwarded one, in
  /// order. A sender that is served forwards all its requests, as far as there is room.
  std::string round(int room) {
    forwarded_.clear();
    tended_ = 0;
    served_ = 0;
    worked_ = queue_.run_round([&] { return room != 0; },
                               [&](Sender& sender) {
                                 ++tended_;
                                 queue_.make_waiting(sender, false);
                                 return false;
                               },
                               [&](Sender& sender) {
                                 ++served_;
                                 for (; room != 0 && sender.wants != 0; --room, --sender.wants) {
                                   forwarded_ += sender.name;
                                 }
                                 if (sender.wants != 0) queue_.make_waiting(sender, false);
                                 return true;
                               });
    return forwarded_;
  }

  FairQueue<Sender> queue_{kQuantum};
  std::array<Sender, 26> senders_;
  std::string forwarded_;
  int tended_ = 0;
  int served_ = 0;
  bool worked_ = false;
};

TEST_F(FairQueueTest, WithNobodyThereIsNoWork) {
  EXPECT_EQ(round(9), "");
  EXPECT_FALSE(worked_);
}

TEST_F(FairQueueTest, FirstComeFirstServed) {
  come("cab", 1);
  EXPECT_EQ(round(9), "cab");
  EXPECT_TRUE(worked_);
  EXPECT_EQ(round(9), "");
  EXPECT_FALSE(worked_);
}

TEST_F(FairQueueTest, WhoGotNoRoomIsServedBeforeThoseThatComeLater) {
  come("abc", 1);
  EXPECT_EQ(round(1), "a");
  come("ade", 1);
  EXPECT_EQ(round(2), "bc");
  EXPECT_EQ(round(9), "ade");
}

TEST_F(FairQueueTest, WhoWaitsKeepsItsPlaceUntilItIsMadeReady) {
  come("abc", 1);
  EXPECT_EQ(round(0), "");
  EXPECT_TRUE(FairQueue<Sender>::is_waiting(sender('a')));
  queue_.make_ready(sender('a'));
  EXPECT_FALSE(FairQueue<Sender>::is_waiting(sender('a')));
  EXPECT_EQ(round(9), "bca");
}

TEST_F(FairQueueTest, OneDeepPipelineStarvesNobody) {
  come("a", 1000);
  come("bcd", 3);
  EXPECT_EQ(round(4), "aaaa");
  // It has more to send, and those that got no room come first.
  EXPECT_EQ(round(4), "bbbc");
  EXPECT_EQ(round(4), "ddda");
  EXPECT_EQ(round(4), "ccaa");
}

TEST_F(FairQueueTest, AllAreServedEquallyWhileTheyWantMoreThanThereIs) {
  come("abcdefgh", 1000);
  for (int i = 0; i < 8 * 5; ++i) round(2);
  for (const char name : std::string("abcdefgh")) EXPECT_EQ(sender(name).wants, 1000 - 10) << name;
}

// ---- Bytes

/// A sender of requests of `length` bytes without end.
struct Stream : FairQueueEntry {
  std::size_t length = 0;
  std::size_t had = 0;
};

/// Runs rounds in which every stream is served until its turn is over.
void run(FairQueue<Stream>& queue, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    queue.run_round([] { return true; }, [](Stream&) { return false; },
                    [&](Stream& stream) {
                      std::size_t bytes = 0;
                      while (static_cast<std::int64_t>(bytes) < queue.allowance(stream)) {
                        bytes += stream.length;
                      }
                      stream.had += bytes;
                      queue.spend(stream, bytes);
                      queue.make_waiting(stream, false);
                      return true;
                    });
  }
}

TEST(FairQueueBytes, LongAndShortRequestsGetTheSame) {
  constexpr std::size_t kLongestRequest = std::size_t{16} << 20;
  FairQueue<Stream> queue(kQuantum);
  std::array<Stream, 4> streams;
  const std::array<std::size_t, 4> lengths{12, 1000, 300'000, kLongestRequest};
  for (std::size_t i = 0; i < streams.size(); ++i) {
    streams[i].length = lengths[i];
    queue.make_waiting(streams[i], false);
  }
  run(queue, 10'000);
  for (const Stream& stream : streams) {
    EXPECT_NEAR(static_cast<double>(stream.had), static_cast<double>(streams[0].had),
                static_cast<double>(kLongestRequest + 2 * kQuantum))
        << stream.length;
  }
  EXPECT_GT(streams[0].had, 4 * kLongestRequest);
}

TEST(FairQueueBytes, ARoundEndsThoughThereIsRoom) {
  FairQueue<Stream> queue(kQuantum);
  Stream stream;
  stream.length = 64;
  queue.make_waiting(stream, false);
  run(queue, 1);
  EXPECT_GE(stream.had, static_cast<std::size_t>(queue.round()));
  EXPECT_LT(stream.had, static_cast<std::size_t>(queue.round() + 2 * queue.quantum()));
}

TEST_F(FairQueueTest, SparseOnesComeFirst) {
  come("abc", 100);
  EXPECT_EQ(round(2), "aa");
  sender('z').wants = 1;
  queue_.make_waiting(sender('z'), /*sparse=*/true);
  EXPECT_EQ(round(2), "zb");
}

TEST_F(FairQueueTest, SparseOnesDoNotStarveTheOthers) {
  come("a", 1);
  EXPECT_EQ(round(0), "");
  int sparse = 0;
  const auto serve = [&](Sender& sender) {
    if (sender.name == 'a') return sender.wants = 0, true;
    if (this->sender('a').wants != 0) ++sparse;
    queue_.spend(sender, 1000);
    queue_.make_waiting(sender, true);
    return true;
  };
  queue_.make_waiting(sender('z'), true);
  for (int i = 0; i < 10 && sender('a').wants != 0; ++i) {
    queue_.run_round([] { return true; }, [](Sender&) { return false; }, serve);
  }
  EXPECT_EQ(sender('a').wants, 0);
  EXPECT_GT(sparse, 5);
  EXPECT_LT(sparse, 100);
}

// Its first allowance is one byte, so it waits among the others from its first turn on.
TEST_F(FairQueueTest, OneThatHasSpentExactlyWhatItHadIsNotSparse) {
  come("b", 1);
  EXPECT_EQ(round(0), "");
  EXPECT_EQ(queue_.allowance(sender('a')), 1);
  queue_.spend(sender('a'), 1);
  sender('a').wants = 1;
  queue_.make_waiting(sender('a'), /*sparse=*/true);
  EXPECT_EQ(queue_.allowance(sender('a')), queue_.quantum());
  EXPECT_EQ(round(9), "ba");
}

TEST_F(FairQueueTest, OneThatHasNotSpentWhatItHadGetsNoMore) {
  queue_.make_waiting(sender('a'), /*sparse=*/false);
  EXPECT_EQ(queue_.allowance(sender('a')), 1);
}

// Both get half of the bytes: two turns of half a quantum, then one of a whole quantum.
TEST_F(FairQueueTest, SparseOnesAndTheOthersTakeTurns) {
  const auto serve = [&](Sender& sender) {
    forwarded_ += sender.name;
    queue_.spend(sender, sender.name == 'z' ? kQuantum / 2 : kQuantum);
    queue_.make_waiting(sender, /*sparse=*/sender.name == 'z');
    return true;
  };
  queue_.make_waiting(sender('a'), false);
  queue_.make_waiting(sender('z'), true);
  for (int i = 0; i < 2; ++i) {
    queue_.run_round([] { return true; }, [](Sender&) { return false; }, serve);
  }
  EXPECT_EQ(forwarded_, "zzazzazzazza") << "four quanta a round";
}

// A sender that lacks something other than room is skipped, and the round ends.
TEST_F(FairQueueTest, OneThatCannotGoOnIsNotServedAgainInTheRound) {
  come("ab", 1);
  EXPECT_EQ(round(0), "");
  const auto serve = [&](Sender& sender) {
    forwarded_ += sender.name;
    queue_.make_waiting(sender, false);
    return false;
  };
  EXPECT_FALSE(queue_.run_round([] { return true; }, [](Sender&) { return false; }, serve));
  EXPECT_EQ(forwarded_, "ab");
  EXPECT_TRUE(FairQueue<Sender>::is_waiting(sender('a')));
}

TEST_F(FairQueueTest, OneThatIsMadeReadyIsTendedInTheNextRound) {
  come("ab", 1);
  const auto again = [&](Sender& sender) {
    forwarded_ += sender.name;
    queue_.make_ready(sender);  // there is always more
    return true;
  };
  EXPECT_TRUE(queue_.run_round([] { return true; }, again, again));
  EXPECT_EQ(forwarded_, "ab");
  EXPECT_TRUE(queue_.run_round([] { return true; }, again, again));
  EXPECT_EQ(forwarded_, "abab");
}

TEST_F(FairQueueTest, ARoundCostsWhatItServesNotHowManyWait) {
  come("abcdefghijklmnopqrstuvwxyz", 1);
  EXPECT_EQ(round(0), "");
  EXPECT_EQ(tended_, 26);
  EXPECT_EQ(round(0), "");
  EXPECT_EQ(tended_ + served_, 0);
  EXPECT_EQ(round(2), "ab");
  EXPECT_EQ(tended_ + served_, 2);
}

TEST_F(FairQueueTest, OneThatWaitsOrIsReadyMayBeDestroyed) {
  auto gone = std::make_unique<Sender>();
  come("a", 1);
  queue_.make_waiting(*gone, false);
  come("b", 1);
  gone.reset();
  EXPECT_EQ(round(9), "ab");
}

TEST_F(FairQueueTest, TendingMayDestroyTheEntry) {
  auto gone = std::make_unique<Sender>();
  queue_.make_ready(*gone);
  come("a", 1);
  int calls = 0;
  const auto destroy = [&](Sender&) { return ++calls, gone.reset(), true; };
  EXPECT_TRUE(queue_.run_round([] { return true; }, destroy, destroy));
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(gone, nullptr);
}

// A served sender may change the places of those that this round has not yet reached.
TEST_F(FairQueueTest, OneThatIsStillToBeServedInTheRoundMayBeMadeReady) {
  come("abc", 1);
  EXPECT_EQ(round(0), "");
  const auto nothing = [](Sender&) { return false; };
  const auto serve = [&](Sender& served) {
    forwarded_ += served.name;
    if (served.name == 'a') queue_.make_ready(sender('c'));
    return true;
  };
  EXPECT_TRUE(queue_.run_round([] { return true; }, nothing, serve));
  EXPECT_EQ(forwarded_, "ab");
  EXPECT_EQ(round(9), "c");
}

}  // namespace
}  // namespace offload::server
