#include "kernels/channel_packets.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/support/step_through.hpp"

namespace offload::kernels {
namespace {

using namespace std::chrono_literals;

/// Returns a packet all of whose words follow from its flag.
Packet packet_of(std::uint32_t flag) {
  return {{flag * 3, ~flag, flag * 7}, flag};
}

bool agrees(const Packet& packet) {
  const Packet whole = packet_of(packet.flag);
  return packet.data[0] == whole.data[0] && packet.data[1] == whole.data[1] &&
         packet.data[2] == whole.data[2];
}

TEST(PacketAccess, LoadsWhatWasStoredAndTouchesNothingElse) {
  Packet packets[3] = {packet_of(1), packet_of(2), packet_of(3)};
  store_packet(packets + 1, {{0x0102'0304, 0x0506'0708, 0x090a'0b0c}, 0x0d0e'0f10});
  const Packet loaded = load_packet(packets + 1);
  EXPECT_EQ(loaded.data[0], 0x0102'0304U);
  EXPECT_EQ(loaded.data[1], 0x0506'0708U);
  EXPECT_EQ(loaded.data[2], 0x090a'0b0cU);
  EXPECT_EQ(loaded.flag, 0x0d0e'0f10U);
  EXPECT_EQ(std::memcmp(&packets[1], &loaded, sizeof loaded), 0);
  EXPECT_TRUE(agrees(packets[0]) && packets[0].flag == 1);
  EXPECT_TRUE(agrees(packets[2]) && packets[2].flag == 3);
}

// The writer stores a packet again only once its reader is done, as in a channel. The packet alone
// orders the payload beside it: ThreadSanitizer reports a race if the store does not release, or
// the load does not acquire.
TEST(PacketAccess, AFlagIsNeverSeenBeforeItsData) {
  Packet shared = packet_of(0);
  std::uint32_t payload = 0;
  std::atomic<std::uint32_t> taken{0};
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (std::uint32_t flag = 1; !stop; ++flag) {
      payload = flag;
      store_packet(&shared, packet_of(flag));
      while (taken != flag && !stop) std::this_thread::yield();
    }
  });
  std::uint32_t wrong = 0;
  const auto end = std::chrono::steady_clock::now() + 1s;
  while (taken < 100'000 && std::chrono::steady_clock::now() < end) {
    const Packet packet = load_packet(&shared);
    if (packet.flag == taken) {
      std::this_thread::yield();  // or the writer may not get to run on a busy machine
      continue;
    }
    if (!agrees(packet) || payload != packet.flag) ++wrong;
    taken = packet.flag;
  }
  stop = true;
  writer.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_GT(taken, 10U);
}

#if defined(OFFLOAD_CAN_STEP_THROUGH)

// After each instruction of the store, whatever its form.
TEST(PacketAccess, AStoreWritesTheFlagWithItsDataOrAfterIt) {
  Packet shared = packet_of(1);
  int steps = 0;
  int wrong = 0;
  support::step_through([&] { store_packet(&shared, packet_of(2)); },
                        [&] {
                          ++steps;
                          const Packet now = load_packet(&shared);
                          if (now.flag == 2 && !agrees(now)) ++wrong;
                          return true;
                        });
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(steps, 1);
  EXPECT_TRUE(agrees(shared) && shared.flag == 2);
}

// The whole packet is replaced after each instruction of the load in turn.
TEST(PacketAccess, ALoadReadsTheFlagBeforeItsData) {
  bool replaced = true;
  int older = 0;
  int newer = 0;
  for (int at = 0; replaced; ++at) {
    Packet shared = packet_of(1);
    Packet loaded{};
    int steps = 0;
    replaced = false;
    support::step_through([&] { loaded = load_packet(&shared); },
                          [&] {
                            if (steps++ != at) return true;
                            store_packet(&shared, packet_of(2));
                            replaced = true;
                            return false;
                          });
    ++(loaded.flag == 2 ? newer : older);
    EXPECT_TRUE(loaded.flag == 1 || agrees(loaded)) << "replaced after " << at << " instructions";
  }
  EXPECT_GT(older, 0);
  EXPECT_GT(newer, 0);
}

#endif

// Holds whatever the form of the store: on an emulator it may come in two halves.
TEST(PacketAccess, NoDataIsOlderThanItsFlag) {
  Packet shared = {{0, 0, 0}, 0};
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (std::uint32_t flag = 1; !done; ++flag) store_packet(&shared, {{flag, flag, flag}, flag});
  });
  std::uint32_t wrong = 0;
  std::uint32_t last = 0;
  // Repeats until it has seen some changes, whichever thread runs first.
  for (std::uint32_t changes = 0; changes < 100'000;) {
    const Packet packet = load_packet(&shared);
    if (packet.flag != last) ++changes;
    last = packet.flag;
    const bool agrees = packet.data[2] == packet.flag;
    if (!agrees || packet.data[0] < packet.flag || packet.data[1] < packet.flag) ++wrong;
  }
  done = true;
  writer.join();
  EXPECT_EQ(wrong, 0U);
}

}  // namespace
}  // namespace offload::kernels
