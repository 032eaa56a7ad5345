#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comch/transport/rdma/adapter.hpp"
#include "core/fd.hpp"
#include "net/socket.hpp"
#include "rdma/path/local_path.hpp"
#include "rdma/verbs/async_events.hpp"

namespace offload::comch {

/// Returns an epoll descriptor that is readable while one of `fds`, which outlive it, is. Throws
/// Error.
core::Fd watch_all(std::initializer_list<int> fds);

/// The RDMA devices of the connections of a server or worker, each opened at its first use. Logs
/// their asynchronous events. One thread.
class Adapters {
 public:
  /// A device and a path for queue pairs of this machine.
  struct Place {
    std::shared_ptr<Adapter> adapter;
    rdma::PathOptions path;
  };

  /// Throws Error.
  explicit Adapters(rdma::PathChoice choice);

  /// Returns the place of the queue pairs for a connection whose local address is `own`: on the
  /// device that has this address, or that the choice names. Throws Error: not_supported without an
  /// RDMA device, not_found if none has the address, and what rdma::path_at() throws.
  Place find(const net::SocketAddress& own);
  /// Throws Error if no port of any device has the choice's GID index or partition.
  void check_choice() const;

  /// Returns a descriptor that is readable when log_events() has something to do.
  [[nodiscard]] int fd() const noexcept { return epoll_.get(); }
  /// Logs the events that have arrived. A device that was removed or reset is reopened for the next
  /// use, and its connections fail. Returns the name of such a device; empty if there is none.
  std::string log_events();

 private:
  struct Open {
    explicit Open(const std::string& name);
    std::shared_ptr<Adapter> adapter = nullptr;
    rdma::AsyncEvents events;
  };

  [[nodiscard]] std::vector<std::string> candidates() const;
  [[nodiscard]] std::optional<rdma::PathOptions> path_at(const rdma::DeviceContext& device,
                                                         const net::SocketAddress& own) const;
  /// Returns an open device, or null if it is not open.
  [[nodiscard]] std::shared_ptr<Adapter> find_open(const std::string& name) const;
  std::shared_ptr<Adapter> open(const std::string& name);
  void log(const net::SocketAddress& own, const std::string& path);

  rdma::PathChoice choice_;
  core::Fd epoll_;  ///< of the events of all that are open
  std::vector<std::unique_ptr<Open>> open_;
  std::string described_;  ///< the path that was logged last
};

}  // namespace offload::comch
