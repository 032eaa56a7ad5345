#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "apps/server/io_thread.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "tests/fuzz/state/descriptors.hpp"
#include "tests/fuzz/state/script.hpp"
#include "tests/fuzz/state/slot_worker.hpp"
#include "tests/fuzz/state/stream_client.hpp"
#include "tests/fuzz/state/virtual_time.hpp"

/// Up to four clients' whole streams against an I/O thread with all that it has, and workers that
/// come, lie, hang and go. One thread, no sleep: the script decides on each turn and on the time.
///
/// The input: one byte of settings (Bench::Bench), then steps. A step is a byte, its low four bits
/// the kind, the next two the client, 0x40: no turn of the thread follows. Operands come behind it.
///
///   0  connect                     8  reset: close, whatever was not read
///   1  send a frame: form, u16     9  worker `client` answers: slots (255: all)
///      length, bytes kept back    10  it lies: kind, operands
///   2  send requests: count,      11  workers: what; add, lose, select, a broken line, expire
///      length                     12  time: which
///   3  send bytes: count, bytes   13  drain
///   4  send what was kept back    14  turns: count
///   5  read: u16 bytes            15  other time limits
///   6  read all
///   7  end sending
///
/// What must hold is StreamClient's, and at the end: nothing is left, of memory, slots in flight,
/// clients or descriptors.
namespace offload::fuzz {
namespace {

using core::Duration;

constexpr std::size_t kClients = 4;
constexpr std::size_t kMostWorkers = 6;
constexpr std::uint64_t kLittleMemory = 160 * 1024;
constexpr int kMostTurns = 300;

/// A line to a worker that cannot be reached any more.
class BrokenLine final : public comch::DataEndpoint {
 public:
  std::unique_ptr<comch::DataConnection> start(progress::Engine&, const kernels::ChannelView&,
                                               comch::DataHandler&, std::uint32_t) override {
    throw core::Error(core::ErrorCode::connection_reset, "the line is cut");
  }
};

class Bench {
 public:
  explicit Bench(Script script) : script_(script) {
    const std::uint8_t settings = script_.byte();
    depth_ = (settings & 1U) != 0 ? 32 : 4;
    wakeup_ = (settings & 2U) != 0 ? channel::Wakeup::doorbell : channel::Wakeup::polling;
    allowed_.out_of_memory = (settings & 4U) != 0;
    allowed_.frame_timeout = core::seconds(30);
    allowed_.idle_timeout = (settings & 8U) != 0 ? core::seconds(20) : Duration{};
    allowed_.output_timeout = core::seconds(60);
    allowed_.request_timeout = (settings & 16U) != 0 ? core::seconds(10) : Duration{};
    memory_ = std::make_shared<server::ClientMemory>(budget(), 1);
    add_worker();
    thread_.emplace(config(), first_);
    thread_->open();
    if ((settings & 32U) != 0) select(1);
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
      case 9: answer(index); break;
      case 10: lie(index); break;
      case 11: change_workers(index); break;
      case 12: pass_time(); break;
      case 13: drain(); break;
      case 14: turns(script_.byte() % 20U); break;
      default: change_limits(); break;
    }
    if ((head & 0x40U) == 0) turn();
  }

  void turn() {
    if (has_liar()) distrust();
    thread_->turn({});
    // As the control thread does.
    for (const comch::WorkerId worker : std::exchange(failed_, {})) lose(worker);
  }
  void turns(unsigned count) {
    for (unsigned i = 0; i < count; ++i) turn();
  }

