#include "memory/process_memory.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/fd.hpp"
#include "memory/region_export.hpp"
#include "protocol/bytes.hpp"
#include "protocol/envelope.hpp"

// The format of a blob: a protocol::Envelope with this body, big endian:
//
//   process id u32 | start of the process, clock ticks since boot u64 | access u32 |
//   count of ranges u16 | for each range: address u64 | length u64

namespace offload::memory {
namespace {

using core::Error;
using core::ErrorCode;

constexpr protocol::Envelope kEnvelope{
    "description of memory of a process",
    0x4f46'504d,  // "OFPM"
    1,
    protocol::kEnvelopeHeader + (4 + 8 + 4 + 2) + kMaxRanges*(8 + 8) + protocol::kEnvelopeTrailer};

/// The time at which a process started; with its id it names the process for good. Nothing: there
/// is no such process.
std::optional<std::uint64_t> start_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  if (!std::getline(file, text)) return std::nullopt;
  // The name, which may have spaces and brackets, ends at the last bracket: proc(5). The start is
  // the 22nd field, and the first after the name is the third.
  const std::size_t end_of_name = text.rfind(')');
  if (end_of_name == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(end_of_name + 1));
  std::string skipped;
  for (int field = 3; field < 22; ++field) fields >> skipped;
  std::uint64_t start = 0;
  fields >> start;
  return fields ? std::optional(start) : std::nullopt;
}

Range read_range(protocol::Reader& from, bool writable, int process,
                 const std::shared_ptr<core::Fd>& handle) {
  const auto address = from.integer<std::uint64_t>();
  const auto length = from.integer<std::uint64_t>();
  kEnvelope.require(address != 0 && length != 0, "a range is empty");
  kEnvelope.require(length - 1 <= std::numeric_limits<std::uint64_t>::max() - address,
                    "a range exceeds the address space");
  Range range;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of another process, dereferenced nowhere
  range.address = reinterpret_cast<std::byte*>(address);
  range.length = length;
  range.location = Location::process;
  range.writable = writable;
  range.process = process;
  range.owner = handle;
  return range;
}

/// Opens the memory of a process. The descriptor stays with this address space: accesses fail when
/// the process has ended or runs another program, also if its id is reused.
core::Fd open_memory(pid_t process, std::uint64_t start, bool writable) {
  const std::string name = "the process " + std::to_string(process) + " that exported memory";
  const std::string path = "/proc/" + std::to_string(process) + "/mem";
  core::Fd memory(::open(path.c_str(), (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC));
  const int errnum = memory.valid() ? 0 : errno;
  const bool is_gone = errnum == ENOENT || errnum == ESRCH;
  const bool is_any = errnum == 0 || errnum == EACCES || errnum == EPERM;  // that has the id
  // In this order: what was opened is of the process with this start.
  if (is_gone || (is_any && start_of(process) != start)) {
    throw Error(ErrorCode::not_found, name + " has ended");
  }
  if (errnum != 0) core::throw_errno(name + ": cannot open " + path, errnum);
  return memory;
}

core::Status status_of(ssize_t copied, std::size_t length) noexcept {
  if (copied == static_cast<ssize_t>(length)) return {};
  if (copied == 0) return ErrorCode::not_connected;  // the address space is gone
  return ErrorCode::io_failed;                       // it is not there, or a part of it
}

/// The number of OpenToOthers, and the lock that keeps the setting in step with it.
std::mutex open_mutex;
std::size_t open_count = 0;

/// Fails without Yama, where nothing else keeps processes of one user apart.
void set_tracer(unsigned long tracer) noexcept {
  static_cast<void>(::prctl(PR_SET_PTRACER, tracer, 0UL, 0UL, 0UL));
}

}  // namespace

OpenToOthers::OpenToOthers() noexcept {
  const std::scoped_lock lock(open_mutex);
  ++open_count;
  set_tracer(PR_SET_PTRACER_ANY);  // each time: the program may have set another one meanwhile
}

OpenToOthers::~OpenToOthers() {
  if (!is_one_) return;
  const std::scoped_lock lock(open_mutex);
  if (--open_count == 0) set_tracer(0);
}

InPlaceExport export_in_place(const MemoryRegion& region, Access granted) {
  check_access(granted);
  require_allowed(region, granted | Access::peer_pcie);
  protocol::Writer body;
  body.integer(static_cast<std::uint32_t>(::getpid()))
      .integer(start_of(::getpid()).value_or(0))
      .integer(static_cast<std::uint32_t>(granted))
      .integer(static_cast<std::uint16_t>(region.ranges().size()));
  for (const Range& range : region.ranges()) {
    if (range.location == Location::device || is_elsewhere(range.location)) {
      throw Error(ErrorCode::not_supported,
                  "memory region '" + region.name() + "' has memory that is not this process's");
    }
    body.integer(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(range.address)))
        .integer(static_cast<std::uint64_t>(range.length));
  }
  return {kEnvelope.wrap(body.take()), {}};
}

InPlaceImport import_in_place(std::span<const std::byte> blob) {
  protocol::Reader reader(kEnvelope.unwrap(blob));
  const auto process = reader.integer<std::uint32_t>();
  const auto start = reader.integer<std::uint64_t>();
  InPlaceImport import;
  import.access = static_cast<Access>(reader.integer<std::uint32_t>());
  const auto count = reader.integer<std::uint16_t>();
  kEnvelope.require(process != 0 && process <= std::numeric_limits<std::int32_t>::max(),
                    "its process id is invalid");
  kEnvelope.require(
      includes(kLocalAccess, import.access) && includes(import.access, Access::local_read),
      "its access is invalid");
  kEnvelope.require(count != 0 && count <= kMaxRanges, "it has no ranges, or too many");
  const auto id = static_cast<pid_t>(process);
  const bool writable = includes(import.access, Access::local_write);
  const auto handle = std::make_shared<core::Fd>();
  for (int i = 0; i < count; ++i) {
    import.ranges.push_back(read_range(reader, writable, id, handle));
  }
  kEnvelope.require(reader.finished(), "its body has the wrong length");
  *handle = open_memory(id, start, writable);
  for (Range& range : import.ranges) range.descriptor.fd = handle->get();
  return import;
}

core::Status copy_bytes(Place to, Place from, std::size_t length) noexcept {
  const bool writes = to.range->location == Location::process;
  const bool reads = from.range->location == Location::process;
  if (!writes && !reads) {
    std::memcpy(to.address, from.address, length);
    return {};
  }
  if (writes && reads) return ErrorCode::not_supported;
  const Range& other = writes ? *to.range : *from.range;
  const auto at =
      static_cast<off_t>(reinterpret_cast<std::uintptr_t>(writes ? to.address : from.address));
  const int memory = other.descriptor.fd;
  return status_of(
      writes ? ::pwrite(memory, from.address, length, at) : ::pread(memory, to.address, length, at),
      length);
}

}  // namespace offload::memory
