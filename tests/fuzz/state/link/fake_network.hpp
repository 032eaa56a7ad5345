#pragma once

#include <deque>
#include <functional>

#include "core/fd.hpp"

namespace offload::fuzz {

/// Takes the place of the library's transports when linked: "unix" is the library's own; "tcp" are
/// socket pairs in this process, for addresses without a key.
class FakeNetwork {
 public:
  static FakeNetwork& instance();

  /// Who gets the server's end of each connection that is made; without one a listener does.
  std::function<void(core::Fd)> on_connect;

  /// The worker's end of a new connection.
  core::Fd connect();
  /// That of one to the listener, also where on_connect gets the others.
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
