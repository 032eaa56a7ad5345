#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <csignal>
#include <span>
#include <vector>

#include "memory/region_blob.hpp"
#include "memory/region_export.hpp"
#include "net/fd_passing.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/child_process.hpp"

/// A region in two processes, handed over as it is in earnest: blob and descriptors in one message.
namespace offload::memory {
namespace {

constexpr std::size_t kRangeLength = 1 << 20;

MemoryRegion receive_region(int socket) {
  support::Bytes room(kMaxRegionBlob);
  auto message = net::receive_with_fds(socket, room);
  return import_region("received", std::span(room).first(message->size), std::move(message->fds));
}

void send_region(int socket, const MemoryRegion& region, Access granted) {
  const auto exported = export_region(region, granted);
  std::vector<int> fds;
  for (const core::Fd& fd : exported.fds) fds.push_back(fd.get());
  net::send_with_fds(socket, exported.blob, fds);
}

void fill(const Range& range, std::byte value) {
  std::fill_n(range.address, range.length, value);
}

bool holds(const Range& range, std::byte value) {
  return std::all_of(range.address, range.address + range.length,
                     [&](std::byte byte) { return byte == value; });
}

TEST(RegionBetweenProcesses, BothReadAndWrite) {
  support::ChildProcess child([](int socket) {
    MemoryRegion region = receive_region(socket);
    region.start();
    if (!holds(region.ranges()[0], std::byte{1})) return 1;
    if (!holds(region.ranges()[1], std::byte{2})) return 2;
    fill(region.ranges()[0], std::byte{3});
    return 0;
  });
  MemoryRegion region({"x"}, {share_range("a", kRangeLength), share_range("b", kRangeLength)});
  region.start();
  fill(region.ranges()[0], std::byte{1});
  fill(region.ranges()[1], std::byte{2});
  send_region(child.socket(), region, kLocalAccess);
  const int status = child.wait();
  ASSERT_TRUE(WIFEXITED(status)) << WTERMSIG(status);
  ASSERT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(holds(region.ranges()[0], std::byte{3}));
}

TEST(RegionBetweenProcesses, AReaderThatWritesIsStopped) {
  support::ChildProcess child([](int socket) {
    MemoryRegion region = receive_region(socket);
    region.start();
    const char has_read = holds(region.ranges()[0], std::byte{1}) ? 'y' : 'n';
    if (::send(socket, &has_read, 1, MSG_NOSIGNAL) != 1) return 1;
    region.ranges()[0].address[0] = std::byte{66};
    return 0;
  });
  MemoryRegion region({"x"}, {share_range("a", kRangeLength)});
  region.start();
  fill(region.ranges()[0], std::byte{1});
  send_region(child.socket(), region, Access::local_read);
  // Received before the write, so that the fault was the write's.
  char has_read = 0;
  ASSERT_EQ(::recv(child.socket(), &has_read, 1, 0), 1);
  EXPECT_EQ(has_read, 'y');
  const int status = child.wait();
  ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
  EXPECT_EQ(WTERMSIG(status), SIGSEGV);
  EXPECT_TRUE(holds(region.ranges()[0], std::byte{1}));
}

}  // namespace
}  // namespace offload::memory
