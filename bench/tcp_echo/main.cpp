#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <exception>
#include <string>
#include <thread>

#include "bench/tcp_echo/echo_loop.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/signals.hpp"
#include "net/socket.hpp"

namespace offload::bench {
namespace {

struct Options {
  std::string listen_address = "127.0.0.1";
  std::uint16_t port = 0;
  unsigned threads = 1;
  std::uint32_t max_message_length = 1U << 20;
};

void declare(CLI::App& app, Options& options) {
  app.option_defaults()->always_capture_default();
  app.add_option("--listen-address", options.listen_address, "Address to listen on");
  app.add_option("-p,--server-listen-port", options.port, "TCP port; 0: a free one")
      ->check(CLI::Range(0, 65535));
  app.add_option("--threads", options.threads, "I/O threads")->check(CLI::Range(1, 256));
  app.add_option("--max-message-length", options.max_message_length, "Longest payload, bytes")
      ->check(CLI::Range(0, 1 << 30));
}

/// Gives each client that waits to the loop with the fewest; of several such, in turn.
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

void serve(const Options& options, core::ShutdownSignals& signals) {
  const core::Fd stop(core::check_errno(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd"));
  const auto address = net::resolve(options.listen_address, options.port, true).front();
  const core::Fd listener = net::listen_tcp(address, SOMAXCONN);
  std::deque<EchoLoop> loops;
  for (unsigned i = 0; i < options.threads; ++i) {
    loops.emplace_back(options.max_message_length, stop.get());
  }
  std::deque<std::thread> threads;
  for (EchoLoop& loop : loops) threads.emplace_back(&EchoLoop::run, &loop);
  core::log_info("listening on {}", net::local_address(listener.get()).to_string());

  pollfd ready[] = {{signals.fd(), POLLIN, 0}, {listener.get(), POLLIN, 0}};
  for (std::size_t first_choice = 0; signals.take() == 0;) {
    accept_all(listener.get(), loops, first_choice);
    ::poll(ready, 2, -1);
  }
  ::eventfd_write(stop.get(), 1);  // nobody reads it, so every loop sees it
  for (std::thread& thread : threads) thread.join();
}

int run(int argc, char** argv) {
  CLI::App app("The bare TCP echo server that offload-server is compared with");
  Options options;
  declare(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "bench-tcp-echo: %s\n", error.what());
    return 2;
  }
  core::ShutdownSignals signals;
  core::start_log("bench-tcp-echo", "info");
  serve(options, signals);
  return 0;
}

}  // namespace
}  // namespace offload::bench

int main(int argc, char** argv) {
  try {
    return offload::bench::run(argc, argv);
  } catch (const std::exception& error) {
    offload::core::log_error("{}", error.what());
    return 1;
  }
}
