#include "tests/simulation/kernel/allocations.hpp"

#include <execinfo.h>
#include <link.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <span>
#include <utility>

#include "tests/simulation/kernel/kernel.hpp"

namespace offload::simulation {

bool (*allocation_fails)() = nullptr;

namespace {

constexpr std::size_t kPrograms = 1024;
constexpr int kPlaces = 12;
bool keeps_places = false;

/// Precedes each block and has its owner. The blocks of a program are in a list.
struct alignas(std::max_align_t) Header {
  std::size_t pid;
  std::size_t size;
  Header* next;
  Header* before;
  bool reached;
  std::array<void*, kPlaces> place;

  [[nodiscard]] std::span<void* const> words() const {
    return {reinterpret_cast<void* const*>(this + 1), size / sizeof(void*)};
  }
};
std::array<Header*, kPrograms> lists{};

/// Returns the number of the program that runs, 0 in the kernel and outside of it.
std::size_t program() {
  if (kernel == nullptr || kernel->current == nullptr || kernel->current->calls != 0) return 0;
  return static_cast<std::size_t>(kernel->current->process->pid) % kPrograms;
}

std::size_t room_for(std::size_t alignment) {
  return (sizeof(Header) + alignment - 1) / alignment * alignment;
}

void enter(Header& header) {
  Header*& first = lists[header.pid];
  header.before = nullptr;
  header.next = first;
  if (first != nullptr) first->before = &header;
  first = &header;
}
void leave(const Header& header) {
  (header.before == nullptr ? lists[header.pid] : header.before->next) = header.next;
  if (header.next != nullptr) header.next->before = header.before;
}

/// Returns null if it fails.
void* allocate(std::size_t size, std::size_t alignment = alignof(std::max_align_t)) noexcept {
  const std::size_t pid = program();
  if (pid != 0 && allocation_fails != nullptr && allocation_fails()) return nullptr;
  const std::size_t room = room_for(alignment);
  const std::size_t whole = (size + room + alignment - 1) / alignment * alignment;
  auto* const begin = static_cast<char*>(std::aligned_alloc(alignment, whole));
  if (begin == nullptr) return nullptr;
  Header& header = reinterpret_cast<Header*>(begin + room)[-1];
  header.pid = pid;
  header.size = size;
  header.place = {};
  if (keeps_places && pid != 0) ::backtrace(header.place.data(), kPlaces);
  enter(header);
  return begin + room;
}

void release(void* block, std::size_t alignment = alignof(std::max_align_t)) noexcept {
  if (block == nullptr) return;
  leave(static_cast<Header*>(block)[-1]);
  std::free(static_cast<char*>(block) - room_for(alignment));
}

void* or_throw(void* block) {
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

/// Follows words that look like pointers to blocks of `list`. Reads between variables, too.
__attribute__((no_sanitize("address"))) void reach_from(std::span<void* const> words,
                                                        Header* list) {
  for (void* const word : words) {
    const auto* const at = static_cast<char*>(word);
    for (Header* block = list; block != nullptr; block = block->next) {
      const auto* const begin = reinterpret_cast<char*>(block + 1);
      if (block->reached || at < begin || at > begin + block->size) continue;
      block->reached = true;
      reach_from(block->words(), list);
    }
  }
}

/// Follows the variables of the program and of its libraries.
int reach_from_library(dl_phdr_info* library, std::size_t, void* list) {
  for (std::size_t i = 0; i < library->dlpi_phnum; ++i) {
    const auto& segment = library->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) == 0) continue;
    const std::size_t begin = (library->dlpi_addr + segment.p_vaddr + 15) / 16 * 16;
    const std::size_t end = library->dlpi_addr + segment.p_vaddr + segment.p_memsz;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader's address of a segment
    const std::span<void* const> words(reinterpret_cast<void* const*>(begin),
                                       (end - begin) / sizeof(void*));
    reach_from(words, static_cast<Header*>(list));
  }
  return 0;
}

}  // namespace

void keep_places() {
  keeps_places = true;
}

std::uint64_t lost_blocks_of(int pid, bool shows) {
  // The list itself begins among the variables, and must not lead anywhere.
  Header* const list = std::exchange(lists[static_cast<std::size_t>(pid) % kPrograms], nullptr);
  for (Header* block = list; block != nullptr; block = block->next) block->reached = false;
  ::dl_iterate_phdr(reach_from_library, list);
  for (const auto& fiber : kernel->fibers) {
    if (fiber->process->pid != pid || fiber->done) continue;
    // The arguments of a fiber that has not yet begun; and its stack.
    reach_from({reinterpret_cast<void* const*>(fiber.get()), sizeof(Fiber) / sizeof(void*)}, list);
    reach_from({reinterpret_cast<void* const*>(fiber->stack.get()), kStack / sizeof(void*)}, list);
  }
  std::uint64_t lost = 0;
  for (Header* block = list; block != nullptr; block = block->next) {
    if (block->reached) continue;
    ++lost;
    if (!shows) continue;
    std::printf("%zu bytes are lost:\n", block->size);
    std::fflush(stdout);
    ::backtrace_symbols_fd(block->place.data(), static_cast<int>(block->place.size()), 1);
  }
  lists[static_cast<std::size_t>(pid) % kPrograms] = list;
  return lost;
}

}  // namespace offload::simulation

// clang-format off
namespace sim = offload::simulation;
#pragma GCC visibility push(default)
void* operator new(std::size_t size) { return sim::or_throw(sim::allocate(size)); }
void* operator new[](std::size_t size) { return sim::or_throw(sim::allocate(size)); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return sim::allocate(size); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return sim::allocate(size); }
void* operator new(std::size_t size, std::align_val_t at) { return sim::or_throw(sim::allocate(size, static_cast<std::size_t>(at))); }
void* operator new[](std::size_t size, std::align_val_t at) { return sim::or_throw(sim::allocate(size, static_cast<std::size_t>(at))); }
void* operator new(std::size_t size, std::align_val_t at, const std::nothrow_t&) noexcept { return sim::allocate(size, static_cast<std::size_t>(at)); }
void* operator new[](std::size_t size, std::align_val_t at, const std::nothrow_t&) noexcept { return sim::allocate(size, static_cast<std::size_t>(at)); }
void operator delete(void* block) noexcept { sim::release(block); }
void operator delete[](void* block) noexcept { sim::release(block); }
void operator delete(void* block, std::size_t) noexcept { sim::release(block); }
void operator delete[](void* block, std::size_t) noexcept { sim::release(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { sim::release(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { sim::release(block); }
void operator delete(void* block, std::align_val_t at) noexcept { sim::release(block, static_cast<std::size_t>(at)); }
void operator delete[](void* block, std::align_val_t at) noexcept { sim::release(block, static_cast<std::size_t>(at)); }
void operator delete(void* block, std::size_t, std::align_val_t at) noexcept { sim::release(block, static_cast<std::size_t>(at)); }
void operator delete[](void* block, std::size_t, std::align_val_t at) noexcept { sim::release(block, static_cast<std::size_t>(at)); }
void operator delete(void* block, std::align_val_t at, const std::nothrow_t&) noexcept { sim::release(block, static_cast<std::size_t>(at)); }
void operator delete[](void* block, std::align_val_t at, const std::nothrow_t&) noexcept { sim::release(block, static_cast<std::size_t>(at)); }
#pragma GCC visibility pop
