#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "apps/server/io_thread.hpp"
#include "core/log.hpp"
#include "tests/fuzz/state/descriptors.hpp"
#include "tests/fuzz/state/script.hpp"
#include "tests/fuzz/state/scripted_workers.hpp"
#include "tests/fuzz/state/stream_client.hpp"
#include "tests/fuzz/state/virtual_time.hpp"

/// Up to four clients' whole streams against a complete I/O thread, and workers that attach, lie,
/// hang and detach. One thread, no sleep: the script decides on each turn and on the time.
///
/// The input: one byte of settings (ClientStreamBench::ClientStreamBench), then steps. A step is a
/// byte, its low four bits the kind, the next two the client, 0x40: no turn of the thread follows.
/// Operands come behind it.
///
///   0  connect                     8  reset: close, whatever was not read
///   1  send a frame: form, u16     9  worker `client` answers: slots (255: all)
///      length, bytes kept back    10  it lies: kind, operands
///   2  send requests: count,      11  workers: action; add, lose, select, a broken line, expire
///      length                     12  time: action
///   3  send bytes: count, bytes   13  drain
///   4  send the bytes kept back   14  turns: count
///   5  read: u16 bytes            15  other time limits
///   6  read all
///   7  end sending
///
/// StreamClient checks the answers. At the end nothing may be left: no memory, slots in flight,
/// clients or descriptors.
namespace offload::fuzz {
namespace {

using core::Duration;

constexpr std::size_t kClients = 4;
constexpr std::uint64_t kLittleMemory = 160 * 1024;
constexpr int kMostTurns = 3000;

class ClientStreamBench {
 public:
  explicit ClientStreamBench(Script script) : script_(script) {
    const std::uint8_t settings = script_.byte();
    const std::uint32_t depth = (settings & 1U) != 0 ? 32 : 4;
    const auto wakeup = (settings & 2U) != 0 ? channel::Wakeup::doorbell : channel::Wakeup::polling;
    allowed_.out_of_memory = (settings & 4U) != 0;
    allowed_.frame_timeout = core::seconds(30);
    allowed_.idle_timeout = (settings & 8U) != 0 ? core::seconds(20) : Duration{};
    allowed_.output_timeout = core::seconds(60);
    allowed_.request_timeout = (settings & 16U) != 0 ? core::seconds(10) : Duration{};
    memory_ = std::make_shared<server::ClientMemory>(budget(), 1);
    const auto first = ScriptedWorkers::make_channel(1, wakeup, depth);
    thread_.emplace(config(), first);
    thread_->open();
    workers_.emplace(*thread_, first, [this] { distrust(); });
    if ((settings & 32U) != 0) workers_->select(1);
  }

  void run() {
    while (!script_.ends()) step();
    finish();
  }

 private:
  [[nodiscard]] std::uint64_t budget() const {
    return allowed_.out_of_memory ? kLittleMemory : server::IoThread::kUnlimited;
  }

  server::IoThread::Config config() {
    static const auto metrics = std::make_shared<server::ThreadMetrics>();
    metrics_ = metrics;
    server::IoThread::Config config{
        0,
        -1,
        {StreamClient::kLongest, kernels::response_length_of("reverse")},
        core::seconds(60),
        allowed_.request_timeout,
        {},
        [this](const server::WorkerFailure& failure) { failed_.push_back(failure.worker); },
        [] {},
        {},
        memory_,
        {},
        metrics};
    config.client_limits.frame_timeout = allowed_.frame_timeout;
    config.client_limits.idle_timeout = allowed_.idle_timeout;
    config.client_limits.output_timeout = allowed_.output_timeout;
    return config;
  }

  // ---- Steps

  void step() {
    const std::uint8_t head = script_.byte();
    auto& client = clients_.at((head >> 4U) % kClients);
    const std::size_t index = (head >> 4U) % kClients;
    switch (head & 15U) {
      case 0: connect(client); break;
      case 1: send_frame(client); break;
      case 2: send_requests(client); break;
      case 3: send_bytes(client); break;
      case 4:
        if (client) client->send(allowed_.passed);
        break;
      case 5: read(client, script_.two_bytes()); break;
      case 6: read(client, SIZE_MAX); break;
      case 7:
        if (client) client->end_sending();
        break;
      case 8:
        if (client) client->reset();
        break;
      case 9: workers_->answer(index, script_.byte()); break;
      case 10: workers_->lie(index, script_); break;
      case 11: change_workers(index); break;
      case 12: pass_time(); break;
      case 13: drain(); break;
      case 14: turns(script_.byte() % 20U); break;
      default: change_limits(); break;
    }
    if ((head & 0x40U) == 0) turn();
  }

  void turn() {
    distrust();
    thread_->turn({});
    // The control thread does the same.
    for (const comch::WorkerId worker : std::exchange(failed_, {})) workers_->lose(worker);
    note_losses();
  }
  /// After the second loss a request that was alone with both may be refused:
  /// RequestPath::note_loss().
  void note_losses() { allowed_.worker_failed = workers_->losses() >= 2; }
  void turns(unsigned count) {
    for (unsigned i = 0; i < count; ++i) turn();
  }

