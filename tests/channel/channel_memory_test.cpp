#include "channel/channel_memory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "memory/region_blob.hpp"
#include "tests/channel/channel_fixture.hpp"
#include "tests/support/thrown.hpp"

namespace offload::channel {
namespace {

using core::ErrorCode;
using memory::DescriptorKind;
using support::thrown_by;

constexpr std::uint32_t kDepth = 4;
constexpr std::uint32_t kLength = 600;
const std::uint64_t kBytes = kernels::make_layout(kDepth, kLength).request_bytes;

class ChannelMemoryTest : public testing::Test {
 protected:
  ErrorCode refused(const protocol::ChannelDescriptor& descriptor) {
    return thrown_by([&] { ImportedChannel(descriptor, test::passed_fds(memory_)); }).code();
  }

  /// Returns the valid descriptor with another region, of one memfd.
  protocol::ChannelDescriptor with(memory::Access access,
                                   decltype(memory::RegionBlob::ranges) ranges) {
    auto descriptor = good_;
    descriptor.access = memory::RegionBlob{access, std::move(ranges)}.encode();
    return descriptor;
  }
  protocol::ChannelDescriptor with_responses(memory::Access access, std::uint64_t length) {
    auto descriptor = good_;
    descriptor.response_access = memory::RegionBlob{
        access, std::vector<memory::PassedRange>{
                    {DescriptorKind::memfd, 0,
                     length}}}.encode();
    return descriptor;
  }
  protocol::ChannelDescriptor with_length(std::uint64_t length) {
    return with(memory::Access::local_read | memory::Access::peer_pcie,
                std::vector<memory::PassedRange>{{DescriptorKind::memfd, 0, length}});
  }

