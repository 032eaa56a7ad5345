#include "tests/simulation/failures.hpp"

#include <execinfo.h>
#include <fmt/core.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <exception>
#include <list>
#include <string_view>

#include "apps/server/server.hpp"
#include "apps/worker/program.hpp"
#include "core/log.hpp"
#include "core/process/out_of_memory.hpp"
#include "tests/simulation/client.hpp"
#include "tests/simulation/fleet.hpp"
#include "tests/simulation/kernel/allocations.hpp"
#include "tests/simulation/kernel/files.hpp"

namespace offload::simulation {
namespace {

constexpr std::uint16_t kPort = 12345;
constexpr Time kLongest = 600 * kSecond;
/// The maximum number of polls of its descriptors that a thread may make in 5 quiet seconds.
constexpr std::uint64_t kQuietTurns = 500;
/// The maximum number of programs of one kind that are started, the first and its successors.
constexpr std::size_t kMostRuns = 4;

/// Checks that messages for users never contain the name of a C++ exception class.
void require_words(Kernel& world, std::string_view text) {
  if (text.find("bad_alloc") == std::string_view::npos) return;
  world.fail(fmt::format("it says {}", text));
}

/// Formats each line as the programs do, and shows it where the run is traced.
class Lines final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    if (kernel == nullptr) return;
    if (kernel->traces) std::fwrite(line.data(), 1, line.size(), stdout);
    require_words(*kernel, {line.data(), line.size()});
  }
  void flush_() override {}
};

/// A program's run from its start to its end.
struct Run {
  bool is_worker;
  Process* process = nullptr;
  int status = 0;
  std::size_t fds = 0;  ///< that it left open
  bool ended = false;
  bool killed = false;
};

class Director {
 public:
  Director(Kernel& world, const Failure& failure) : kernel_(world), failure_(failure) {
    world.clients_port = kPort;
    world.split_one_in = 0;
    server_.comch = worker_.comch =
        failure.over_tcp ? "tcp:127.0.0.1:5000" : "unix:/sim/comch.sock";
    server_.comch_security.insecure = worker_.comch_security.insecure = failure.over_tcp;
    server_.listen_port = kPort;
    server_.listens = {{kPort, "reverse"}};
    server_.threads = 1;
    server_.max_concurrent_messages = 16;
    server_.max_message_length = 2000;
    server_.worker_timeout = core::seconds(2);
    worker_.backend = "cpu";
  }

  void run() {
    // The sink of log lines is static; the first program that uses it must not destroy it.
    core::flush_log();
    start(false);
    start(true);
    if (!failure_.over_tcp) start(true);
    if (!await([&] { return serves(); }, 60)) return kernel_.fail("the server does not serve");
    serves_ = true;
    serve_clients(/*strict=*/false);
    pause(2500 * kMillisecond);  // keep-alives
    if (failure_.of_worker) {    // it looks for another server
      kill_one(/*is_worker=*/false);
      pause(2500 * kMillisecond);
    }
    counts_ = false;
    pause(8 * kSecond);  // by now the other side has detected a program that was lost
    serve_clients(/*strict=*/true);
    look_at_quiet();
    counts_ = true;
    end();
    kernel_.over = true;
  }

  /// Returns the error with which the current fiber's call or allocation fails; 0 if it succeeds.
  int refuse(const char* call, std::span<const int> errors) {
    if (!counts_ || target_ == nullptr || kernel_.current->process != target_) return 0;
    const std::uint64_t first = result_.points;
    result_.points += errors.size();
    if (result_.fired || failure_.number < first || failure_.number >= result_.points) return 0;
    result_.fired = true;
    while_serving_ = serves_ && !ending_;
    // The control thread keeps the assignment of all channels: without memory for it, it gives up.
    may_end_server_ = failure_.allocation && kernel_.current->name == "main";
    result_.error = errors[failure_.number - first];
    std::strncpy(result_.call.data(), call, result_.call.size() - 1);
    show_place();
    return result_.error;
  }

  FailureResult result_{};

 private:
  void show_place() {
    if (!kernel_.traces) return;
    std::printf("%s of %s, %s, fails with %d:\n", result_.call.data(),
                kernel_.current->process->name.c_str(), kernel_.current->name.c_str(),
                result_.error);
    std::fflush(stdout);
    std::array<void*, 48> frames{};
    ::backtrace_symbols_fd(frames.data(), ::backtrace(frames.data(), frames.size()), 1);
  }