  void connect(std::optional<StreamClient>& client) {
    if (allowed_.draining) return;
    if (client && client->connected()) return;
    std::array<int, 2> fds{};
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()) == 0,
            "a connection");
    // The room is so small that clients that do not read leave a backlog.
    const int room = 4096;
    ::setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    client.emplace(core::Fd(fds[0]), allowed_.passed);
    thread_->take(core::Fd(fds[1]));
  }

  void send_frame(std::optional<StreamClient>& client) {
    const Bytes frame = make_client_frame(script_, next_byte_);
    const std::size_t kept = script_.byte();
    if (!client) return;
    client->append(frame);
    client->send(allowed_.passed, kept);
  }

  void send_requests(std::optional<StreamClient>& client) {
    const unsigned count = script_.byte();
    const std::uint32_t length = script_.byte() % 80U;
    if (!client) return;
    Bytes payload(length);
    for (unsigned i = 0; i < count; ++i) {
      for (std::byte& byte : payload) byte = static_cast<std::byte>(next_byte_++ * 151U >> 3U);
      client->append(protocol::make_frame(protocol::MessageId::client_request, payload));
    }
    client->send(allowed_.passed);
  }

  void send_bytes(std::optional<StreamClient>& client) {
    const auto bytes = script_.bytes(script_.byte() % 33U);
    if (!client) return;
    client->append(bytes);
    client->send(allowed_.passed);
  }

  void read(std::optional<StreamClient>& client, std::size_t most) {
    if (client) (void)client->read(most, allowed_);
  }

  void pass_time() {
    using namespace std::chrono_literals;
    constexpr std::array<Duration, 8> kTimes{1ms, 10ms, 200ms, 1s, 2s, 6s, 15s, 31s};
    pass(kTimes.at(script_.byte() % kTimes.size()));
  }
  void pass(Duration time) {
    time_.advance_in_sleep(time);
    allowed_.passed += time;
  }

  void drain() {
    allowed_.draining = true;
    thread_->drain();
  }

  void change_limits() {
    const Duration limit = core::seconds(1 + script_.byte() % 16U);
    // Some requests may still be refused under the other limit, or have been.
    Duration& least = allowed_.request_timeout;
    least = least == Duration{} ? limit : std::min(least, limit);
    thread_->set_timeouts(core::seconds(60), limit);
  }

  void change_workers(std::size_t index) {
    switch (script_.byte() % 8U) {
      case 0: return workers_->add();
      case 1: return workers_->lose(index + 1);
      case 2: return workers_->add(/*broken=*/true);
      case 3: allowed_.no_worker = true; return thread_->set_expired(true);
      case 4: return thread_->set_expired(false);
      case 5: return workers_->select(0);
      default: return workers_->select(index + 1 + (script_.byte() & 4U));
    }
  }
  /// Distrusts answers while a liar is there, whose answers may be there before their requests.
  void distrust() {
    if (!workers_->have_liar()) return;
    for (auto& client : clients_) {
      if (client) client->distrust();
    }
  }

  // ---- The end

  /// Runs turns until nothing changes any more.
  void settle() {
    int quiet = 0;
    for (int i = 0; i < kMostTurns && quiet < 3; ++i) {
      bool moved = workers_->serve_all();
      for (auto& client : clients_) {
        if (!client) continue;
        client->send(allowed_.passed);
        moved = client->read(SIZE_MAX, allowed_) || moved;
      }
      turn();
      quiet = moved ? 0 : quiet + 1;
    }
    require(quiet == 3, "all comes to an end");
  }

  void finish() {
    workers_->replace_bad();
    thread_->set_expired(false);
    turn();
    // All clients have the address of a culprit.
    if (allowed_.worker_failed) pass(server::WaitingAddresses::kTime);
    settle();
    for (const auto& client : clients_) {
      if (client) client->check_quiet(allowed_);
    }
    for (auto& client : clients_) {
      if (client) client->end_sending();
    }
    settle();
    for (auto& client : clients_) {
      require(!client || !client->connected() || client->ended(), "a client's end is its end");
    }
    clients_ = {};
    if (!allowed_.draining) drain();
    for (int i = 0; i < kMostTurns && !thread_->drained(); ++i) settle();
    require(thread_->drained(), "it drains");
    require(thread_->client_count() == 0, "nobody is left");
    require(metrics_->connections.value() == 0, "no connection is left");
    require(metrics_->in_flight.value() == 0, "no request is left");
    workers_.reset();
    thread_.reset();
    const std::uint64_t share = budget() / 2;
    require(memory_->borrow(budget() - share), "no memory is left with anybody");
  }

  NoDescriptorStays no_descriptor_stays_;
  VirtualTime time_;
  Script script_;
  Allowed allowed_;
  std::shared_ptr<server::ClientMemory> memory_;
  std::shared_ptr<server::ThreadMetrics> metrics_;
  std::vector<comch::WorkerId> failed_;
  std::array<std::optional<StreamClient>, kClients> clients_;
  unsigned next_byte_ = 0;
  std::optional<server::IoThread> thread_;
  std::optional<ScriptedWorkers> workers_;
};

}  // namespace
}  // namespace offload::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  offload::core::set_log_level("off");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  offload::fuzz::ClientStreamBench({data, size}).run();
  return 0;
}
