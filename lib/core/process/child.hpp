#pragma once

#include <spawn.h>
#include <sys/types.h>

#include <csignal>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "core/error.hpp"

/// The parts that a program needs to run another one by posix_spawn(3).
namespace offload::core {

/// Throws the Error of one of posix_spawn's functions, which return an errno.
inline void check_spawn(int status, const char* action) {
  if (status != 0) throw_errno(action, status);
}

/// A separate process group, so that its children end with it, and signals as programs expect them:
/// this one blocks some.
class SpawnAttributes {
 public:
  SpawnAttributes() {
    check_spawn(::posix_spawnattr_init(&attributes_), "posix_spawnattr_init");
    sigset_t none;
    sigemptyset(&none);
    sigset_t by_default = none;
    sigaddset(&by_default, SIGPIPE);
    sigaddset(&by_default, SIGXFSZ);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &by_default);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  SpawnAttributes& operator=(SpawnAttributes&&) = delete;
  ~SpawnAttributes() { ::posix_spawnattr_destroy(&attributes_); }

  [[nodiscard]] const posix_spawnattr_t* get() const noexcept { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

/// A process and all that it starts, gone when this goes. One thread's.
class ProcessGroup {
 public:
  /// `process` is the first of its group, and a child of this process. No other code waits for it.
  explicit ProcessGroup(pid_t process) noexcept : process_(process) {}
  ProcessGroup(ProcessGroup&& other) noexcept
      : process_(std::exchange(other.process_, kNone)),
        status_(other.status_),
        ended_(other.ended_),
        is_known_(other.is_known_) {}
  ProcessGroup& operator=(ProcessGroup&&) = delete;
  ~ProcessGroup() { kill(); }

  /// Returns whether the process has ended, without waiting.
  [[nodiscard]] bool has_ended() noexcept;
  /// Waits until the process has ended, at most until `deadline`. Returns whether it has.
  bool wait_until(TimePoint deadline);
  /// Ends the group by SIGTERM; what is left of it after `limit` by SIGKILL.
  void end(Duration limit);
  /// Returns why the process failed, such as "exit status 1"; empty if it succeeded. A process
  /// whose exit status another one took, as with SIGCHLD ignored, has failed. Precondition:
  /// has_ended().
  [[nodiscard]] std::string failure() const;

 private:
  static constexpr pid_t kNone = -1;

  void kill() noexcept;

  pid_t process_;  ///< and its group; kNone: this object was moved from, or the group is gone
  int status_ = 0;
  bool ended_ = false;
  bool is_known_ = false;  ///< whether status_ is that of the process
};

/// The functions that read_until_end() calls.
struct OutputReader {
  std::function<void(std::span<const char>)> take;  ///< gets the output, in pieces
  std::function<void()> on_signal;  ///< the descriptor of signals is readable; may throw
};

/// Reads the output of a child from `output` until it is closed and `child` has ended. `signals` is
/// a descriptor that becomes readable for a signal. Returns false if `deadline` came first.
bool read_until_end(ProcessGroup& child, int output, int signals, TimePoint deadline,
                    const OutputReader& reader);

/// Returns pointers to `texts` with a null at the end, as posix_spawn(3) takes them. `texts` must
/// outlive them.
inline std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace offload::core