  ChannelMemory memory_{7, kDepth, kLength, -1};
  protocol::ChannelDescriptor good_ = memory_.descriptor();
};

TEST_F(ChannelMemoryTest, SeesTheSameMemory) {
  const ImportedChannel import(good_, test::passed_fds(memory_));
  EXPECT_EQ(import.index(), 7U);
  EXPECT_EQ(import.view().layout.depth, kDepth);
  EXPECT_EQ(import.view().layout.max_length, kLength);
  EXPECT_FALSE(import.requests().started());
  EXPECT_FALSE(import.responses().started());
  EXPECT_EQ(import.view().layout.request_bytes, import.requests().ranges().front().length);
  EXPECT_EQ(import.view().layout.response_bytes, import.responses().ranges().front().length);
  test::Server server(memory_.endpoint());
  ASSERT_TRUE(server.post(support::bytes_of("hello")));
  const auto header = kernels::load_packet(import.view().request(0).packets);
  EXPECT_EQ(header.flag, import.view().layout.flag_of(0));
  EXPECT_EQ(header.data[0], 5U);
}

TEST_F(ChannelMemoryTest, ItsRegionsAreStartedOnce) {
  const ImportedChannel import(good_, test::passed_fds(memory_));
  import.requests().start();
  start_regions(import);
  EXPECT_TRUE(import.responses().started());
  EXPECT_NO_THROW(start_regions(import));
  const ImportedChannel second(good_, test::passed_fds(memory_));
  start_regions(second);
  EXPECT_TRUE(second.requests().started());
  EXPECT_TRUE(second.responses().started());
}

TEST_F(ChannelMemoryTest, BeginsWhereItIsTold) {
  const ChannelMemory memory(0, kDepth, kLength, -1, 4711);
  EXPECT_EQ(ImportedChannel(memory.descriptor(), test::passed_fds(memory)).first_sequence(), 4711U);
}

// Only the server may write requests: a worker could otherwise change them while they are moved to
// the next worker.
TEST_F(ChannelMemoryTest, AWorkerCannotMapRequestsForWriting) {
  const auto fds = test::passed_fds(memory_);
  EXPECT_EQ(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0].get(), 0),
            MAP_FAILED);
  const std::byte one{1};
  EXPECT_EQ(::pwrite(fds[0].get(), &one, 1, 0), -1);
  EXPECT_NE(::ftruncate(fds[0].get(), 0), 0);
  // The worker may open a separate descriptor for writing: the seal belongs to the file.
  const core::Fd reopened(
      ::open(("/proc/self/fd/" + std::to_string(fds[0].get())).c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(reopened.valid());
  EXPECT_EQ(::mmap(nullptr, kBytes, PROT_WRITE, MAP_SHARED, reopened.get(), 0), MAP_FAILED);
  EXPECT_EQ(::pwrite(reopened.get(), &one, 1, 0), -1);
  // A mapping for reading cannot be made one for writing.
  void* const mapped = ::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, fds[0].get(), 0);
  ASSERT_NE(mapped, MAP_FAILED);
  EXPECT_EQ(::mprotect(mapped, kBytes, PROT_READ | PROT_WRITE), -1);
  ::munmap(mapped, kBytes);
}

TEST_F(ChannelMemoryTest, AWorkersProcessThatWritesRequestsIsKilled) {
  const ImportedChannel import(good_, test::passed_fds(memory_));
  const pid_t child = ::fork();
  if (child == 0) {
    *const_cast<volatile std::uint8_t*>(import.view().requests) = 1;
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  // A sanitizer's handler makes an exit of the signal.
  EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
  EXPECT_EQ(*import.view().requests, 0U);
}

TEST_F(ChannelMemoryTest, RefusesImpossibleShapes) {
  for (const std::uint32_t depth : {0U, 3U, kernels::kMaxDepth * 2, 0xffff'ffffU}) {
    auto descriptor = good_;
    descriptor.depth = depth;
    EXPECT_EQ(refused(descriptor), ErrorCode::bad_message) << depth;
  }
  for (const std::uint32_t length : {kernels::kMaxMessageLength + 1, 0xffff'ffffU}) {
    auto descriptor = good_;
    descriptor.max_message_length = length;
    EXPECT_EQ(refused(descriptor), ErrorCode::bad_message) << length;
  }
}

// A worker of another build that lays it out differently would corrupt it.
TEST_F(ChannelMemoryTest, RefusesAShapeThatDoesNotGiveItsSize) {
  auto shallower = good_;
  shallower.depth = kDepth / 2;
  EXPECT_EQ(refused(shallower), ErrorCode::bad_message);
  auto longer = good_;
  longer.max_message_length = 2 * kernels::kMaxBatchContent;
  EXPECT_EQ(refused(longer), ErrorCode::bad_message);
  EXPECT_EQ(refused(with_length(kBytes - 4096)), ErrorCode::bad_message);
}

TEST_F(ChannelMemoryTest, RefusesMemoryThatIsSmallerThanItSays) {
  auto deeper = with_length(kernels::make_layout(64, kLength).request_bytes);
  deeper.depth = 64;
  deeper.response_access = with_responses(memory::kLocalAccess | memory::Access::peer_pcie,
                                          kernels::make_layout(64, kLength).response_bytes)
                               .response_access;
  EXPECT_EQ(refused(deeper), ErrorCode::invalid_value);
  EXPECT_EQ(refused(with_length(std::uint64_t{1} << 62)), ErrorCode::invalid_value);
  EXPECT_EQ(refused(with_length(~std::uint64_t{0})), ErrorCode::bad_message);
  EXPECT_EQ(refused(with_length(0)), ErrorCode::bad_message);
}

TEST_F(ChannelMemoryTest, RefusesARegionThatIsNoneOrForOthers) {
  auto forged = good_;
  forged.access[20] ^= std::byte{1};
  EXPECT_EQ(refused(forged), ErrorCode::bad_message);
  auto cut_off = good_;
  cut_off.access.pop_back();
  EXPECT_EQ(refused(cut_off), ErrorCode::bad_message);
  auto none = good_;
  none.access.clear();
  EXPECT_EQ(refused(none), ErrorCode::bad_message);
  const auto for_this_process =
      with(memory::Access::local_read,
           std::vector<memory::PassedRange>{{DescriptorKind::memfd, 0, kBytes}});
  EXPECT_EQ(refused(for_this_process), ErrorCode::bad_message);
  EXPECT_EQ(refused(with_responses(memory::Access::local_read | memory::Access::peer_pcie, kBytes)),
            ErrorCode::bad_message);
  EXPECT_EQ(
      refused(with_responses(memory::kLocalAccess | memory::Access::peer_pcie, kBytes - 4096)),
      ErrorCode::bad_message);
  auto without_responses = good_;
  without_responses.response_access.clear();
  EXPECT_EQ(refused(without_responses), ErrorCode::bad_message);
  const auto for_a_peer =
      with(memory::Access::remote_read, std::vector<memory::RemoteRange>{{4096, kBytes, 1}});
  EXPECT_EQ(refused(for_a_peer), ErrorCode::bad_message);
}

TEST_F(ChannelMemoryTest, RefusesMemoryThatCouldShrinkUnderIt) {
  auto fds = test::passed_fds(memory_);
  fds[0] = core::Fd(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(fds[0].get(), static_cast<off_t>(kBytes)), 0);
  const auto error = thrown_by([&] { ImportedChannel(good_, std::move(fds)); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_value);
}

TEST_F(ChannelMemoryTest, RefusesWhatIsNoMemory) {
  auto fds = test::passed_fds(memory_);
  std::swap(fds[0], fds[2]);
  EXPECT_THROW(ImportedChannel(good_, std::move(fds)), core::Error);
}

// The peer that passed the descriptors shares their open files, and makes these block: a read of an
// empty pipe and a ring of a full one would never end.
TEST_F(ChannelMemoryTest, ThePeerThatPassedADoorbellCannotMakeItBlock) {
  const ImportedChannel import(good_, test::passed_fds(memory_));
  const int waiting = memory_.fds()[2];
  const int ringing = memory_.fds()[3];
  const std::vector<std::byte> much(1 << 20);
  while (::write(ringing, much.data(), much.size()) > 0) continue;
  ASSERT_EQ(errno, EAGAIN);
  for (const int fd : {waiting, ringing}) {
    ASSERT_EQ(::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK), 0);
  }
  ::alarm(30);  // ends the program instead of waiting for ever
  import.waiter().drain();
  import.view().response_header().responses.armed = 1;
  import.ringer().ring();
  ::alarm(0);
  EXPECT_EQ(import.view().response_header().responses.armed, 0U);
}

TEST_F(ChannelMemoryTest, RefusesADoorbellThatIsNoPipe) {
  for (const std::size_t bell : {2U, 3U}) {
    auto fds = test::passed_fds(memory_);
    fds[bell] = core::Fd(::eventfd(0, EFD_CLOEXEC));
    EXPECT_EQ(thrown_by([&] { ImportedChannel(good_, std::move(fds)); }).code(),
              ErrorCode::bad_message);
  }
}

// The memory has 412 GB, more than most machines: a test that used the pages would fail there. It
// is less than the 1.5 TiB of address space that ThreadSanitizer does not use.
TEST(TryMemory, TakesNoPages) {
  EXPECT_NO_THROW(
      try_memory(3, kernels::kMaxDepth, kernels::kMaxMessageLength, kernels::kMaxMessageLength));
}

TEST(TryMemory, NamesTheLimitThatItMeets) {
  const auto signal = std::signal(SIGXFSZ, SIG_IGN);  // as the programs do
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit least{static_cast<rlim_t>(kBytes) - 1, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &least), 0);
  const auto error = thrown_by([] { try_memory(1, kDepth, kLength, 48); });
  EXPECT_NE(std::string(error.what()).find("ulimit -f"), std::string::npos) << error.what();
  EXPECT_NO_THROW(try_memory(0, kDepth, kLength, 48));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  std::signal(SIGXFSZ, signal);
  try_memory(1, kDepth, kLength, 48);
}

TEST(TryMemory, HoldsAllChannelsAtOnce) {
  // Descriptors without a gap below the limit, which has room for one channel and a half.
  std::vector<core::Fd> fillers;
  int first_free = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    first_free = std::max(first_free, std::stoi(entry.path().filename().string()) + 1);
  }
  do {
    fillers.emplace_back(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
  } while (fillers.back().get() < first_free);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit least{static_cast<rlim_t>(fillers.back().get()) + 1 + 3, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &least), 0);
  EXPECT_NO_THROW(try_memory(1, kDepth, kLength, 48));
  EXPECT_THROW(try_memory(2, kDepth, kLength, 48), core::Error);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
}

}  // namespace
}  // namespace offload::channel
