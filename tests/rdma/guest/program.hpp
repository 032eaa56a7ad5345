#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace offload::rdma {

/// A program of others, its output, and how it ended.
class Program {
 public:
  /// Runs a command for half a minute at most.
  explicit Program(const std::string& command)
      : stream_(::popen(("exec timeout 30 " + command + " 2>&1").c_str(), "r")) {
    if (stream_ == nullptr) throw core::Error(core::ErrorCode::unexpected, "popen");
  }
  ~Program() {
    if (stream_ != nullptr) ::pclose(stream_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Its exit status; its output is in `output` then.
  int wait(std::string& output) {
    std::array<char, 4096> part{};
    while (std::fgets(part.data(), part.size(), stream_) != nullptr) output += part.data();
    const int status = ::pclose(std::exchange(stream_, nullptr));
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  FILE* stream_;
};

inline bool is_there(const std::string& program) {
  std::string output;
  return Program("sh -c 'command -v " + program + "'").wait(output) == 0;
}

}  // namespace offload::rdma
