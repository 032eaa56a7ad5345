#include "comch/transport/tcp/control.hpp"

#include <poll.h>

#include <algorithm>

#include "comch/transport/tcp/listener.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "net/every_address.hpp"

namespace offload::comch {
namespace {

using core::Error;
using core::ErrorCode;

/// Returns the time at which a step of connecting that begins now must end.
core::TimePoint end_of_step(core::TimePoint until) {
  return std::min(until, core::Clock::now() + kHandshakeTime);
}

core::Fd connect_socket(const net::SocketAddress& to, const std::string& action,
                        core::TimePoint until) {
  core::Fd fd = net::start_connect(to);
  if (!wait_for(POLLOUT, fd.get(), until)) core::throw_errno(action, ETIMEDOUT);
  if (const int error = net::connect_result(fd.get()); error != 0) core::throw_errno(action, error);
  net::set_dead_peer_timeout(fd.get(), kDeadPeerTimeout);
  return fd;
}

}  // namespace

TcpStream connect_tcp_stream(const Address& address) {
  return connect_tcp_stream_where(address, [](const net::SocketAddress&) {});
}

TcpStream connect_tcp_stream_where(const Address& address, const CheckOwnAddress& check) {
  address.require_key();
  const auto addresses = net::resolve(address.host, address.port);
  return net::connect_to_any(
      addresses, core::Clock::now() + 2 * kHandshakeTime,
      [&](const net::SocketAddress& to, core::TimePoint until) {
        const std::string name = address.to_string() + " at " + to.to_string();
        core::Fd socket = connect_socket(to, "cannot connect to " + name, end_of_step(until));
        check(net::local_address(socket.get()));
        return secure_stream(std::move(socket), address, name, end_of_step(until));
      });
}

std::unique_ptr<ControlConnection> connect_tcp(const Address& address) {
  TcpStream stream = connect_tcp_stream(address);
  core::log_info("connected to {}: {}", address.to_string(), stream.describe());
  return std::make_unique<StreamControlConnection>(std::move(stream), connect_tcp_stream);
}

std::unique_ptr<Listener> listen_tcp(const Address& address) {
  return std::make_unique<TcpListener>(address);
}

}  // namespace offload::comch
