#include <poll.h>
#include <sys/eventfd.h>

#include <CLI/CLI.hpp>
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

void serve(const Options& options, core::ShutdownSignals& signals) {
  const core::Fd stop(core::check_errno(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd"));
  net::SocketAddress address = net::resolve(options.listen_address, options.port, true).front();
  std::deque<EchoLoop> loops;
  for (unsigned i = 0; i < options.threads; ++i) {
    loops.emplace_back(address, options.max_message_length, stop.get());
    address = loops.front().address();
  }
  std::deque<std::thread> threads;
  for (EchoLoop& loop : loops) threads.emplace_back(&EchoLoop::run, &loop);
  spdlog::info("listening on {}", address.to_string());

  pollfd signalled{signals.fd(), POLLIN, 0};
  while (signals.take() == 0) ::poll(&signalled, 1, -1);
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
    spdlog::error("{}", error.what());
    return 1;
  }
}
