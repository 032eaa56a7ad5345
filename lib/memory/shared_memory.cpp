#include "memory/shared_memory.hpp"

#include <fcntl.h>
#include <numa.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <utility>

#include "core/error.hpp"

namespace offload::memory {
namespace {

using core::check_errno;
using core::Error;
using core::ErrorCode;

constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW;

/// Throws Error for a file that cannot be mapped safely.
void check_import(int fd, std::size_t bytes) {
  // The seals first: without them the size could change after it was checked.
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    throw Error(ErrorCode::invalid_value, "shared memory that is not sealed against shrinking");
  }
  struct stat status {};
  check_errno(::fstat(fd, &status), "fstat of shared memory");
  if (bytes == 0 || status.st_size < 0 || static_cast<std::size_t>(status.st_size) < bytes) {
    throw Error(ErrorCode::invalid_value, "shared memory of " + std::to_string(status.st_size) +
                                              " bytes where " + std::to_string(bytes) +
                                              " were announced");
  }
}

}  // namespace

SharedMemory::SharedMemory(core::Fd fd, std::size_t bytes, int protection)
    : fd_(std::move(fd)), size_(bytes) {
  void* address = ::mmap(nullptr, size_, protection, MAP_SHARED, fd_.get(), 0);
  if (address == MAP_FAILED) {
    core::throw_errno("cannot map " + std::to_string(size_) + " bytes of shared memory");
  }
  data_ = static_cast<std::byte*>(address);
}

SharedMemory SharedMemory::create(const std::string& name, std::size_t bytes, int numa_node) {
  const std::size_t page = page_size();
  bytes = (bytes + page - 1) / page * page;
  core::Fd fd(
      check_errno(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING), "memfd_create"));
  check_errno(::ftruncate(fd.get(), static_cast<off_t>(bytes)),
              "cannot make " + std::to_string(bytes) + " bytes of shared memory");
  check_errno(::fcntl(fd.get(), F_ADD_SEALS, kSizeSeals | F_SEAL_SEAL), "cannot seal a memfd");
  SharedMemory memory(std::move(fd), bytes, PROT_READ | PROT_WRITE);
  if (numa_node >= 0 && ::numa_available() >= 0) {
    ::numa_tonode_memory(memory.data_, bytes, numa_node);
  }
  // Touches every page, so that the data path has no page faults. volatile: the compiler must not
  // drop the write.
  for (std::size_t at = 0; at < bytes; at += page) {
    *const_cast<volatile std::byte*>(memory.data_ + at) = std::byte{0};
  }
  return memory;
}

SharedMemory SharedMemory::import(core::Fd fd, std::size_t bytes, bool writable) {
  check_import(fd.get(), bytes);
  return {std::move(fd), bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ};
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

}  // namespace offload::memory
