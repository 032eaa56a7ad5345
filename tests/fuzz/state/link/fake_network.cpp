#include "tests/fuzz/state/link/fake_network.hpp"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "comch/transport/local/control.hpp"
#include "comch/transport/tcp/stream_connection.hpp"
#include "comch/transport/transport.hpp"
#include "core/error.hpp"

namespace offload::fuzz {

FakeNetwork& FakeNetwork::instance() {
  static FakeNetwork one;
  return one;
}

namespace {

std::pair<core::Fd, core::Fd> make_pair() {
  std::array<int, 2> fds{};
  core::check_errno(
      ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()), "a pair");
  return {core::Fd(fds[0]), core::Fd(fds[1])};
}

}  // namespace

core::Fd FakeNetwork::connect() {
  if (!on_connect) return connect_stranger();
  auto [worker_end, server_end] = make_pair();
  on_connect(std::move(server_end));
  return std::move(worker_end);
}

core::Fd FakeNetwork::connect_stranger() {
  auto [peer_end, server_end] = make_pair();
  offer(std::move(server_end));
  return std::move(peer_end);
}

void FakeNetwork::offer(core::Fd server_end) {
  waiting_.push_back(std::move(server_end));
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(listener_fd(), &one, sizeof one);
}

core::Fd FakeNetwork::accept() {
  if (waiting_.empty()) return {};
  core::Fd next = std::move(waiting_.front());
  waiting_.pop_front();
  return next;
}

int FakeNetwork::listener_fd() {
  if (!event_.valid()) event_ = core::Fd(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  return event_.get();
}

void FakeNetwork::clear() {
  waiting_.clear();
  on_connect = nullptr;
}

namespace {

comch::TcpStream connect_stream(const comch::Address&) {
  return comch::TcpStream(FakeNetwork::instance().connect());
}

std::unique_ptr<comch::ControlConnection> connect_fake(const comch::Address& address) {
  return std::make_unique<comch::StreamControlConnection>(connect_stream(address), connect_stream);
}

class FakeListener final : public comch::Listener {
 public:
  using Listener::Listener;

  std::unique_ptr<comch::ControlConnection> accept() override {
    core::Fd fd = FakeNetwork::instance().accept();
    if (!fd.valid()) return nullptr;
    return std::make_unique<comch::StreamControlConnection>(comch::TcpStream(std::move(fd)),
                                                            connect_stream);
  }
  [[nodiscard]] int fd() const noexcept override { return FakeNetwork::instance().listener_fd(); }
};

std::unique_ptr<comch::Listener> listen_fake(const comch::Address& address) {
  return std::make_unique<FakeListener>(address);
}

}  // namespace
}  // namespace offload::fuzz

namespace offload::comch {

std::span<const Transport> transports() noexcept {
  using fuzz::connect_fake;
  using fuzz::listen_fake;
  static constexpr Transport kTransports[] = {
      {"unix", "PATH", parse_path, connect_local, listen_local, true},
      {"tcp", "HOST:PORT", parse_host_and_port, connect_fake, listen_fake, false},
  };
  return kTransports;
}

}  // namespace offload::comch
