#include "memory/region_export.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <csignal>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "memory/region_blob.hpp"
#include "net/fd_passing.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/memory.hpp"

namespace offload::memory {
namespace {

using core::ErrorCode;
using support::thrown_by;

MemoryRegion import_once(RegionExport from) {
  return import_region("copy", from.blob, std::move(from.fds));
}

TEST(RegionExport, TheImporterSeesTheSameMemory) {
  MemoryRegion region({"x"}, {share_range("a", 2 * kPage), share_range("b", kPage)});
  region.start();
  MemoryRegion copy = import_once(export_region(region, kLocalAccess));
  EXPECT_EQ(copy.access(), kLocalAccess);
  EXPECT_FALSE(copy.started());
  copy.start();
  ASSERT_EQ(copy.ranges().size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    const Range& ours = region.ranges()[i];
    const Range& theirs = copy.ranges()[i];
    ASSERT_EQ(theirs.length, ours.length);
    EXPECT_NE(theirs.address, ours.address);
    theirs.address[ours.length - 1] = static_cast<std::byte>(i + 1);
    EXPECT_EQ(ours.address[ours.length - 1], static_cast<std::byte>(i + 1));
  }
}

TEST(RegionExport, TheMappingOutlivesTheRegion) {
  RegionExport exported;
  {
    MemoryRegion region({"x"}, {share_range("a", kPage)});
    region.start();
    region.ranges()[0].address[0] = std::byte{9};
    exported = export_region(region, Access::local_read);
  }
  EXPECT_EQ(import_once(std::move(exported)).ranges()[0].address[0], std::byte{9});
}

TEST(RegionExport, AGrantForReadingComesWithADescriptorForReading) {
  MemoryRegion region({"x"}, {share_range("a", kPage)});
  region.start();
  const auto for_reading = export_region(region, Access::local_read);
  EXPECT_EQ(::fcntl(for_reading.fds[0].get(), F_GETFL) & O_ACCMODE, O_RDONLY);
  EXPECT_EQ(::fcntl(for_reading.fds[0].get(), F_GETFD), FD_CLOEXEC);
  EXPECT_EQ(::mmap(nullptr, kPage, PROT_WRITE, MAP_SHARED, for_reading.fds[0].get(), 0),
            MAP_FAILED);
  const auto for_both = export_region(region, kLocalAccess);
  EXPECT_EQ(::fcntl(for_both.fds[0].get(), F_GETFL) & O_ACCMODE, O_RDWR);
  EXPECT_EQ(::fcntl(for_both.fds[0].get(), F_GETFD), FD_CLOEXEC);
}

// A blob that was changed to say more meets the descriptor that says less.
TEST(RegionExport, AForgedGrantToWriteIsRefusedByTheDescriptor) {
  MemoryRegion region({"x"}, {share_range("a", kPage)});
  region.start();
  auto exported = export_region(region, Access::local_read);
  auto blob = RegionBlob::decode(exported.blob);
  blob.access = kLocalAccess;
  exported.blob = blob.encode();
  EXPECT_EQ(code_of([&] { import_once(std::move(exported)); }), ErrorCode::not_permitted);
}

TEST(RegionExport, AccessOnlyBecomesLess) {
  MemoryRegion region({"x", kLocalAccess | Access::remote_read}, {share_range("a", kPage)});
  region.start();
  const auto error = thrown_by([&] { export_region(region, kLocalAccess | Access::remote_write); });
  EXPECT_EQ(error.code(), ErrorCode::not_permitted);
  EXPECT_STREQ(error.what(),
               "memory region 'x' allows local_read|local_write|remote_read: cannot grant "
               "local_read|local_write|remote_write");

  MemoryRegion reader = import_once(export_region(region, Access::local_read));
  EXPECT_EQ(reader.access(), Access::local_read);
  EXPECT_FALSE(reader.ranges()[0].writable);
  reader.start();
  EXPECT_EQ(code_of([&] { export_region(reader, kLocalAccess); }), ErrorCode::not_permitted);
  EXPECT_EQ(code_of([&] { export_region(reader, Access::local_read | Access::remote_read); }),
            ErrorCode::not_permitted);
  MemoryRegion third = import_once(export_region(reader, Access::local_read));
  third.start();
  region.ranges()[0].address[3] = std::byte{3};
  EXPECT_EQ(third.ranges()[0].address[3], std::byte{3});
}

TEST(RegionExport, WhatIsGrantedIsChecked) {
  MemoryRegion region({"x"}, {share_range("a", kPage)});
  region.start();
  EXPECT_EQ(code_of([&] { export_region(region, Access::none); }), ErrorCode::invalid_value);
  EXPECT_EQ(code_of([&] { export_region(region, Access::local_write); }), ErrorCode::invalid_value);
}

TEST(RegionExport, NeedsARegionThatIsStarted) {
  MemoryRegion region({"x", kLocalAccess}, {share_range("a", kPage)});
  const auto error = thrown_by([&] { export_region(region, kLocalAccess); });
  EXPECT_EQ(error.code(), ErrorCode::bad_state);
  EXPECT_STREQ(error.what(), "memory region 'x' is stopped: cannot be exported");
}

TEST(RegionExport, OfMemoryWithoutADescriptorIsNotSupported) {
  MemoryRegion region({"x"}, {share_range("a", kPage), allocate_range(kPage)});
  region.start();
  const auto error = thrown_by([&] { export_region(region, kLocalAccess); });
  EXPECT_EQ(error.code(), ErrorCode::not_supported);
  EXPECT_NE(std::string(error.what()).find("range 1"), std::string::npos);
}

TEST(RegionExport, TakesOneDescriptorARange) {
  MemoryRegion region({"x"}, {share_range("a", kPage), share_range("b", kPage)});
  region.start();
  auto exported = export_region(region, kLocalAccess);
  exported.fds.pop_back();
  EXPECT_EQ(code_of([&] { import_once(std::move(exported)); }), ErrorCode::bad_message);
  exported = export_region(region, kLocalAccess);
  exported.fds.emplace_back();
  EXPECT_EQ(code_of([&] { import_once(std::move(exported)); }), ErrorCode::bad_message);
}

TEST(RegionExport, ForAPeerIsImportedByNoProcess) {
  const auto blob =
      RegionBlob{Access::remote_read, std::vector<RemoteRange>{{4096, kPage, 1}}}.encode();
  std::vector<core::Fd> fds;
  fds.push_back(memfd(kPage, F_SEAL_SHRINK));
  EXPECT_EQ(code_of([&] { import_region("x", blob, std::move(fds)); }), ErrorCode::bad_message);
}

TEST(RegionExport, TheDescriptorsAreChecked) {
  MemoryRegion region({"x"}, {share_range("a", kPage)});
  region.start();
  auto exported = export_region(region, kLocalAccess);
  exported.fds[0] = memfd(kPage, 0);
  EXPECT_EQ(code_of([&] { import_once(std::move(exported)); }), ErrorCode::invalid_value);

  exported = export_region(region, kLocalAccess);
  exported.blob =
      RegionBlob{kLocalAccess, std::vector<PassedRange>{{DescriptorKind::memfd, 0, kPage + 1}}}
          .encode();
  EXPECT_EQ(code_of([&] { import_once(std::move(exported)); }), ErrorCode::invalid_value);

  exported = export_region(region, kLocalAccess);
  exported.blob =
      RegionBlob{kLocalAccess, std::vector<PassedRange>{{DescriptorKind::dma_buf, 0, kPage}}}
          .encode();
  EXPECT_EQ(code_of([&] { import_once(std::move(exported)); }), ErrorCode::invalid_value);
}

// ---- Between processes: blob and descriptors in one message

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
