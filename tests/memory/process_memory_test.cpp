#include "memory/process_memory.hpp"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "memory/region.hpp"
#include "protocol/envelope.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/memory.hpp"
#include "tests/support/process_memory.hpp"
#include "tests/support/thrown.hpp"

namespace offload::memory {
namespace {

using core::ErrorCode;
using support::thrown_by;

constexpr std::size_t kLength = 1000;
constexpr Access kExported = kLocalAccess | Access::peer_pcie;

/// The envelope of a description, and where the fields of its body are (process_memory.cpp).
constexpr protocol::Envelope kEnvelope{"description", 0x4f46'504d, 1, 4096};
constexpr std::size_t kStart = 4;
constexpr std::size_t kAccess = 12;
constexpr std::size_t kCount = 16;
constexpr std::size_t kAddress = 18;
constexpr std::size_t kLengths = 26;

std::vector<std::byte> body_of(std::span<const std::byte> blob) {
  const std::span<const std::byte> body = kEnvelope.unwrap(blob);
  return {body.begin(), body.end()};
}

/// The arguments of PR_SET_PTRACER so far, in this program.
std::vector<unsigned long> tracers;

/// A process that exports kLength bytes of the value 7, and exits with the first one that it finds
/// there when it is told to.
class Exporter {
 public:
  explicit Exporter(Access granted)
      : child_([granted](int socket) {
          std::vector<std::byte> bytes(kLength, std::byte{7});
          MemoryRegion region({"exported", kExported}, {borrow_range(bytes)});
          region.start();
          const InPlaceExport made = export_in_place(region, granted);
          const std::vector<std::byte>& blob = made.blob;
          if (::send(socket, blob.data(), blob.size(), 0) < 0) return 255;
          char end = 0;
          if (::recv(socket, &end, 1, 0) != 1) return 255;
          return static_cast<int>(bytes[0]);
        }) {}

  std::vector<std::byte> blob() {
    std::vector<std::byte> received(4096);
    const ssize_t length = ::recv(child_.socket(), received.data(), received.size(), 0);
    EXPECT_GT(length, 0);
    received.resize(static_cast<std::size_t>(length));
    return received;
  }
  /// Returns its exit status.
  int end() {
    EXPECT_EQ(::send(child_.socket(), "x", 1, 0), 1);
    return WEXITSTATUS(child_.wait());
  }

 private:
  support::ChildProcess child_;
};

class ProcessMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!support::has_process_memory()) GTEST_SKIP() << "memory of other processes: no ptrace here";
  }
  Place own(std::size_t at = 0) { return {own_.address + at, &own_}; }

  std::vector<std::byte> bytes_ = std::vector<std::byte>(2 * kLength);
  Range own_ = borrow_range(bytes_);
};

TEST_F(ProcessMemoryTest, IsReadAndWrittenWhereItLies) {
  Exporter exporter(kLocalAccess);
  const InPlaceImport import = import_in_place(exporter.blob());
  ASSERT_EQ(import.ranges.size(), 1U);
  EXPECT_EQ(import.access, kLocalAccess);
  const Range& range = import.ranges[0];
  EXPECT_EQ(range.length, kLength);
  EXPECT_TRUE(copy_bytes(own(), {range.address, &range}, kLength).ok());
  EXPECT_EQ(bytes_[kLength - 1], std::byte{7});
  EXPECT_EQ(bytes_[kLength], std::byte{0});
  bytes_[0] = std::byte{9};
  EXPECT_TRUE(copy_bytes({range.address, &range}, own(), 1).ok());
  EXPECT_EQ(copy_bytes({range.address, &range}, {range.address, &range}, 1),
            ErrorCode::not_supported);
  EXPECT_EQ(exporter.end(), 9);
  EXPECT_EQ(copy_bytes(own(), {range.address, &range}, 1), ErrorCode::not_connected);
}

