#include "tasks/sync/sync_event.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <optional>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "protocol/bytes.hpp"
#include "protocol/envelope.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/thrown.hpp"

namespace offload::sync {

/// gtest looks for it in this namespace: it names the tests.
static std::ostream& operator<<(std::ostream& out, WaitMode wait) {
  switch (wait) {
    case WaitMode::spin: return out << "spin";
    case WaitMode::yield: return out << "yield";
    case WaitMode::block: return out << "block";
  }
  return out << "unknown";
}

namespace {

using namespace std::chrono_literals;
using core::ErrorCode;
using support::thrown_by;

constexpr core::Duration kLimit = support::kBound;

core::Fd duplicate(int fd) {
  return core::Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

SyncEvent imported(const SyncEvent& event) {
  const auto exported = event.export_to_process();
  return SyncEvent::import(exported.blob, duplicate(exported.fd));
}

TEST(SyncEvent, StartsAtZero) {
  const SyncEvent event(SyncEvent::Options{});
  EXPECT_EQ(event.get(), 0U);
  EXPECT_EQ(event.publisher(), Publisher::cpu);
}

TEST(SyncEvent, SetAddGet) {
  SyncEvent event(SyncEvent::Options{});
  event.set(0xffff'ffff'0000'0001);
  EXPECT_EQ(event.get(), 0xffff'ffff'0000'0001);
  EXPECT_EQ(event.add(41), 0xffff'ffff'0000'0001);
  EXPECT_EQ(event.get(), 0xffff'ffff'0000'002a);
}

class Waits : public testing::TestWithParam<WaitMode> {
 protected:
  SyncEvent event_{SyncEvent::Options{}};
};
INSTANTIATE_TEST_SUITE_P(SyncEvent, Waits,
                         testing::Values(WaitMode::spin, WaitMode::yield, WaitMode::block),
                         testing::PrintToStringParamName());

TEST_P(Waits, ReturnsAtOnceForWhatHasCome) {
  event_.set(7);
  EXPECT_TRUE(event_.wait_greater(6, GetParam(), core::Duration{}));
  EXPECT_FALSE(event_.wait_greater(7, GetParam(), core::Duration{}));
}

TEST_P(Waits, GivesUpAtItsLimit) {
  event_.set(7);
  const auto before = core::Clock::now();
  EXPECT_FALSE(event_.wait_greater(7, GetParam(), 20ms));
  EXPECT_GE(core::Clock::now() - before, 20ms);
}

TEST_P(Waits, AnEndlessLimitIsNoOverflow) {
  event_.set(1);
  EXPECT_TRUE(event_.wait_greater(0, GetParam(), core::Duration::max()));
  std::thread publisher([&] { event_.set(2); });
  EXPECT_TRUE(event_.wait_greater(1, GetParam(), core::Duration::max()));
  publisher.join();
}

/// Two threads answer each other: no wake-up may be lost, or come early.
TEST_P(Waits, PingPong) {
  constexpr std::uint64_t kTurns = 2'000;
  SyncEvent answer{SyncEvent::Options{}};
  std::thread other([&] {
    for (std::uint64_t turn = 0; turn < kTurns; ++turn) {
      if (!event_.wait_greater(turn, GetParam(), kLimit)) return;
      answer.add(1);
    }
  });
  std::uint64_t answered = 0;
  while (answered < kTurns) {
    event_.set(answered + 1);
    if (!answer.wait_greater(answered, GetParam(), kLimit)) break;
    ASSERT_EQ(answer.get(), ++answered);
  }
  EXPECT_EQ(answered, kTurns);
  other.join();
}

TEST_P(Waits, OnePublisherWakesAllSubscribers) {
  std::vector<std::thread> subscribers;
  std::atomic<int> woken{0};
  for (int i = 0; i < 4; ++i) {
    subscribers.emplace_back([&] {
      if (event_.wait_greater(0, GetParam(), kLimit)) ++woken;
    });
  }
  event_.add(1);
  for (auto& subscriber : subscribers) subscriber.join();
  EXPECT_EQ(woken, 4);
}

/// A waiter sees the writes that were made before the event was published.
TEST_P(Waits, OrdersWhatWasWrittenBefore) {
  int written = 0;  // plain: ThreadSanitizer would tell
  std::thread publisher([&] {
    written = 42;
    event_.set(1);
  });
  EXPECT_TRUE(event_.wait_greater(0, GetParam(), kLimit));
  EXPECT_EQ(written, 42);
  publisher.join();
}

/// The publisher stores without a wake-up, as a GPU does.
TEST_P(Waits, EndWhenTheBitsOfAMaskDiffer) {
  SyncEvent event(SyncEvent::Options{});
  event.set(0x1200);
  EXPECT_TRUE(event.wait_not_equal(0x1300, 0xff00, GetParam(), {}));
  EXPECT_FALSE(event.wait_not_equal(0x1234, 0xff00, GetParam(), std::chrono::milliseconds(2)));
  EXPECT_FALSE(event.wait_not_equal(0, 0, GetParam(), {}));  // no bit can differ
  const std::jthread publisher([&] {
    event.add(0x34);  // not of the mask
    event.add(0x100);
  });
  EXPECT_TRUE(event.wait_not_equal(0x1200, 0xff00, GetParam(), std::chrono::seconds(10)));
  EXPECT_EQ(event.get() & 0xff00, 0x1300U);
}

TEST_P(Waits, EndWhenTheBitsOfAMaskAreThoseOfAValue) {
  event_.set(0x1234);
  EXPECT_TRUE(event_.wait_equal(0x12ff, 0xff00, GetParam(), {}));
  EXPECT_TRUE(event_.wait_equal(7, 0, GetParam(), {}));  // no bit counts
  EXPECT_FALSE(event_.wait_equal(0x1235, ~std::uint64_t{0}, GetParam(), 2ms));
  EXPECT_FALSE(event_.wait_greater(0x34, 0xff, GetParam(), 2ms));
  EXPECT_TRUE(event_.wait_greater(0x33, 0xff, GetParam(), {}));
  const std::jthread publisher([&] { event_.set(0x1300); });
  EXPECT_TRUE(event_.wait_equal(0x1300, 0xff00, GetParam(), kLimit));
}

TEST(SyncEvent, LiesInMemoryOfTheCaller) {
  kernels::SyncEventWords words{};
  words.value = 7;
  SyncEvent event(words, Publisher::cpu);
  EXPECT_EQ(event.get(), 7U);
  event.add(2);
  EXPECT_EQ(words.value, 9U);
  EXPECT_EQ(event.memory().data(), reinterpret_cast<std::byte*>(&words));
  EXPECT_EQ(event.memory().size(), sizeof words);
  const std::jthread publisher([&] {
    SyncEvent same(words, Publisher::cpu);
    same.set(10);
  });
  EXPECT_TRUE(event.wait_greater(9, WaitMode::block, std::chrono::seconds(10)));
  try {
    static_cast<void>(event.export_to_process());
    FAIL();
  } catch (const core::Error& error) {
    EXPECT_EQ(error.code(), core::ErrorCode::not_supported);
  }
}

TEST(SyncEvent, KernelsWaitForOtherBitsGivesUp) {
  SyncEvent event(SyncEvent::Options{});
  event.set(5);
  int polls = 0;
  const auto give_up = [&] { return ++polls == 3; };
  EXPECT_FALSE(kernels::sync_event_wait_not_equal(event.words(), 4, 6, give_up));
  EXPECT_EQ(polls, 3);
  EXPECT_TRUE(kernels::sync_event_wait_not_equal(event.words(), 4, 1, give_up));
}

TEST(SyncEvent, APublisherThatCannotWakeIsLookedAfter) {
  SyncEvent event({"gpu-event", Publisher::gpu, -1});
  std::thread gpu([&] { kernels::sync_event_set(event.words(), 1); });
  EXPECT_TRUE(event.wait_greater(0, WaitMode::block, kLimit));
  gpu.join();
}

/// Returns how often a thread of this process has slept.
unsigned long sleeps_of(long thread) {
  std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/status");
  const std::string wanted = "voluntary_ctxt_switches:";
  for (std::string word; status >> word;) {
    unsigned long count = 0;
    if (word == wanted && status >> count) return count;
  }
  return 0;
}

/// A GPU wakes no thread, so each sleep is short: this many of the longest take 50 s.
TEST(SyncEvent, AGpuIsLookedAfterOften) {
  constexpr unsigned long kLooks = 500;
  SyncEvent event({"gpu-event", Publisher::gpu, -1});
  const long waiter = ::syscall(SYS_gettid);
  std::thread gpu([&] {
    const unsigned long before = sleeps_of(waiter);
    EXPECT_TRUE(support::eventually([&] { return sleeps_of(waiter) >= before + kLooks; }));
    kernels::sync_event_set(event.words(), 1);
  });
  EXPECT_TRUE(event.wait_greater(0, WaitMode::block, 2 * kLimit));
  gpu.join();
}

/// The test's own sleepers look at nothing by themselves.
TEST(SyncEvent, AllThatSleepAreWoken) {
  SyncEvent event({});
  std::atomic<int> woken{0};
  std::vector<std::thread> sleepers;
  for (int i = 0; i < 4; ++i) {
    sleepers.emplace_back([&] {
      const timespec limit{5, 0};
      __atomic_fetch_add(&event.words().sleepers, 1, __ATOMIC_RELAXED);
      const auto result =
          ::syscall(SYS_futex, &event.words().value, FUTEX_WAIT, 0, &limit, nullptr, 0);
      if (result == 0 || errno != ETIMEDOUT) ++woken;
    });
  }
  EXPECT_TRUE(support::eventually(
      [&] { return __atomic_load_n(&event.words().sleepers, __ATOMIC_RELAXED) == 4; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  event.set(1);
  for (std::thread& sleeper : sleepers) sleeper.join();
  EXPECT_EQ(woken, 4);
}

/// The publisher acts as if it had been killed between the two.
TEST(SyncEvent, APublisherThatStoredAndDidNotWakeIsNoticed) {
  SyncEvent event(SyncEvent::Options{});
  std::thread publisher([&] {
    EXPECT_TRUE(support::eventually(
        [&] { return __atomic_load_n(&event.words().sleepers, __ATOMIC_RELAXED) != 0; }));
    kernels::sync_event_set(event.words(), 1);
  });
  EXPECT_TRUE(event.wait_greater(0, WaitMode::block, kLimit));
  publisher.join();
}

TEST(SyncEvent, AddsOfManyThreadsAllCount) {
  SyncEvent event(SyncEvent::Options{});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 10'000; ++n) event.add(3);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(event.get(), 120'000U);
}

TEST(SyncEvent, KernelsWaitGivesUp) {
  SyncEvent event(SyncEvent::Options{});
  int looks = 0;
  EXPECT_FALSE(kernels::sync_event_wait_greater(event.words(), 0, [&] { return ++looks == 3; }));
  EXPECT_EQ(looks, 3);
  event.set(1);
  EXPECT_TRUE(kernels::sync_event_wait_greater(event.words(), 0, [] { return true; }));
}

TEST(SyncEventExport, AnImportIsTheSameEvent) {
  SyncEvent event({"shared", Publisher::gpu, -1});
  SyncEvent other = imported(event);
  EXPECT_EQ(other.publisher(), Publisher::gpu);
  event.set(5);
  EXPECT_EQ(other.get(), 5U);
  other.add(1);
  EXPECT_EQ(event.get(), 6U);
}

TEST(SyncEventExport, WakesAnotherProcess) {
  SyncEvent ping({});
  SyncEvent pong({});
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    SyncEvent child_ping = imported(ping);
    SyncEvent child_pong = imported(pong);
    for (std::uint64_t turn = 0; turn < 100; ++turn) {
      if (!child_ping.wait_greater(turn, WaitMode::block, kLimit)) std::_Exit(1);
      child_pong.add(1);
    }
    std::_Exit(0);
  }
  for (std::uint64_t turn = 0; turn < 100; ++turn) {
    ping.add(1);
    ASSERT_TRUE(pong.wait_greater(turn, WaitMode::block, kLimit));
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(SyncEventExport, OutlivesItsMaker) {
  std::optional<SyncEvent> event(std::in_place, SyncEvent::Options{});
  event->set(9);
  SyncEvent other = imported(*event);
  event.reset();
  EXPECT_EQ(other.get(), 9U);
}

TEST(SyncEventExport, AnotherProcessFindsItInPlace) {
  SyncEvent event({"in place", Publisher::gpu, -1});
  const auto blob = event.export_in_place();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(30);
    SyncEvent found = SyncEvent::import_in_place(blob);
    if (found.publisher() != Publisher::gpu || &found.words() == &event.words()) std::_Exit(1);
    for (int i = 0; i < 10'000; ++i) found.add(1);
    std::_Exit(found.wait_greater(20'000, WaitMode::yield, kLimit) ? 0 : 2);
  }
  for (int i = 0; i < 10'000; ++i) event.add(1);
  EXPECT_TRUE(event.wait_equal(20'000, ~std::uint64_t{0}, WaitMode::yield, kLimit));
  event.add(1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(SyncEventExport, ADescriptionOfWhatIsGoneIsNotFound) {
  const auto code_of = [](const support::Bytes& blob) {
    return thrown_by([&] { SyncEvent::import_in_place(blob); }).code();
  };
  std::optional<SyncEvent> event(std::in_place, SyncEvent::Options{});
  const auto blob = event->export_in_place();
  const int descriptor = event->export_to_process().fd;
  SyncEvent importer = SyncEvent::import_in_place(blob);
  event.reset();
  EXPECT_EQ(code_of(blob), ErrorCode::not_found);
  importer.set(3);  // an import does not need its exporter
  EXPECT_EQ(importer.get(), 3U);
  // The descriptor is that of another file, which an importer must not get.
  const SyncEvent other(SyncEvent::Options{});
  const int number = ::fcntl(other.export_to_process().fd, F_DUPFD_CLOEXEC, descriptor);
  ASSERT_GE(number, 0);
  const core::Fd reused(number);
  EXPECT_EQ(code_of(blob), ErrorCode::not_found);
  ASSERT_TRUE(number == descriptor || other.export_to_process().fd == descriptor);
}

TEST(SyncEventExport, AFileOfAnotherTypeIsNotOpened) {
  const support::TempDir folder;
  const std::string path = folder.file("fifo");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const core::Fd found(::open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat file {};
  ASSERT_EQ(::fstat(found.get(), &file), 0);
  const core::Fd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  ASSERT_GE(::inotify_add_watch(watch.get(), path.c_str(), IN_OPEN), 0);
  protocol::Writer body;
  body.integer(static_cast<std::uint32_t>(::getpid()))
      .integer(static_cast<std::uint32_t>(found.get()))
      .integer(static_cast<std::uint64_t>(file.st_dev))
      .integer(static_cast<std::uint64_t>(file.st_ino))
      .integer(static_cast<std::uint8_t>(Publisher::cpu));
  // The envelope of SyncEvent::export_in_place().
  const auto blob =
      protocol::Envelope{"a forged description", 0x4f46'5345, 1, 100}.wrap(body.take());
  EXPECT_EQ(thrown_by([&] { SyncEvent::import_in_place(blob); }).code(), ErrorCode::bad_message);
  char told[256];
  EXPECT_LT(::read(watch.get(), told, sizeof told), 0) << "it was opened";
}

TEST(SyncEventExport, AForgedDescriptionIsRefused) {
  const SyncEvent event(SyncEvent::Options{});
  auto blob = event.export_in_place();
  for (std::size_t i = 0; i < blob.size(); ++i) {
    auto forged = blob;
    forged[i] ^= std::byte{1};
    const auto code = thrown_by([&] { SyncEvent::import_in_place(forged); }).code();
    EXPECT_TRUE(code == ErrorCode::bad_message || code == ErrorCode::unsupported_version) << i;
  }
  EXPECT_EQ(thrown_by([] { SyncEvent::import_in_place({}); }).code(), ErrorCode::bad_message);
  kernels::SyncEventWords words{};
  EXPECT_EQ(thrown_by([&] {
              static_cast<void>(SyncEvent(words, Publisher::cpu).export_in_place());
            }).code(),
            ErrorCode::not_supported);
}

TEST(SyncEventExport, AForgedBlobIsRefused) {
  const SyncEvent event(SyncEvent::Options{});
  const auto exported = event.export_to_process();
  const auto import_of = [&](const support::Bytes& blob) {
    return thrown_by([&] { SyncEvent::import(blob, duplicate(exported.fd)); }).code();
  };
  for (std::size_t length = 0; length < exported.blob.size(); ++length) {
    const support::Bytes cut(exported.blob.begin(),
                             exported.blob.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_EQ(import_of(cut), ErrorCode::bad_message) << length;
  }
  auto longer = exported.blob;
  longer.push_back(std::byte{0});
  EXPECT_EQ(import_of(longer), ErrorCode::bad_message);
  auto other_magic = exported.blob;
  other_magic[0] ^= std::byte{1};
  EXPECT_EQ(import_of(other_magic), ErrorCode::bad_message);
  auto newer = exported.blob;
  newer[5] ^= std::byte{2};
  EXPECT_EQ(import_of(newer), ErrorCode::unsupported_version);
  auto other_publisher = exported.blob;
  other_publisher[6] = std::byte{2};
  EXPECT_EQ(import_of(other_publisher), ErrorCode::bad_message);
}

TEST(SyncEventExport, MemoryThatCouldShrinkIsRefused) {
  const SyncEvent event(SyncEvent::Options{});
  const auto blob = event.export_to_process().blob;
  core::Fd unsealed(::memfd_create("unsealed", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(unsealed.get(), 4096), 0);
  EXPECT_EQ(thrown_by([&] { SyncEvent::import(blob, std::move(unsealed)); }).code(),
            ErrorCode::invalid_value);
}

}  // namespace
}  // namespace offload::sync
