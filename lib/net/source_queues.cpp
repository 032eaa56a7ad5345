#include <linux/filter.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <vector>

#include "core/error.hpp"
#include "core/log.hpp"
#include "net/socket.hpp"
#include "net/tcp_options.hpp"

namespace offload::net {
namespace {

/// listen_tcp_by_source() makes two to the power of this.
constexpr unsigned kSourceQueueBits = 4;

/// Has the kernel choose among the sockets that listen where `fd` does by a connection's source.
void divide_by_source(int fd) {
  constexpr auto kIp = static_cast<std::uint32_t>(SKF_NET_OFF);  // where its header begins
  constexpr std::uint32_t kV4Source = kIp + 12;
  constexpr std::uint32_t kV6Source = kIp + 8;
  constexpr std::uint32_t kGoldenRatio = 0x9E3779B1;  // spreads neighbours (Knuth 6.4)
  std::array<sock_filter, 12> program{{
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kIp),
      BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 4),  // the version
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 6, 2, 0),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kV4Source),
      BPF_JUMP(BPF_JMP | BPF_JA, 4, 0, 0),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kV6Source),
      BPF_STMT(BPF_MISC | BPF_TAX, 0),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kV6Source + 4),
      BPF_STMT(BPF_ALU | BPF_XOR | BPF_X, 0),
      BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, kGoldenRatio),
      BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 32 - kSourceQueueBits),
      BPF_STMT(BPF_RET | BPF_A, 0),
  }};
  const sock_fprog filter{program.size(), program.data()};
  core::check_errno(::setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &filter, sizeof filter),
                    "SO_ATTACH_REUSEPORT_CBPF");
}

}  // namespace

std::vector<core::Fd> listen_tcp_by_source(const SocketAddress& address, int backlog) {
  std::vector<core::Fd> sockets;
  // The first one listens alone, as it would not find out otherwise that the port is taken.
  sockets.push_back(listen_tcp(address, backlog));
  const auto share = [](const core::Fd& socket) {
    set_option(socket.get(), SOL_SOCKET, SO_REUSEPORT, 1, "SO_REUSEPORT");
  };
  share(sockets.front());
  const SocketAddress at = local_address(sockets.front().get());
  while (sockets.size() < 1U << kSourceQueueBits) {
    const core::Fd& socket = sockets.emplace_back(open_tcp(at.family()));
    share(socket);
    bind_to(socket, at);
    start_listening(socket.get(), backlog);
  }
  try {
    divide_by_source(sockets.front().get());
  } catch (const core::Error& error) {
    core::log_warning("at {} a single source can fill the accept queues of all: {}", at.to_string(),
                      error.what());
  }
  return sockets;
}

}  // namespace offload::net
