#pragma once

#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>

#include <csignal>
#include <string>
#include <vector>

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

/// A process and all that it starts, gone when this goes.
class ProcessGroup {
 public:
  explicit ProcessGroup(pid_t process) noexcept : process_(process) {}
  ProcessGroup& operator=(ProcessGroup&&) = delete;
  ~ProcessGroup() {
    ::kill(-process_, SIGKILL);
    if (!ended_) ::waitpid(process_, &status_, 0);  // it was just killed
  }

  /// Returns whether the process has ended, without waiting.
  [[nodiscard]] bool has_ended() {
    if (!ended_) ended_ = ::waitpid(process_, &status_, WNOHANG) == process_;
    return ended_;
  }
  /// Returns why the process failed, such as "exit status 1"; empty if it succeeded. Precondition:
  /// has_ended().
  [[nodiscard]] std::string failure() const {
    if (WIFSIGNALED(status_)) return fmt::format("signal {}", WTERMSIG(status_));
    const int status = WEXITSTATUS(status_);
    return status == 0 ? std::string() : fmt::format("exit status {}", status);
  }

 private:
  pid_t process_;
  int status_ = 0;
  bool ended_ = false;
};

/// Returns pointers to `texts` with a null at the end, as posix_spawn(3) takes them. `texts` must
/// outlive them.
inline std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace offload::core