  // ---- Programs

  void start(bool is_worker) {
    Run& run = runs_.emplace_back(Run{is_worker});
    run.process =
        &kernel_.start(is_worker ? "worker" : "server", [this, &run] { be_program(run); });
    if (is_worker == failure_.of_worker && target_ == nullptr) target_ = run.process;
  }
  /// Does the same as main(), and the work after it.
  void be_program(Run& run) {
    try {
      core::Signals signals(core::Hangup::rereads);
      if (run.is_worker) {
        run.status = static_cast<int>(worker::Program(worker_, signals).run());
      } else {
        server::Server(server_, signals).run();
      }
    } catch (const std::exception& error) {
      core::print_error(run.is_worker ? "offload-worker" : "offload-server", core::what_of(error));
      run.status = 1;
    }
    core::flush_log();
    note_end(run);
    kernel_.kill(*run.process);
    kernel_.end_fiber();
  }
  void note_end(Run& run) {
    if (std::exchange(run.ended, true)) return;
    run.fds = run.process->fds.size();
  }

  /// Notes the programs that have ended, and starts others for them, as a supervisor does.
  void look_after_programs() {
    for (Run& run : runs_) {
      if (!run.ended && !run.process->alive) {
        run.status = run.process->status;
        run.ended = true;
      }
    }
    for (const bool is_worker : {false, true}) {
      std::size_t there = 0;
      std::size_t all = 0;
      for (const Run& run : runs_) {
        if (run.is_worker != is_worker) continue;
        ++all;
        there += run.ended ? 0U : 1U;
      }
      const std::size_t wanted = is_worker && !failure_.over_tcp ? 2 : 1;
      if (ending_ || there >= wanted) continue;
      note_unasked_end(is_worker);
      if (all >= kMostRuns) return kernel_.fail("programs end again and again");
      start(is_worker);
    }
  }
  /// Checks that a program that ends without a signal was the target, with a status and a message.
  void note_unasked_end(bool is_worker) {
    for (const Run& run : runs_) {
      if (!run.ended || run.killed || run.is_worker != is_worker) continue;
      if (run.process != target_ || !result_.fired) {
        return kernel_.fail(run.process->name + " ends, and nothing failed in it");
      }
      if (run.status == 0) kernel_.fail("a program ends by itself with status 0");
      if (while_serving_ && !is_worker && !may_end_server_) {
        kernel_.fail("the server ends of it while it serves");
      }
      result_.effect = Effect::program_ended;
    }
  }

  bool await(const std::function<bool()>& holds, Time seconds) {
    const Time deadline = kernel_.now + seconds * kSecond;
    while (!holds() && kernel_.now < deadline) {
      kernel_.sleep(20 * kMillisecond);
      look_after_programs();
    }
    return holds();
  }
  void pause(Time time) {
    const Time end = kernel_.now + time;
    (void)await([&] { return kernel_.now >= end; }, time / kSecond + 1);
  }
  [[nodiscard]] bool serves() const {
    return std::ranges::any_of(runs_, [](const Run& run) {
      return !run.is_worker && !run.ended && accepts_clients(*run.process);
    });
  }

  /// Kills one program; the other side loses it, and attaches to another.
  void kill_one(bool is_worker) {
    for (Run& run : runs_) {
      if (run.is_worker != is_worker || run.ended) continue;
      kernel_.kill(*run.process);
      run.ended = run.killed = true;
      return;
    }
  }

  // ---- Clients

  /// Serves two clients. Strict: each is answered to its end. Otherwise one may be affected, or
  /// both if a program ends because of the failure.
  void serve_clients(bool strict) {
    std::array<Load, 2> loads;
    for (Load& load : loads) {
      load.longest = server_.max_message_length;
      load.may_be_refused = load.may_be_turned_away = load.may_be_reset = !strict;
      load.running = 1;
      kernel_.start("client", [&load] { run_client(load, kPort, false); });
      kernel_.sleep(kMillisecond);
    }
    if (!strict && !failure_.of_worker) kill_one(/*is_worker=*/true);
    if (!await([&] { return loads[0].running + loads[1].running == 0; }, 200)) {
      return kernel_.fail("clients do not end");
    }
    std::size_t hurt = 0;
    for (const Load& load : loads) hurt += load.refused + load.lost == 0 ? 0U : 1U;
    if (hurt == 0) return;
    if (!result_.fired) return kernel_.fail("a client is hurt, and nothing failed");
    if (result_.effect == Effect::program_ended) return;
    result_.effect = Effect::client_hurt;
    if (hurt > 1) kernel_.fail("one failure hurts two clients");
    if (failure_.of_worker) kernel_.fail("a failure of a worker hurts a client");
  }

