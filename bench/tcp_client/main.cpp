// The least that a load client can do: what offload-client's own cost is held against.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/program.hpp"
#include "cli/json_file.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "net/socket.hpp"
#include "protocol/frame.hpp"

namespace offload::bench {
namespace {

struct Options {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;
  std::uint32_t size = 64;
  std::uint32_t in_flight = 128;
  core::Duration duration = std::chrono::seconds(1);
  std::string output;
};

void declare(cli::CommandLine& line, Options& options) {
  cli::add_text(line, "-s,--server-ip-address", options.address, "Connect to this IP address");
  cli::add_integer<std::uint16_t>(line, "-p,--server-ip-port", options.port, 1, 65535,
                                  "Connect to this TCP port")
      .required();
  cli::add_size(line, "--size", options.size, 0, 1U << 20,
                "Send requests of this size, and expect responses of this size, in bytes");
  cli::add_integer<std::uint32_t>(line, "--max-concurrent-messages", options.in_flight, 1, 65536,
                                  "Keep this number of requests in flight");
  cli::add_time(line, "--duration", options.duration, std::chrono::milliseconds(1),
                "Run for this time");
}

/// One connection, on which as many frames are sent as came back, unseen.
class Client {
 public:
  explicit Client(const Options& options)
      : frame_size_(protocol::kFrameHeaderSize + options.size),
        socket_(connect(options)),
        received_(std::size_t{256} << 10) {
    const std::vector<std::byte> payload(options.size, std::byte{'x'});
    const auto frame = protocol::make_frame(protocol::MessageId::client_request, payload);
    for (std::uint32_t i = 0; i < options.in_flight; ++i) {
      requests_.insert(requests_.end(), frame.begin(), frame.end());
    }
  }

  /// Sends the first requests.
  void start() { send(requests_.size()); }
  /// Waits for responses and sends as many requests as came whole. Returns how many.
  std::uint64_t exchange() {
    const ssize_t count = ::recv(socket_.get(), received_.data(), received_.size(), 0);
    if (count <= 0) core::throw_errno("recv", count == 0 ? ECONNRESET : errno);
    bytes_ += static_cast<std::size_t>(count);
    const std::size_t frames = bytes_ / frame_size_;
    bytes_ %= frame_size_;
    send(frames * frame_size_);
    return frames;
  }

 private:
  static core::Fd connect(const Options& options) {
    const auto address = net::resolve(options.address, options.port).front();
    core::Fd socket(
        core::check_errno(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
    core::check_errno(::connect(socket.get(), address.get(), address.size), "cannot connect");
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const timeval bound{10, 0};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &bound, sizeof bound);
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof bound);
    return socket;
  }

  void send(std::size_t size) {
    for (std::size_t sent = 0; sent < size;) {
      const ssize_t count =
          ::send(socket_.get(), requests_.data() + sent, size - sent, MSG_NOSIGNAL);
      if (count < 0) core::throw_errno("send");
      sent += static_cast<std::size_t>(count);
    }
  }

  std::size_t frame_size_;
  core::Fd socket_;
  std::vector<std::byte> requests_;
  std::vector<std::byte> received_;
  std::size_t bytes_ = 0;  ///< of a frame that is not whole
};

int measure(const Options& options) {
  cli::JsonFile json(options.output);
  Client client(options);
  const auto begin = core::Clock::now();
  client.start();
  std::uint64_t responses = 0;
  auto now = begin;
  for (; now - begin < options.duration; now = core::Clock::now()) responses += client.exchange();
  const double seconds = core::to_seconds(now - begin);
  const double rate = static_cast<double>(responses) / seconds;
  // Little's law gives the mean, because the send times are not kept.
  const double mean_us = options.in_flight / rate * 1e6;
  fmt::print("{:.0f} responses/s, {:.3f} us each on average\n", rate, mean_us);
  json.write({{"io_rate_miops", rate / 1e6}, {"mean_us", mean_us}});
  return 0;
}

}  // namespace
}  // namespace offload::bench

int main(int argc, char** argv) {
  using namespace offload::bench;
  return run_program<Options>(argc, argv, "bench-tcp-client",
                              "Does the least that a load client can do: sends frames and counts "
                              "responses, without checking them.",
                              declare, measure);
}
