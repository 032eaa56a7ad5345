#pragma once

#include <netinet/in.h>
#include <sys/uio.h>
#include <ucontext.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tests/simulation/kernel/sanitizer.hpp"

/// A small deterministic kernel in one thread. The programs' real classes run on it: the system
/// calls that they and their libraries make are defined in *_calls.cpp, before those of libc. Each
/// thread of each program is a fiber; the seed selects at each system call which one continues.
namespace offload::simulation {

/// splitmix64: gives the same numbers on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }
  /// Returns a number from 0 to `end` - 1.
  std::uint64_t below(std::uint64_t end) { return end == 0 ? 0 : next() % end; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

using Time = std::int64_t;  ///< nanoseconds of virtual time
constexpr Time kMillisecond = 1'000'000;
constexpr Time kSecond = 1'000'000'000;
constexpr Time kNever = INT64_MAX;
constexpr std::size_t kStack = 512 * 1024;  ///< bytes of a fiber's
/// Descriptors of the simulation start here; lower ones are the real process's.
constexpr int kFirstFd = 1000;

/// An open file. Its destructor is its last close.
struct Object {
  virtual ~Object() = default;
  [[nodiscard]] virtual std::uint32_t poll() const = 0;  ///< events of epoll that hold
  /// Returns the number of arrivals, for edge-triggered watchers.
  [[nodiscard]] virtual std::uint64_t arrivals() const { return in_wakes; }
  std::uint64_t in_wakes = 0;
  std::uint64_t out_wakes = 0;
};
using File = std::shared_ptr<Object>;

struct Process {
  int pid;
  std::string name;
  std::map<int, File> fds{};
  std::deque<int> signals{};
  std::size_t most_fds = 512;
  std::uint32_t host = INADDR_LOOPBACK;           ///< the address that it connects from
  int status = 0;                                 ///< of _exit()
  std::vector<std::span<const char>> requests{};  ///< what a worker has mapped to read, if watched
  bool alive = true;
  bool frozen = false;

  /// Returns the lowest free number, or -1 with errno (EMFILE).
  int add(File file);
  template <class T>
  std::shared_ptr<T> get(int fd) {
    const auto found = fds.find(fd);
    return found == fds.end() ? nullptr : std::dynamic_pointer_cast<T>(found->second);
  }
};

struct Fiber {
  std::uint64_t id;
  std::string name;
  Process* process;
  std::function<void()> body;
  ucontext_t context{};
  std::unique_ptr<char[]> stack{};
  StackState stack_state{};
  std::function<bool()> ready{};  ///< waits for it, if set
  Time deadline = kNever;
  bool waiting = false;
  bool done = false;
  bool frozen = false;       ///< hangs, alone of its process
  bool in_epoll = false;     ///< waits for events
  bool interrupted = false;  ///< that wait ends, as its process was stopped
  int locks = 0;             ///< mutexes that it holds
  int saved_errno = 0;
  void* exceptions[2] = {};  ///< what __cxa_get_globals() has for a thread
  std::uint64_t sleeps = 0;  ///< calls of epoll
  unsigned calls = 0;        ///< system calls that it is in, one within the other
  std::uint64_t events = 0;  ///< that it was told by epoll
};

class Kernel {
 public:
  explicit Kernel(std::uint64_t seed) : random(seed) {}

  Process& start(const std::string& name, std::function<void()> main);
  Fiber& add_fiber(Process& process, const std::string& name, std::function<void()> body);
  /// Kills a process, as kill -9 does: its fibers never continue, its files are closed.
  void kill(Process& process);
  void signal(Process& process, int number);
  /// Act like SIGSTOP or a freezer, and SIGCONT: they may end a wait for events, signal(7).
  void freeze(Process& process);
  void thaw(Process& process);
  /// Returns whether its threads have all ended, or it was killed.
  [[nodiscard]] bool ended(const Process& process) const;

  /// Runs until no fiber can ever continue, or until `limit`.
  void run(Time limit);
  void at(Time time, std::function<void()> action) {
    events_.emplace(std::pair(time, ++event_count_), std::move(action));
  }

  // On a fiber:
  /// Lets another fiber run, if the seed says so.
  void yield();
  /// Returns false if the deadline came first.
  bool wait(std::function<bool()> ready, Time deadline = kNever);
  void sleep(Time time) {
    wait([] { return false; }, now + time);
  }
  [[noreturn]] void end_fiber();
  /// Begins a fiber.
  void enter() { end_switch(current->stack_state, &scheduler_stack_); }

  void fail(const std::string& what);
  /// Adds a step to the trace.
  void note(const char* what, std::uint64_t a = 0, std::uint64_t b = 0);

  /// Called at each system call of a program, with the errors that it can return: returns the one
  /// that it returns, or 0. If it is not set, no call fails.
  std::function<int(const char* call, std::initializer_list<int> errors)> refuses{};

  Random random;
  Time now = 1000 * kSecond;
  Fiber* current = nullptr;
  std::vector<std::unique_ptr<Fiber>> fibers{};
  std::vector<std::unique_ptr<Process>> processes{};
  std::map<std::string, std::weak_ptr<Object>> names{};  ///< what listens, by path or port
  std::map<const void*, std::uint64_t> wakes{};  ///< of futexes and conditions; never walked
  std::uint64_t preempt_one_in = 4;
  std::uint64_t hash = 14695981039346656037U;
  std::uint64_t steps = 0;
  std::vector<std::string> failures{};
  bool traces = false;
  bool over = false;
  std::uint64_t orphans = 0;        ///< connections to machines that are gone, with bytes to send
  std::function<void()> on_step{};  ///< as the current fiber begins a call
  /// Called before a fiber continues. Returns false if its process was killed.
  std::function<bool(Fiber&)> before_resume{};
  bool watches_requests = false;  ///< Process::requests is kept

  // The random parameters of the network.
  Time longest_delay = kMillisecond;
  std::uint64_t split_one_in = 4;  ///< 0: never
  std::size_t socket_room = 64 * 1024;
  std::uint16_t clients_port = 0;  ///< connections there also take less than they have room for

 private:
  void resume(Fiber& fiber);
  void leave();
  std::map<std::pair<Time, std::uint64_t>, std::function<void()>> events_{};
  std::uint64_t event_count_ = 0;
  std::uint64_t fiber_count_ = 0;
  ucontext_t scheduler_{};
  StackState scheduler_stack_{};
};

/// The kernel of this process; null before the first.
extern Kernel* kernel;

}  // namespace offload::simulation