TEST_F(ProcessMemoryTest, OfAProcessThatRunsAnotherProgramIsNotReached) {
  support::ChildProcess child([](int socket) {
    std::vector<std::byte> bytes(kLength);
    MemoryRegion region({"exported", kExported}, {borrow_range(bytes)});
    region.start();
    const InPlaceExport made = export_in_place(region, kLocalAccess);
    const std::vector<std::byte>& blob = made.blob;
    char begin = 0;
    if (::send(socket, blob.data(), blob.size(), 0) < 0 || ::recv(socket, &begin, 1, 0) != 1) {
      return 255;
    }
    return ::execl("/bin/sleep", "sleep", "20", nullptr);  // which closes the socket
  });
  std::vector<std::byte> blob(4096);
  const ssize_t length = ::recv(child.socket(), blob.data(), blob.size(), 0);
  ASSERT_GT(length, 0);
  const InPlaceImport import =
      import_in_place(std::span(blob).first(static_cast<std::size_t>(length)));
  const Range& range = import.ranges[0];
  EXPECT_TRUE(copy_bytes({range.address, &range}, own(), 1).ok());
  ASSERT_EQ(::send(child.socket(), "x", 1, 0), 1);
  char end = 0;
  EXPECT_EQ(::recv(child.socket(), &end, 1, 0), 0) << "it runs the other program";
  EXPECT_EQ(copy_bytes({range.address, &range}, own(), 1), ErrorCode::not_connected);
  EXPECT_EQ(copy_bytes(own(), {range.address, &range}, 1), ErrorCode::not_connected);
  ASSERT_EQ(::kill(range.process, SIGKILL), 0);
}

TEST_F(ProcessMemoryTest, CopiesWithinTheProcessToo) {
  bytes_[0] = std::byte{3};
  EXPECT_TRUE(copy_bytes(own(kLength), own(), 1).ok());
  EXPECT_EQ(bytes_[kLength], std::byte{3});
}

TEST_F(ProcessMemoryTest, BecomesARegionThatNoDeviceRegisters) {
  Exporter exporter(Access::local_read);
  const InPlaceImport import = import_in_place(exporter.blob());
  EXPECT_FALSE(import.ranges[0].writable);
  MemoryRegion region({"imported", import.access}, import.ranges);
  FakeRegistrar registrar("card");
  region.add_registrar(registrar);
  EXPECT_EQ(thrown_by([&] { region.start(); }).code(), ErrorCode::not_supported);
  region.remove_registrar(registrar);
  region.start();  // touches nothing
  EXPECT_EQ(thrown_by([&] { export_in_place(region, Access::local_read); }).code(),
            ErrorCode::not_permitted);
  region.stop();
  EXPECT_EQ(exporter.end(), 7);
}

TEST_F(ProcessMemoryTest, OfAProcessThatHasEndedIsNotFound) {
  Exporter exporter(kLocalAccess);
  const std::vector<std::byte> blob = exporter.blob();
  exporter.end();
  const core::Error error = thrown_by([&] { import_in_place(blob); });
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_NE(std::string(error.what()).find("has ended"), std::string::npos) << error.what();
}

