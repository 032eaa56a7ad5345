#include "tests/simulation/kernel/stores.hpp"

#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <utility>

namespace offload::simulation {
namespace {

constexpr std::uintptr_t kPage = 4096;
constexpr greg_t kTrapFlag = 0x100;  ///< of EFLAGS: one instruction

struct Range {
  std::uintptr_t begin;
  std::uintptr_t end;
};

bool traps = false;
std::uint64_t kills_one_in = 0;  ///< 0: none
std::function<void(Process&)> kills;
std::vector<Range> ranges;
/// The pages that the current instruction may write to: a store may cross into a second page.
std::array<std::uintptr_t, 4> open_pages{};
std::size_t open_count = 0;

void protect(std::uintptr_t page, int protection) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a signal's address, rounded
  if (::mprotect(reinterpret_cast<void*>(page), kPage, protection) != 0) std::abort();
}

/// Called before a store. Other fibers may run here; it may be the last store of its program.
void stop_at_store() {
  Fiber& fiber = *kernel->current;
  if (fiber.calls != 0) return;
  if (kills_one_in != 0 && kernel->random.one_in(kills_one_in)) {
    kernel->note("at a store");
    kills(*fiber.process);
    kernel->end_fiber();
  }
  kernel->yield();
}

void on_fault(int, siginfo_t* info, void* context) {
  const int saved = errno;
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const bool is_ours = std::ranges::any_of(
      ranges, [at](const Range& range) { return at >= range.begin && at < range.end; });
  if (!is_ours || kernel->current == nullptr || open_count == open_pages.size()) {
    std::signal(SIGSEGV, SIG_DFL);  // it comes again, and ends the process
    return;
  }
  if (open_count == 0) stop_at_store();
  const std::uintptr_t page = at / kPage * kPage;
  protect(page, PROT_READ | PROT_WRITE);
  open_pages.at(open_count++) = page;
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] |= kTrapFlag;
  errno = saved;
}

void on_step(int, siginfo_t*, void* context) {
  while (open_count != 0) protect(open_pages.at(--open_count), PROT_READ);
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL] &= ~kTrapFlag;
}

void handle(int number, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action {};
  action.sa_sigaction = handler;
  // A switch leaves a fiber in its handler: the next fiber's fault must not wait for its end.
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  if (::sigaction(number, &action, nullptr) != 0) std::abort();
}

}  // namespace

void trap_stores() {
  traps = true;
  handle(SIGSEGV, on_fault);
  handle(SIGTRAP, on_step);
}

void kill_at_stores(std::uint64_t one_in, std::function<void(Process&)> kill) {
  kills_one_in = one_in;
  kills = std::move(kill);
}

void note_mapping(void* begin, std::size_t size) {
  if (!traps || !kernel->current->process->name.starts_with("worker")) return;
  const auto at = reinterpret_cast<std::uintptr_t>(begin);
  ranges.push_back({at, at + size});
  if (::mprotect(begin, size, PROT_READ) != 0) std::abort();
}

}  // namespace offload::simulation
