#pragma once

#include <deque>
#include <functional>

#include "core/fd.hpp"

namespace offload::fuzz {

/// Replaces the library's transports when linked: "unix" is the library's own; "tcp" are
/// socket pairs in this process, for addresses without a key.
class FakeNetwork {
 public:
  static FakeNetwork& instance();

  /// Gets the server's end of each new connection; if it is not set, a listener gets it.
  std::function<void(core::Fd)> on_connect;

  /// Makes a connection and returns the worker's end of it.
  core::Fd connect();
  /// Makes one to the listener, even if on_connect gets the others.
  core::Fd connect_stranger();
  core::Fd accept();
  [[nodiscard]] int listener_fd();
  void clear();

 private:
  void offer(core::Fd server_end);

  std::deque<core::Fd> waiting_;
  core::Fd event_;
};

}  // namespace offload::fuzz
