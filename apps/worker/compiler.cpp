#include "apps/worker/compiler.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/process/child.hpp"
#include "core/process/thread.hpp"

namespace offload::worker {
namespace {

using core::check_errno;
using core::check_spawn;

/// nvcc takes half a minute for a service of some size.
constexpr core::Duration kLongestRun = std::chrono::minutes(3);
constexpr std::size_t kMostOutput = 64 * 1024;

/// The child's actions before it runs its program: another folder, no input, its output to a pipe.
class SpawnActions {
 public:
  SpawnActions(int folder, int output) {
    check_spawn(::posix_spawn_file_actions_init(&actions_), "posix_spawn_file_actions_init");
    check_spawn(::posix_spawn_file_actions_addfchdir_np(&actions_, folder), "fchdir");
    check_spawn(
        ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0),
        "/dev/null");
    for (const int to : {STDOUT_FILENO, STDERR_FILENO}) {
      check_spawn(::posix_spawn_file_actions_adddup2(&actions_, output, to), "dup2");
    }
  }
  SpawnActions& operator=(SpawnActions&&) = delete;
  ~SpawnActions() { ::posix_spawn_file_actions_destroy(&actions_); }

  [[nodiscard]] const posix_spawn_file_actions_t* get() const noexcept { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

/// This program's environment, with English messages and temporary files in `folder`.
std::vector<std::string> environment_in(const std::string& folder) {
  std::vector<std::string> variables{"LC_ALL=C", "TMPDIR=" + folder};
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view variable(*each);
    if (!variable.starts_with("LC_ALL=") && !variable.starts_with("TMPDIR=")) {
      variables.emplace_back(variable);
    }
  }
  return variables;
}

pid_t spawn(std::vector<std::string> command, const PrivateFolder& folder, int output) {
  const SpawnActions actions(folder.fd(), output);
  const core::SpawnAttributes attributes;
  auto variables = environment_in(folder.path());
  pid_t process = -1;
  const int status =
      ::posix_spawn(&process, command.front().c_str(), actions.get(), attributes.get(),
                    core::pointers_to(command).data(), core::pointers_to(variables).data());
  if (status != 0) core::throw_thread_error("cannot start " + command.front(), status);
  return process;
}

}  // namespace

PrivateFolder::PrivateFolder() {
  const char* const parent = std::getenv("TMPDIR");
  path_ = fmt::format("{}/offload-XXXXXX", parent != nullptr && *parent != '\0' ? parent : "/tmp");
  if (::mkdtemp(path_.data()) == nullptr) core::throw_errno("mkdtemp " + path_);
  fd_ = core::Fd(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat found {};
  if (!fd_.valid() || ::fstat(fd_.get(), &found) != 0) core::throw_errno("open " + path_);
  if (found.st_uid != ::geteuid() || (found.st_mode & 07777) != S_IRWXU) {
    throw core::Error(core::ErrorCode::not_permitted, path_ + " is not the folder just created");
  }
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

core::Fd PrivateFolder::open_file(const std::string& name) const {
  core::Fd file(
      check_errno(::openat(fd_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC), name));
  struct stat found {};
  check_errno(::fstat(file.get(), &found), name);
  if (!S_ISREG(found.st_mode) || found.st_uid != ::geteuid()) {
    throw core::Error(core::ErrorCode::not_permitted, name + " is not a regular file of this user");
  }
  return file;
}

CompilerRun run_compiler(const std::vector<std::string>& command, const PrivateFolder& folder,
                         core::Signals& signals) {
  int ends[2];
  check_errno(::pipe2(ends, O_CLOEXEC), "pipe2");
  const core::Fd reading(ends[0]);
  core::Fd writing(ends[1]);
  core::ProcessGroup process(spawn(command, folder, writing.get()));
  writing.reset();
  CompilerRun run;
  const core::OutputReader reader{
      [&](std::span<const char> piece) {
        const std::size_t count = std::min(piece.size(), kMostOutput - run.output.size());
        run.output.append(piece.data(), count);
      },
      // SIGHUP rereads what is read after this.
      [&] {
        if (const int signal = signals.take(); signal != 0 && signal != SIGHUP)
          throw core::Interrupted();
      }};
  if (!core::read_until_end(process, reading.get(), signals.fd(), core::Clock::now() + kLongestRun,
                            reader)) {
    run.failure = fmt::format("it did not finish within {} s", core::to_seconds(kLongestRun));
    return run;
  }
  run.failure = process.failure();
  return run;
}

}  // namespace offload::worker
