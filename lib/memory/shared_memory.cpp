#include "memory/shared_memory.hpp"

#include <fcntl.h>
#include <numa.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"

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
    throw Error(ErrorCode::invalid_value, "the shared memory is not sealed against shrinking");
  }
  struct stat status {};
  check_errno(::fstat(fd, &status), "fstat of shared memory");
  if (bytes == 0 || status.st_size < 0 || static_cast<std::size_t>(status.st_size) < bytes) {
    throw Error(ErrorCode::invalid_value, "the shared memory has " +
                                              std::to_string(status.st_size) + " bytes, not " +
                                              std::to_string(bytes));
  }
}

}  // namespace

void Unmap::operator()(std::byte* address) const noexcept {
  if (::munmap(address, length) != 0) {
    core::log_error("munmap of {} bytes: {}", length, core::describe_errno(errno));
  }
}

Mapping map(std::size_t length, int protection, int flags, int fd) {
  void* address = ::mmap(nullptr, length, protection, flags, fd, 0);
  return {address == MAP_FAILED ? nullptr : static_cast<std::byte*>(address), Unmap{length}};
}

SharedMemory::SharedMemory(core::Fd fd, std::size_t bytes, int protection)
    : fd_(std::move(fd)), mapping_(map(bytes, protection, MAP_SHARED, fd_.get())) {
  if (!mapping_) {
    core::throw_errno("cannot map " + std::to_string(bytes) + " bytes of shared memory");
  }
}

SharedMemory SharedMemory::reserve(const std::string& name, std::size_t bytes, Writers writers) {
  const std::size_t page = page_size();
  bytes = (bytes + page - 1) / page * page;
  core::Fd fd(
      check_errno(::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING), "memfd_create"));
  check_errno(::ftruncate(fd.get(), static_cast<off_t>(bytes)),
              "cannot make " + std::to_string(bytes) + " bytes of shared memory");
  check_errno(::fcntl(fd.get(), F_ADD_SEALS, kSizeSeals), "cannot seal a memfd");
  SharedMemory memory(std::move(fd), bytes, PROT_READ | PROT_WRITE);
  const int seals = F_SEAL_SEAL | (writers == Writers::maker ? F_SEAL_FUTURE_WRITE : 0);
  check_errno(::fcntl(memory.fd(), F_ADD_SEALS, seals), "cannot seal a memfd against writers");
  return memory;
}

SharedMemory SharedMemory::create(const std::string& name, std::size_t bytes, int numa_node,
                                  Writers writers) {
  SharedMemory memory = reserve(name, bytes, writers);
  if (numa_node >= 0 && ::numa_available() >= 0) {
    ::numa_tonode_memory(memory.data(), memory.size(), numa_node);
  }
  const std::size_t page = page_size();
  // Touches every page, so that the data path has no page faults. volatile: the compiler must not
  // drop the write.
  for (std::size_t at = 0; at < memory.size(); at += page) {
    *const_cast<volatile std::byte*>(memory.data() + at) = std::byte{0};
  }
  return memory;
}

SharedMemory SharedMemory::import(core::Fd fd, std::size_t bytes, bool writable) {
  check_import(fd.get(), bytes);
  return {std::move(fd), bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ};
}

}  // namespace offload::memory
