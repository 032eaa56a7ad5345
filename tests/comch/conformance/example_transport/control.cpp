#include "tests/comch/conformance/example_transport/control.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>

#include "comch/transport/tcp/stream_connection.hpp"
#include "core/error.hpp"

namespace offload::comch::example {
namespace {

core::Fd stream_socket() {
  return core::Fd(core::check_errno(
      ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), "cannot open a socket"));
}

/// Calls ::bind or ::connect with the address.
template <class Call>
void with_address(Call call, int fd, const Address& address) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::ranges::copy(address.path, name.sun_path);
  core::check_errno(call(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name),
                    address.to_string());
}

TcpStream connect_stream_socket(const Address& address) {
  address.require_key();
  core::Fd fd = stream_socket();
  with_address(::connect, fd.get(), address);
  return secure_stream(std::move(fd), address, address.to_string(),
                       core::Clock::now() + kHandshakeTime);
}

class StreamListener final : public Listener {
 public:
  explicit StreamListener(const Address& address)
      : Listener(address), fd_(stream_socket()), streams_(address) {
    address.require_key();
    with_address(::bind, fd_.get(), address);
    core::check_errno(::listen(fd_.get(), 128), address.to_string());
  }
  ~StreamListener() override { ::unlink(address().path.c_str()); }

  std::unique_ptr<ControlConnection> accept() override {
    while (true) {
      core::Fd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!fd.valid()) return nullptr;
      if (!admits({})) continue;  // its peers have no address: they are one source
      return std::make_unique<StreamControlConnection>(streams_.make(std::move(fd)),
                                                       connect_stream_socket, streams_.keys());
    }
  }
  [[nodiscard]] int fd() const noexcept override { return fd_.get(); }

 private:
  core::Fd fd_;
  ServerStreams streams_;
};

}  // namespace

std::unique_ptr<ControlConnection> connect_stream(const Address& address) {
  return std::make_unique<StreamControlConnection>(connect_stream_socket(address),
                                                   connect_stream_socket);
}

std::unique_ptr<Listener> listen_stream(const Address& address) {
  return std::make_unique<StreamListener>(address);
}

}  // namespace offload::comch::example