  // ---- The end

  void look_at_quiet() {
    pause(3 * kSecond);
    std::vector<std::uint64_t> before;
    for (const auto& fiber : kernel_.fibers) before.push_back(fiber->sleeps);
    pause(5 * kSecond);
    for (std::size_t i = 0; i < before.size(); ++i) {
      const Fiber& fiber = *kernel_.fibers[i];
      if (fiber.sleeps - before[i] <= kQuietTurns) continue;
      kernel_.fail(fmt::format("{} {} turns {} times in 5 quiet seconds", fiber.process->name,
                               fiber.name, fiber.sleeps - before[i]));
    }
  }

  void end() {
    ending_ = true;
    for (const bool workers : {false, true}) {
      for (Run& run : runs_) {
        if (run.is_worker == workers && !run.ended) kernel_.signal(*run.process, SIGTERM);
      }
      const auto ended = [&] {
        return std::ranges::all_of(
            runs_, [&](const Run& run) { return run.is_worker != workers || run.ended; });
      };
      if (!await(ended, 20))
        return kernel_.fail(workers ? "a worker does not end" : "the server does not end");
    }
    for (const Run& run : runs_) {
      if (run.fds != 0) {
        kernel_.fail(fmt::format("{} leaves {} descriptors", run.process->name, run.fds));
      }
      if (run.process == target_) {
        const std::uint64_t lost = lost_blocks_of(run.process->pid, kernel_.traces);
        if (lost != 0)
          kernel_.fail(fmt::format("{} leaves {} blocks of memory", run.process->name, lost));
        if (run.status != 0) result_.effect = Effect::program_ended;
      } else if (run.status != 0) {
        kernel_.fail(fmt::format("{} ends with status {}", run.process->name, run.status));
      }
    }
  }

  Kernel& kernel_;
  Failure failure_;
  server::Options server_;
  worker::Options worker_;
  std::list<Run> runs_;
  Process* target_ = nullptr;
  bool counts_ = true;
  bool serves_ = false;
  bool ending_ = false;
  bool while_serving_ = false;  ///< when it failed
  bool may_end_server_ = false;
};

Director* director = nullptr;

bool next_allocation_fails() {
  constexpr std::array<int, 1> kError{ENOMEM};
  return director->refuse("operator new", kError) != 0;
}

/// The text of standard error, which this class replaces by a file.
class StandardError {
 public:
  StandardError() : fd_(::memfd_create("stderr", 0)) { ::dup2(fd_, 2); }
  std::string text() const {
    std::string text(4096, '\0');
    text.resize(
        static_cast<std::size_t>(std::max<ssize_t>(::pread(fd_, text.data(), text.size(), 0), 0)));
    return text;
  }

 private:
  int fd_;
};

}  // namespace

FailureResult run_with_failure(const Failure& failure, bool traces) {
  core::set_log_level("info");
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("simulation", std::make_shared<Lines>()));
  spdlog::default_logger()->set_level(spdlog::level::trace);
  const StandardError standard_error;
  if (traces) keep_places();
  static Kernel world(/*seed=*/3);
  kernel = &world;
  world.traces = traces;
  static Director the_director(world, failure);
  director = &the_director;
  if (failure.allocation) {
    allocation_fails = next_allocation_fails;
  } else {
    world.refuses = [](const char* call, std::initializer_list<int> errors) {
      return director->refuse(call, errors);
    };
  }
  world.start("director", [] { director->run(); });
  world.run(world.now + kLongest);
  if (!world.over && world.failures.empty()) world.fail("nothing goes on, or it takes too long");
  FailureResult result = the_director.result_;
  result.hash = world.hash;
  const std::string text = standard_error.text();
  if (traces) std::printf("standard error: %s\n", text.c_str());
  require_words(world, text);
  if (world.failures.empty() && result.effect == Effect::program_ended && text.empty()) {
    world.failures.push_back("a program ends without a word");
  }
  if (!world.failures.empty()) {
    std::strncpy(result.wrong.data(), world.failures.front().c_str(), result.wrong.size() - 1);
  }
  return result;
}

}  // namespace offload::simulation
