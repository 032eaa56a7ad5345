#include <sys/prctl.h>

#include <csignal>
#include <ctime>
#include <string>
#include <thread>

#include "cli/leave.hpp"
#include "cli/options.hpp"
#include "core/error.hpp"
#include "core/exit_status.hpp"
#include "core/log.hpp"
#include "core/signals.hpp"
#include "softcard/program/network.hpp"
#include "softcard/program/objects.hpp"

/// The card of the kernel module in softcard/module: a process that does what an mlx5 card does.
namespace offload::softcard {
namespace {

struct Options {
  bool unordered = false;
  bool late_completions = false;
  bool no_write_combining = false;
  bool no_registers = false;
  bool short_queues = false;
  bool strict = false;
  std::string interface;
  std::uint32_t lost_percent = 0;
  std::uint32_t seed = 1;
};

volatile std::sig_atomic_t reset_wanted = 0;

void want_reset(int) {
  reset_wanted = 1;
}

/// Waits as long as nothing happens: doorbells are memory, which nothing but looking tells about.
class Idling {
 public:
  void turn(bool worked) noexcept {
    if (worked) {
      turns_ = 0;
      return;
    }
    if (++turns_ < kTurns) {
      std::this_thread::yield();
      return;
    }
    constexpr timespec kNap{0, 20'000};
    ::nanosleep(&kNap, nullptr);
  }

 private:
  static constexpr int kTurns = 500;
  int turns_ = 0;
};

void add_options(cli::CommandLine& line, Options& options) {
  cli::add_flag(line, "--unordered", options.unordered,
                "place the RDMA writes of a queue pair in parts, in any order");
  cli::add_flag(line, "--delay-completions", options.late_completions,
                "write completions late, each queue's in its order");
  cli::add_flag(line, "--no-write-combining", options.no_write_combining,
                "refuse registers with write combining, as a machine without it does");
  cli::add_flag(line, "--no-registers", options.no_registers, "refuse to map registers");
  cli::add_flag(line, "--short-queues", options.short_queues,
                "refuse send queues of more than 4096 blocks of 64 bytes");
  cli::add_flag(line, "--strict", options.strict,
                "accept only entries as kernels/rdma writes them, and no early doorbell");
  cli::add_text(line, "--interface", options.interface,
                "send and receive raw packets through this network interface");
  cli::add_integer(line, "--lose", options.lost_percent, 0U, 90U,
                   "lose this percentage of the datagrams to cards of other machines");
  cli::add_integer(line, "--seed", options.seed, 1U, ~0U, "select what happens at random");
}

int run(const Options& options) {
  core::Signals signals;
  struct sigaction action {};
  action.sa_handler = want_reset;
  core::check_errno(::sigaction(SIGUSR1, &action, nullptr), "handle SIGUSR1");
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  Link link((options.no_write_combining ? std::uint32_t{SOFTCARD_NO_WRITE_COMBINING} : 0U) |
            (options.no_registers ? std::uint32_t{SOFTCARD_NO_REGISTERS} : 0U) |
            (options.short_queues ? std::uint32_t{SOFTCARD_SHORT_QUEUES} : 0U));
  model::Card card(options.strict ? rdma::Reading::strict : rdma::Reading::as_card);
  if (options.unordered) card.set_unordered(options.seed);
  if (options.late_completions) card.set_late_completions(options.seed);
  Network network(options.lost_percent, options.seed, options.interface);
  card.set_wire(&network);
  Objects objects(link, card, network);
  core::log_info("ready");
  Idling idling;
  std::string fault;
  constexpr int kTurnsPerSignal = 256;
  for (int turn = 0;; ++turn) {
    const bool worked = objects.progress();
    idling.turn(network.receive(card, link) || worked);
    // Owners look between two parts that are placed.
    if (worked && options.unordered) std::this_thread::yield();
    if (card.fault() != fault) {
      fault = card.fault();
      core::log_error("{}", fault);
    }
    if (reset_wanted != 0) {
      reset_wanted = 0;
      objects.reset();
    }
    if (turn % kTurnsPerSignal == 0 && signals.take() != 0) return 0;
  }
}

}  // namespace
}  // namespace offload::softcard

int main(int argc, char** argv) {
  using namespace offload;
  return core::exit_status_of("softcard", [&] {
    softcard::Options options;
    cli::CommandLine line("softcard",
                          "Runs the card of the kernel module softcard: it carries out what owners "
                          "post by libmlx5.",
                          "SIGUSR1 makes the device fail (IBV_EVENT_DEVICE_FATAL); it works "
                          "again after all its objects are destroyed.");
    softcard::add_options(line, options);
    if (const auto leave = line.parse(argc, argv)) return cli::leave(*leave);
    core::start_log("softcard", "info");
    return softcard::run(options);
  });
}
