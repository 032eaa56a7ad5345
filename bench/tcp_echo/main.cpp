#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <deque>
#include <string>
#include <thread>

#include "bench/tcp_echo/echo_loop.hpp"
#include "cli/options.hpp"
#include "core/error.hpp"
#include "core/exit_status.hpp"
#include "core/log.hpp"
#include "core/signals.hpp"
#include "net/socket.hpp"

namespace offload::bench {
namespace {

struct Options {
  std::string listen_address = "127.0.0.1";
  std::uint16_t port = 0;
  std::uint32_t threads = 1;
  std::uint32_t max_message_length = 1U << 20;
  core::Duration work{};
};

void declare(cli::CommandLine& line, Options& options) {
  cli::add_text(line, "--listen-address", options.listen_address, "Listen on this address");
  cli::add_integer<std::uint16_t>(line, "-p,--server-listen-port", options.port, 0, 65535,
                                  "Listen on this TCP port; 0: any free port");
  cli::add_integer<std::uint32_t>(line, "--threads", options.threads, 1, 256, "I/O threads");
  cli::add_integer<std::uint32_t>(line, "--max-message-length", options.max_message_length, 0,
                                  1U << 30, "Accept payloads of up to this number of bytes");
  cli::add_time(line, "--work", options.work, core::Duration{},
                "Stay busy for this time with each message, to emulate a server of a known speed");
}

/// Accepts all pending connections. Each goes to the loop with the fewest; ties go round robin.
void accept_all(int listener, std::deque<EchoLoop>& loops, std::size_t& first_choice) {
  for (;;) {
    core::Fd socket(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.valid()) {
      if (errno == ECONNABORTED || errno == EINTR) continue;
      if (errno == EAGAIN) return;
      core::throw_errno("cannot accept a connection");
    }
    std::size_t best = first_choice % loops.size();
    for (std::size_t i = 1; i < loops.size(); ++i) {
      const std::size_t candidate = (first_choice + i) % loops.size();
      if (loops[candidate].connection_count() < loops[best].connection_count()) best = candidate;
    }
    first_choice = best + 1;
    loops[best].give(std::move(socket));
  }
}

void serve(const Options& options, core::Signals& signals) {
  const core::Fd stop(core::check_errno(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd"));
  const auto address = net::resolve(options.listen_address, options.port).front();
  const core::Fd listener = net::listen_tcp(address, SOMAXCONN);
  std::deque<EchoLoop> loops;
  for (std::uint32_t i = 0; i < options.threads; ++i) {
    loops.emplace_back(options.max_message_length, options.work, stop.get());
  }
  std::deque<std::thread> threads;
  for (EchoLoop& loop : loops) threads.emplace_back(&EchoLoop::run, &loop);
  core::log_info("listening on {}", net::local_address(listener.get()).to_string());

  pollfd ready[] = {{signals.fd(), POLLIN, 0}, {listener.get(), POLLIN, 0}};
  for (std::size_t first_choice = 0; signals.take() == 0;) {
    accept_all(listener.get(), loops, first_choice);
    ::poll(ready, 2, -1);  // no timeout: a signal ends it
  }
  ::eventfd_write(stop.get(), 1);  // never read, so every loop sees it
  for (std::thread& thread : threads) thread.join();
}

int run(int argc, char** argv) {
  cli::CommandLine line("bench-tcp-echo",
                        "A minimal TCP echo server, to compare offload-server with");
  Options options;
  declare(line, options);
  if (const auto leave = line.parse(argc, argv)) return cli::leave(*leave);
  core::Signals signals;
  core::start_log("bench-tcp-echo", "info");
  serve(options, signals);
  return 0;
}

}  // namespace
}  // namespace offload::bench

int main(int argc, char** argv) {
  return offload::core::exit_status_of("bench-tcp-echo",
                                       [&] { return offload::bench::run(argc, argv); });
}
