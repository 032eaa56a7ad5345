#include "tests/simulation/kernel/kernel.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace offload::simulation {

Kernel* kernel = nullptr;

namespace {

void enter_fiber() {
  kernel->enter();
  kernel->current->body();
  kernel->end_fiber();
}

}  // namespace

int Process::add(File file) {
  int fd = kFirstFd;
  for (const auto& [used, object] : fds) {
    if (used != fd) break;
    ++fd;
  }
  if (fds.size() >= most_fds) {
    errno = EMFILE;
    return -1;
  }
  fds.emplace(fd, std::move(file));
  return fd;
}

Process& Kernel::start(const std::string& name, std::function<void()> main) {
  processes.push_back(std::make_unique<Process>());
  Process& process = *processes.back();
  process.pid = static_cast<int>(100 + processes.size());
  process.name = name + "-" + std::to_string(process.pid);
  add_fiber(process, "main", std::move(main));
  return process;
}

Fiber& Kernel::add_fiber(Process& process, const std::string& name, std::function<void()> body) {
  fibers.push_back(std::make_unique<Fiber>());
  Fiber& fiber = *fibers.back();
  fiber.id = ++fiber_count_;
  fiber.name = name;
  fiber.process = &process;
  fiber.body = std::move(body);
  fiber.stack = std::make_unique_for_overwrite<char[]>(kStack);
  ::getcontext(&fiber.context);
  fiber.stack_state = {nullptr, fiber.stack.get(), kStack};
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = kStack;
  ::makecontext(&fiber.context, enter_fiber, 0);
  return fiber;
}

void Kernel::kill(Process& process) {
  note("kill", static_cast<std::uint64_t>(process.pid));
  process.alive = false;
  const auto fds = std::move(process.fds);
  process.fds.clear();
}

void Kernel::signal(Process& process, int number) {
  note("signal", static_cast<std::uint64_t>(process.pid), static_cast<std::uint64_t>(number));
  process.signals.push_back(number);
}

void Kernel::freeze(Process& process) {
  note("freeze", static_cast<std::uint64_t>(process.pid));
  process.frozen = true;
}

void Kernel::thaw(Process& process) {
  note("thaw", static_cast<std::uint64_t>(process.pid));
  if (!std::exchange(process.frozen, false) || random.one_in(2)) return;
  for (const auto& fiber : fibers) {
    if (fiber->process == &process && fiber->in_epoll) fiber->interrupted = true;
  }
}

bool Kernel::ended(const Process& process) const {
  return !process.alive || std::ranges::all_of(fibers, [&](const auto& fiber) {
    return fiber->process != &process || fiber->done;
  });
}

void Kernel::resume(Fiber& fiber) {
  current = &fiber;
  auto* const exceptions = reinterpret_cast<void**>(abi::__cxa_get_globals());
  std::swap(exceptions[0], fiber.exceptions[0]);
  std::swap(exceptions[1], fiber.exceptions[1]);
  errno = fiber.saved_errno;
  begin_switch(scheduler_stack_, fiber.stack_state);
  ::swapcontext(&scheduler_, &fiber.context);
  end_switch(scheduler_stack_, nullptr);
  fiber.saved_errno = errno;
  std::swap(exceptions[0], fiber.exceptions[0]);
  std::swap(exceptions[1], fiber.exceptions[1]);
  current = nullptr;
}

void Kernel::leave() {
  Fiber& fiber = *current;
  begin_switch(fiber.stack_state, scheduler_stack_, fiber.done);
  ::swapcontext(&fiber.context, &scheduler_);
  end_switch(fiber.stack_state, nullptr);
}

void Kernel::end_fiber() {
  current->done = true;
  leave();
  __builtin_unreachable();
}

void Kernel::yield() {
  if (current->locks != 0 || !random.one_in(preempt_one_in)) return;
  leave();
}

bool Kernel::wait(std::function<bool()> ready, Time deadline) {
  current->ready = std::move(ready);
  current->deadline = deadline;
  current->waiting = true;
  leave();
  current->waiting = false;
  return current->ready();
}

void Kernel::run(Time limit) {
  std::vector<Fiber*> runnable;
  while (!over && now < limit && failures.empty()) {
    while (!events_.empty() && events_.begin()->first.first <= now) {
      auto event = std::move(events_.extract(events_.begin()).mapped());
      event();
    }
    runnable.clear();
    Time next = events_.empty() ? kNever : events_.begin()->first.first;
    for (const auto& fiber : fibers) {
      if (fiber->done || !fiber->process->alive || fiber->process->frozen || fiber->frozen)
        continue;
      if (!fiber->waiting || fiber->interrupted || fiber->deadline <= now || fiber->ready()) {
        runnable.push_back(fiber.get());
      } else {
        next = std::min(next, fiber->deadline);
      }
    }
    if (runnable.empty()) {
      if (next == kNever) return;
      now = std::max(now, next);
      continue;
    }
    Fiber& chosen = *runnable[random.below(runnable.size())];
    ++steps;
    now += static_cast<Time>(100 + random.below(2000));
    if (!before_resume || before_resume(chosen)) resume(chosen);
  }
}

void Kernel::fail(const std::string& what) {
  failures.push_back(what);
  note(("FAILED: " + what).c_str());
}

void Kernel::note(const char* what, std::uint64_t a, std::uint64_t b) {
  const auto mix = [this](const void* data, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) {
      hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 1099511628211U;
    }
  };
  const std::uint64_t fiber = current == nullptr ? 0 : current->id;
  mix(&now, sizeof now);
  mix(&fiber, sizeof fiber);
  mix(what, std::strlen(what));
  mix(&a, sizeof a);
  mix(&b, sizeof b);
  if (!traces) return;
  std::printf("%12.6f %-12s %-10s %s %llu %llu\n", static_cast<double>(now - 1000 * kSecond) / 1e9,
              current == nullptr ? "kernel" : current->process->name.c_str(),
              current == nullptr ? "" : current->name.c_str(), what,
              static_cast<unsigned long long>(a), static_cast<unsigned long long>(b));
}

}  // namespace offload::simulation