/// Returns the ticks of the clock since boot, by which proc(5) tells when a process started.
std::uint64_t ticks_since_boot() {
  timespec now{};
  EXPECT_EQ(::clock_gettime(CLOCK_BOOTTIME, &now), 0);
  const long ticks = ::sysconf(_SC_CLK_TCK);
  return static_cast<std::uint64_t>(now.tv_sec * ticks + now.tv_nsec / (1'000'000'000 / ticks));
}

TEST_F(ProcessMemoryTest, ADescriptionSaysWhenItsProcessStarted) {
  const std::uint64_t before = ticks_since_boot();
  Exporter exporter(kLocalAccess);
  const std::vector<std::byte> body = body_of(exporter.blob());
  std::uint64_t start = 0;
  for (std::size_t i = 0; i < 8; ++i)
    start = start << 8 | std::to_integer<std::uint64_t>(body[kStart + i]);
  EXPECT_GE(start + 1, before);
  EXPECT_LE(start, ticks_since_boot() + 1);
  exporter.end();
}

// Yama lets every process of the user in while one export exists, and none after the last.
TEST(OpenToOthers, IsCountedAndEndsWithTheLast) {
  tracers.clear();
  using List = std::vector<unsigned long>;
  {
    OpenToOthers first;
    EXPECT_EQ(tracers, List{PR_SET_PTRACER_ANY});
    {
      const OpenToOthers second;
      EXPECT_EQ(tracers, (List{PR_SET_PTRACER_ANY, PR_SET_PTRACER_ANY}));
    }
    OpenToOthers moved(std::move(first));
    EXPECT_EQ(tracers.size(), 2U);
    tracers.clear();
    {
      OpenToOthers third;
      third = std::move(moved);  // they are exchanged, and `moved` ends later
    }
    EXPECT_EQ(tracers, List{PR_SET_PTRACER_ANY});
    {
      OpenToOthers holder(std::move(moved));
      moved = std::move(holder);
    }
    EXPECT_EQ(tracers, List{PR_SET_PTRACER_ANY}) << "the holder has given it back";
  }
  EXPECT_EQ(tracers, (List{PR_SET_PTRACER_ANY, 0}));
  tracers.clear();
  { const OpenToOthers again; }
  EXPECT_EQ(tracers, (List{PR_SET_PTRACER_ANY, 0}));
}

TEST_F(ProcessMemoryTest, OfAnotherProcessWithTheSameIdIsNotFound) {
  MemoryRegion region({"mine", kExported}, {own_});
  region.start();
  std::vector<std::byte> body = body_of(export_in_place(region, Access::local_read).blob);
  EXPECT_NO_THROW(import_in_place(kEnvelope.wrap(body)));
  body[kStart + 7] ^= std::byte{1};
  EXPECT_EQ(thrown_by([&] { import_in_place(kEnvelope.wrap(body)); }).code(), ErrorCode::not_found);
}

TEST_F(ProcessMemoryTest, ThatCannotBeOpenedIsNotCalledEnded) {
  MemoryRegion region({"mine", kExported}, {own_});
  region.start();
  const std::vector<std::byte> blob = export_in_place(region, Access::local_read).blob;
  ASSERT_EQ(::prctl(PR_SET_DUMPABLE, 0), 0);  // which refuses it to another process of this user
  support::ChildProcess child([&](int /*socket*/) {
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    const rlimit no_more{0, before.rlim_max};
    // UndefinedBehaviorSanitizer needs descriptors when it first looks at an object of a class.
    EXPECT_FALSE(core::describe_errno(EMFILE).empty());
    ::setrlimit(RLIMIT_NOFILE, &no_more);
    if (thrown_by([&] { import_in_place(blob); }).system_errno() != EMFILE) return 1;
    ::setrlimit(RLIMIT_NOFILE, &before);
    if (::geteuid() == 0 && ::setuid(65534) != 0) return 2;
    if (thrown_by([&] { import_in_place(blob); }).code() != ErrorCode::not_permitted) return 3;
    std::vector<std::byte> body = body_of(blob);
    body[kStart + 7] ^= std::byte{1};  // of an earlier process with the id
    const auto import_other = [&] { import_in_place(kEnvelope.wrap(body)); };
    return thrown_by(import_other).code() == ErrorCode::not_found ? 0 : 4;
  });
  EXPECT_EQ(WEXITSTATUS(child.wait()), 0);
  ASSERT_EQ(::prctl(PR_SET_DUMPABLE, 1), 0);
}

TEST_F(ProcessMemoryTest, NeedsTheRightsOfTheRegion) {
  MemoryRegion region({"mine", kLocalAccess}, {own_});
  EXPECT_EQ(thrown_by([&] { export_in_place(region, Access::local_read); }).code(),
            ErrorCode::bad_state);
  region.start();
  EXPECT_EQ(thrown_by([&] { export_in_place(region, Access::local_read); }).code(),
            ErrorCode::not_permitted);
  region.stop();
}

TEST_F(ProcessMemoryTest, IsGrantedWithValidRightsOnly) {
  MemoryRegion region({"mine", kExported}, {own_});
  region.start();
  for (const Access access : {Access::none, Access::local_write, static_cast<Access>(1U << 20)}) {
    EXPECT_EQ(thrown_by([&] { export_in_place(region, access); }).code(), ErrorCode::invalid_value);
  }
}

TEST_F(ProcessMemoryTest, OfADeviceOrOfAnotherProcessIsNotExported) {
  Exporter exporter(kLocalAccess);
  const InPlaceImport import = import_in_place(exporter.blob());
  const Range device = foreign_range(bytes_.data(), 10, Location::device, nullptr);
  for (const Range& range : {import.ranges[0], device}) {
    MemoryRegion region({"not mine", kExported}, {range});
    region.start();
    EXPECT_EQ(thrown_by([&] { export_in_place(region, Access::local_read); }).code(),
              ErrorCode::not_supported);
  }
  exporter.end();
}

TEST_F(ProcessMemoryTest, HasAsManyRangesAsARegion) {
  MemoryRegion region({"mine", kExported});
  for (std::size_t i = 0; i < kMaxRanges; ++i) region.add_range(borrow_range({&bytes_[2 * i], 1}));
  region.start();
  const InPlaceImport import = import_in_place(export_in_place(region, kLocalAccess).blob);
  ASSERT_EQ(import.ranges.size(), kMaxRanges);
  EXPECT_EQ(import.ranges.back().address, &bytes_[2 * kMaxRanges - 2]);
}

TEST_F(ProcessMemoryTest, ADamagedDescriptionIsRefused) {
  MemoryRegion region({"mine", kExported}, {own_});
  region.start();
  std::vector<std::byte> blob = export_in_place(region, Access::local_read).blob;
  for (std::byte& byte : blob) {
    byte ^= std::byte{1};
    EXPECT_THROW(import_in_place(blob), core::Error) << &byte - blob.data();
    byte ^= std::byte{1};
  }
  blob.pop_back();
  EXPECT_THROW(import_in_place(blob), core::Error);
  EXPECT_THROW(import_in_place({}), core::Error);
  region.stop();
}

TEST_F(ProcessMemoryTest, AnInvalidBodyIsRefused) {
  struct Fault {
    std::size_t at;
    std::vector<std::uint8_t> bytes;
    std::string why;
  };
  MemoryRegion region({"mine", kExported}, {own_});
  region.start();
  const std::vector<std::byte> body = body_of(export_in_place(region, kLocalAccess).blob);
  ASSERT_EQ(body.size(), kLengths + 8);
  for (const Fault& fault : std::vector<Fault>{
           {0, {0, 0, 0, 0}, "process id"},
           {0, {0x80, 0, 0, 0}, "process id"},
           {kAccess, {0, 0, 0, 0}, "access"},
           {kAccess, {0xff, 0xff, 0xff, 0xff}, "access"},
           {kCount, {0, 0}, "no ranges, or too many"},
           {kCount, {0, kMaxRanges + 1}, "no ranges, or too many"},
           {kCount, {0, 2}, "a range is empty"},  // the second one is not there
           {kAddress, {0, 0, 0, 0, 0, 0, 0, 0}, "a range is empty"},
           {kLengths, {0, 0, 0, 0, 0, 0, 0, 0}, "a range is empty"},
           {kLengths,
            {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
            "exceeds the address space"},
           {kAddress,
            {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xf0, 0, 0, 0, 0, 0, 0, 0, 17},
            "exceeds the address space"},
           {kLengths + 8, {0}, "wrong length"}}) {
    std::vector<std::byte> faulty = body;
    faulty.resize(std::max(body.size(), fault.at + fault.bytes.size()));
    std::transform(fault.bytes.begin(), fault.bytes.end(),
                   faulty.begin() + static_cast<std::ptrdiff_t>(fault.at),
                   [](std::uint8_t value) { return std::byte{value}; });
    const core::Error error = thrown_by([&] { import_in_place(kEnvelope.wrap(faulty)); });
    EXPECT_EQ(error.code(), ErrorCode::bad_message) << fault.why;
    EXPECT_NE(std::string(error.what()).find(fault.why), std::string::npos) << error.what();
  }
  EXPECT_NO_THROW(import_in_place(kEnvelope.wrap(body)));
  // The last bytes of the address space, and the largest id, of which there is no process.
  std::vector<std::byte> last = body;
  std::fill_n(last.begin() + kAddress, 7, std::byte{0xff});
  last[kAddress + 7] = std::byte{0xf0};
  std::fill_n(last.begin() + kLengths, 8, std::byte{0});
  last[kLengths + 7] = std::byte{16};
  EXPECT_EQ(import_in_place(kEnvelope.wrap(last)).ranges[0].length, 16U);
  std::fill_n(last.begin(), 4, std::byte{0xff});
  last[0] = std::byte{0x7f};
  EXPECT_EQ(thrown_by([&] { import_in_place(kEnvelope.wrap(last)); }).code(), ErrorCode::not_found);
}

}  // namespace
}  // namespace offload::memory

/// Linked before the C library's function.
extern "C" int prctl(int option, ...) noexcept {
  va_list rest;
  va_start(rest, option);
  unsigned long arguments[4];
  for (unsigned long& argument : arguments) argument = va_arg(rest, unsigned long);
  va_end(rest);
  if (option == PR_SET_PTRACER) offload::memory::tracers.push_back(arguments[0]);
  return static_cast<int>(
      ::syscall(SYS_prctl, option, arguments[0], arguments[1], arguments[2], arguments[3]));
}
