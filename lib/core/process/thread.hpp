#pragma once

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "core/cpu.hpp"

namespace offload::core {

/// Throws the Error for a thread or a process that could not be started. Where a limit is the
/// reason (EAGAIN), it names the limits of threads: "`action`: Resource temporarily unavailable;
/// limits of threads: 3 (/sys/fs/cgroup/pids/a/pids.max)".
[[noreturn]] void throw_thread_error(const std::string& action, int errnum);

/// Starts a thread of that name (15 characters are kept), which calls `body`(). `Thread` is
/// std::thread or std::jthread. Throws Error. Any thread.
template <class Thread = std::thread, class Body>
Thread start_thread(const std::string& name, Body&& body) {
  try {
    return Thread([name, body = std::forward<Body>(body)]() mutable {
      name_this_thread(name.c_str());
      body();
    });
  } catch (const std::system_error& error) {
    throw_thread_error("cannot start thread " + name, error.code().value());
  }
}

}  // namespace offload::core
