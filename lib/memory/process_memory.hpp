#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "core/status.hpp"
#include "memory/access.hpp"
#include "memory/range.hpp"
#include "memory/region.hpp"

/// Memory that another process of this machine accesses where it lies, by /proc/PID/mem (proc(5)):
/// no mapping, so any memory can be exported, also a heap's. The two processes have the same user,
/// or the importer has CAP_SYS_PTRACE, and they see each other's process ids. Setup calls: they
/// throw Error.
namespace offload::memory {

/// Keeps this process open to others: while one exists, Yama does not keep processes of the same
/// user from accessing its memory (PR_SET_PTRACER, prctl(2)). The setting replaces one of the
/// program, and the end of the last one clears it. Any thread.
class OpenToOthers {
 public:
  OpenToOthers() noexcept;
  OpenToOthers(OpenToOthers&& other) noexcept : is_one_(std::exchange(other.is_one_, false)) {}
  OpenToOthers& operator=(OpenToOthers&& other) noexcept {
    std::swap(is_one_, other.is_one_);
    return *this;
  }
  ~OpenToOthers();

 private:
  bool is_one_ = true;
};

/// A description of a region for other processes. While it exists, only the importer's own check
/// keeps accesses to the ranges and rights. Importers must be destroyed first: what they have
/// opened stays open for them.
struct InPlaceExport {
  std::vector<std::byte> blob;  ///< to be transmitted by any means
  OpenToOthers open;
};
/// Describes a started region. Throws Error: bad_state, invalid_value as check_access,
/// not_permitted for more than the region allows, not_supported for memory of a device.
InPlaceExport export_in_place(const MemoryRegion& region, Access granted);

/// The ranges of an export, at Location::process, and the rights to them.
struct InPlaceImport {
  Access access = Access::none;
  std::vector<Range> ranges;
};
/// Throws Error: unsupported_version and bad_message as protocol::Envelope and for fields that
/// export_in_place() cannot have made, not_found if the process has ended, and the error of the
/// operating system if its memory cannot be opened, such as not_permitted.
InPlaceImport import_in_place(std::span<const std::byte> blob);

/// A place in a range.
struct Place {
  std::byte* address = nullptr;
  const Range* range = nullptr;
};
/// Copies `length` bytes; one of the ranges may be at Location::process, and neither of a device.
/// Errors: not_connected if that process has ended or runs another program, io_failed if the memory
/// is not there, not_supported for two ranges at Location::process.
core::Status copy_bytes(Place to, Place from, std::size_t length) noexcept;

}  // namespace offload::memory
