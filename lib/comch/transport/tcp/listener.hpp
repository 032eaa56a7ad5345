#pragma once

#include <memory>
#include <vector>

#include "comch/transport/tcp/stream_connection.hpp"
#include "core/log.hpp"

namespace offload::comch {

/// Accepts TCP connections at each address of a name, with one port. Connections of one source wait
/// in one queue of the kernel, and the queues take turns.
class TcpListener : public Listener {
 public:
  /// Throws Error: in_use, not_permitted without a key.
  explicit TcpListener(const Address& address);

  std::unique_ptr<ControlConnection> accept() override;
  [[nodiscard]] int fd() const noexcept override { return epoll_.get(); }

 protected:
  /// Returns the addresses at which it listens.
  [[nodiscard]] std::vector<net::SocketAddress> own_addresses() const;

 private:
  /// Returns the connection on an accepted stream. `keys`: the peer must prove one of them; null:
  /// none.
  virtual std::unique_ptr<ControlConnection> make(TcpStream stream,
                                                  std::shared_ptr<const Keyring> keys);

  std::vector<core::Fd> sockets_;
  core::Fd epoll_;  ///< of all sockets; readable while one of them is
  ServerStreams streams_;
  core::RateLimit waiting_log_;
};

}  // namespace offload::comch