  void connect(std::optional<StreamClient>& client) {
    if (allowed_.draining) return;
    if (client && client->connected()) return;
    std::array<int, 2> fds{};
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()) == 0,
            "a connection");
    // So little that clients who do not read leave a backlog.
    const int room = 4096;
    ::setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    client.emplace(core::Fd(fds[0]), allowed_.passed);
    thread_->take(core::Fd(fds[1]));
  }

  void send_frame(std::optional<StreamClient>& client) {
    constexpr std::array<std::uint32_t, 16> kIds{4,  5,  6,  0,  1,  2,  3,           7,
                                                 15, 16, 19, 23, 26, 27, 0x8000'0004, 0xffff'ffff};
    const std::uint8_t form = script_.byte();
    const std::uint32_t length = script_.two_bytes() % 1100;
    const std::size_t kept = script_.byte();
    if (!client) return;
    Bytes frame(protocol::kFrameHeaderSize + length);
    for (std::size_t i = protocol::kFrameHeaderSize; i < frame.size(); ++i) {
      frame[i] = static_cast<std::byte>(next_byte_++ * 151U >> 3U);
    }
    std::uint32_t wire_size = protocol::kFrameHeaderSize + length;
    std::uint32_t said = length;
    switch (form >> 4U) {
      case 1: ++said; break;
      case 2: --wire_size; break;
      case 3: wire_size = form & 15U; break;
      case 4: wire_size += 0x8000'0000U; break;
      case 5: said = 0xffff'fff4U; break;
      case 6:
        wire_size = 1013;
        said = 1001;
        break;
      default: break;
    }
    protocol::store_big_endian(frame.data(), wire_size);
    protocol::store_big_endian(frame.data() + 4, (form >> 4U) == 0 ? kIds.at(form & 15U) : 4U);
    protocol::store_big_endian(frame.data() + 8, said);
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
    const Duration by = kTimes.at(script_.byte() % kTimes.size());
    time_.advance_in_sleep(by);
    allowed_.passed += by;
  }

  void drain() {
    allowed_.draining = true;
    thread_->drain();
  }

  void change_limits() {
    const Duration limit = core::seconds(1 + script_.byte() % 16U);
    // Some may be refused under the other one yet, or have been.
    Duration& least = allowed_.request_timeout;
    least = least == Duration{} ? limit : std::min(least, limit);
    thread_->set_timeouts(core::seconds(60), limit);
  }

  // ---- Workers

  void add_worker(std::size_t most = kMostWorkers, bool broken = false) {
    if (workers_.size() == most) return;
    const auto id = static_cast<comch::WorkerId>(workers_.size() + 1);
    auto channel = std::shared_ptr<comch::WorkerChannel>(
        new comch::WorkerChannel{id, wakeup_, {0, depth_, StreamClient::kLongest, -1}});
    if (broken) channel->endpoint = std::make_unique<BrokenLine>();
    workers_.push_back({SlotWorker(channel), broken});
    if (thread_) {
      thread_->add_worker(std::move(channel));
    } else {
      first_ = std::move(channel);
    }
  }
  void lose(comch::WorkerId id) {
    if (id == 0 || id > workers_.size() || workers_[id - 1].lost) return;
    if (has_liar()) distrust();
    workers_[id - 1].lost = true;
    // With the fourth that is lost its requests are refused: RequestPath::refuse_suspects().
    allowed_.worker_failed = ++losses_ >= 4;
    thread_->remove_worker(id);
    if (selected_ == id) select(0);
  }
  void select(comch::WorkerId id) {
    if (id > workers_.size() || (id != 0 && workers_[id - 1].lost)) return;
    selected_ = id;
    thread_->select_worker(id);
  }

  void answer(std::size_t index) {
    const unsigned count = script_.byte();
    if (index >= workers_.size()) return;
    for (unsigned i = 0; (i < count || count == 255) && workers_[index].slots.serve(); ++i)
      continue;
  }

  void lie(std::size_t index) {
    const std::uint8_t kind = script_.byte();
    const std::uint32_t length = script_.two_bytes();
    const std::uint32_t count = script_.byte();
    const auto bytes = script_.bytes(kind >> 3U);
    if (index >= workers_.size()) return;
    Worker& worker = workers_[index];
    worker.lies = true;  // of one that is lost nobody hears
    switch (kind % 8U) {
      case 0: worker.slots.refuse(); break;
      case 1: worker.slots.skip(); break;
      case 2:
      case 3: worker.slots.lie(length, count, bytes); break;
      default: (void)worker.slots.spoil(length % 2048U, bytes); break;
    }
  }
  /// While a liar is there, of whom answers may be there before their requests.
  void distrust() {
    for (auto& client : clients_) {
      if (client) client->distrust();
    }
  }
  [[nodiscard]] bool has_liar() const {
    return std::ranges::any_of(workers_, [](const Worker& w) { return w.lies && !w.lost; });
  }

  void change_workers(std::size_t index) {
    switch (script_.byte() % 8U) {
      case 0: return add_worker();
      case 1: return lose(index + 1);
      case 2: return add_worker(kMostWorkers, /*broken=*/true);
      case 3: allowed_.no_worker = true; return thread_->set_expired(true);
      case 4: return thread_->set_expired(false);
      case 5: return select(0);
      default: return select(index + 1 + (script_.byte() & 4U));
    }
  }

  // ---- The end

  /// Until nothing moves any more.
  void settle() {
    int quiet = 0;
    for (int i = 0; i < kMostTurns && quiet < 3; ++i) {
      bool moved = false;
      for (Worker& worker : workers_) {
        if (!worker.lost && !worker.lies) moved = worker.slots.serve_all() != 0 || moved;
      }
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
    for (Worker& worker : workers_) {
      if (worker.lies || worker.broken || worker.slots.id() != selected_) lose(worker.slots.id());
    }
    // One that can be relied on, unless that one is there; and it is not refused any more.
    if (selected_ == 0) {
      add_worker(kMostWorkers + 1);
      select(workers_.back().slots.id());
    }
    thread_->set_expired(false);
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
    thread_.reset();
    const std::uint64_t share = budget() / 2;
    require(memory_->borrow(budget() - share), "no memory is left with anybody");
  }

  struct Worker {
    SlotWorker slots;
    bool broken = false;  ///< cannot be reached
    bool lost = false;
    bool lies = false;  ///< has ever
  };

  NoDescriptorStays no_descriptor_stays_;
  VirtualTime time_;
  Script script_;
  std::uint32_t depth_ = 0;
  channel::Wakeup wakeup_ = channel::Wakeup::none;
  Allowed allowed_;
  std::shared_ptr<server::ClientMemory> memory_;
  std::shared_ptr<server::ThreadMetrics> metrics_;
  std::vector<Worker> workers_;
  std::shared_ptr<comch::WorkerChannel> first_;
  comch::WorkerId selected_ = 0;
  int losses_ = 0;
  std::vector<comch::WorkerId> failed_;
  std::array<std::optional<StreamClient>, kClients> clients_;
  unsigned next_byte_ = 0;
  std::optional<server::IoThread> thread_;
};

}  // namespace
}  // namespace offload::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  offload::core::set_log_level("off");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  offload::fuzz::Bench({data, size}).run();
  return 0;
}
