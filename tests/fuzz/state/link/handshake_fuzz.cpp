#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "comch/session/handshake.hpp"
#include "comch/session/pending_connections.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "tests/fuzz/state/descriptors.hpp"
#include "tests/fuzz/state/link/fake_network.hpp"
#include "tests/fuzz/state/link/watched_pipe.hpp"
#include "tests/fuzz/state/script.hpp"
#include "tests/fuzz/state/virtual_time.hpp"

/// The proof of the key by messages, both sides of it the product's, with somebody between them who
/// reads, changes, holds back, repeats and makes up whatever the script says, and who connects
/// himself. What he must not get: an end that takes a connection for proven which carried anything
/// but what the other end said on this very connection; a first message from somebody unproven.
///
/// The input: a byte of settings (1: the worker has another key; 2: the server has two), then
/// steps. A step is a byte, its low four bits the kind, 0x10 the direction (set: from the server).
///
///   0  a worker connects             6  insert a frame that was carried before: which
///   1  a turn of the server          7  insert bytes: count, bytes
///   2  carry all, both ways          8  lose bytes: count
///   3  carry: bytes                  9  end one direction
///   4  carry a byte                 10  cut
///   5  change a byte: how far       11  connect as a stranger
///      ahead, by what               12  the stranger sends such a frame: which
///                                   13  the stranger sends bytes: count, bytes
///                                   14  time passes: tenths of a second
///
/// While a worker connects, its waits go through the steps; what is left of it is done behind them.
namespace offload::fuzz {
namespace {

using protocol::MessageId;

constexpr std::size_t kMostConnections = 4;
constexpr std::size_t kMostRecorded = 32;

std::shared_ptr<comch::Keyring> keyring(std::initializer_list<unsigned> seeds) {
  std::vector<comch::Key> keys;
  for (const unsigned seed : seeds) {
    Bytes bytes(comch::kLeastKey);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::byte>((i + 1) * 73 + seed * 41);
    }
    keys.emplace_back(bytes);
  }
  return std::make_shared<comch::Keyring>(std::move(keys));
}

class HandshakeBench {
 public:
  explicit HandshakeBench(Script script) : script_(script) {
    const std::uint8_t settings = script_.byte();
    static const auto one = keyring({1});
    static const auto two = keyring({2, 1});
    static const auto other = keyring({3});
    worker_address_.keys = (settings & 1U) != 0 ? other : one;
    has_key_ = (settings & 1U) == 0;
    comch::Address address = comch::Address::parse("plain:server:1");
    address.keys = (settings & 2U) != 0 ? two : one;
    pending_.emplace(engine_, address,
                     [this](std::unique_ptr<comch::ControlConnection>,
                            const comch::ControlMessage&) { ++first_messages_; });
    FakeNetwork::instance().on_connect = [this](core::Fd end) {
      pipe_.emplace(std::move(end), FakeNetwork::instance().connect_stranger());
    };
    time_.on_wait = [this] { return wait(); };
  }
  ~HandshakeBench() { FakeNetwork::instance().clear(); }
  HandshakeBench(const HandshakeBench&) = delete;
  HandshakeBench& operator=(const HandshakeBench&) = delete;

  void run() {
    while (!script_.ends()) step();
    connect();
    check_stranger();
  }

 private:
  bool wait() {
    if (script_.ends()) {
      if (waits_ == 0) return false;
      --waits_;
      turn();
      carry(0, SIZE_MAX);
      carry(1, SIZE_MAX);
      return true;
    }
    step();
    return true;
  }

  void step() {
    const std::uint8_t head = script_.byte();
    const std::size_t from = (head >> 4U) & 1U;
    switch (head & 15U) {
      case 0: connect(); break;
      case 1: turn(); break;
      case 2:
        carry(0, SIZE_MAX);
        turn();
        carry(1, SIZE_MAX);
        break;
      case 3: carry(from, script_.byte()); break;
      case 4: carry(from, 1); break;
      case 5: {
        const std::size_t at = script_.byte();
        const std::uint8_t by = script_.byte();
        if (pipe_) pipe_->change(from, at, by);
        break;
      }
      case 6: insert(from, recorded(script_.byte())); break;
      case 7: insert(from, script_.bytes(script_.byte() % 65U)); break;
      case 8: {
        const std::size_t count = script_.byte();
        if (pipe_) pipe_->lose(from, count);
        break;
      }
      case 9:
        if (pipe_) pipe_->end(1 - from);
        break;
      case 10:
        if (pipe_) pipe_->cut();
        break;
      case 11:
        check_stranger();
        stranger_ = FakeNetwork::instance().connect_stranger();
        break;
      case 12: say(recorded(script_.byte())); break;
      case 13: say(script_.bytes(script_.byte() % 65U)); break;
      case 14: pass_time(std::chrono::milliseconds(100) * script_.byte()); break;
      default: turn(); break;
    }
  }

  void turn() {
    const int before = first_messages_;
    engine_.run_once({});
    if (first_messages_ == before) return;
    require(pipe_.has_value(), "a first message is nobody's but a worker's");
    pipe_->collect(1);
    require(has_proof(pipe_->sent(1)), "a first message comes from who has proven the key");
  }
  void turns(int count) {
    for (int i = 0; i < count; ++i) turn();
  }
  void pass_time(core::Duration by) {
    time_.advance(by);
    slow_ = true;
    pending_->tick(engine_.run_time());
  }

  // ---- The worker

  void connect() {
    if (connecting_ || connections_ == kMostConnections) return;
    connecting_ = true;
    ++connections_;
    waits_ = 10;
    slow_ = false;
    bool worker_proven = false;
    const int before = first_messages_;
    try {
      const auto connection = comch::connect_as_worker(worker_address_);
      worker_proven = true;
      connection->send(MessageId::keep_alive, protocol::KeepAlive{1}.encode());
      carry(0, SIZE_MAX);
      turns(2);
      require(!pipe_ || pipe_->touched() || slow_ || first_messages_ == before + 1, "it may go on");
    } catch (const core::Error& error) {
      require(error.what()[0] != '\0', "an error says what it is");
    }
    turns(4);  // the server reads what was carried
    if (pipe_) pipe_->collect(1);
    check_middle(worker_proven);
    pipe_.reset();
    turns(2);
    connecting_ = false;
  }

  void check_middle(bool worker_proven) {
    if (!pipe_) return;
    const WatchedPipe& middle = *pipe_;
    const auto to_server = frames_of(middle.delivered(0));
    const auto to_worker = frames_of(middle.delivered(1));
    const auto by_worker = frames_of(middle.sent(0));
    const auto by_server = frames_of(middle.sent(1));
    const bool server_proven = has_proof(middle.sent(1));
    if (worker_proven || server_proven) {
      require(has_key_, "who has another key proves nothing");
      require(!to_worker.empty() && !by_server.empty() && to_worker[0] == by_server[0],
              "the challenge is this server's, on this connection");
      require(!to_server.empty() && !by_worker.empty() && to_server[0] == by_worker[0],
              "the proof is this worker's, on this connection");
    }
    require(!worker_proven || server_proven, "the server has proven the key as well");
    require(worker_proven || middle.touched() || slow_ || !has_key_,
            "who has the key, and whom nobody disturbs, proves it");
  }

  // ---- Who is between them

  void carry(std::size_t from, std::size_t most) {
    if (!pipe_) return;
    pipe_->carry(from, most);
    record();
  }
  void record() {
    for (const std::size_t from : {0U, 1U}) {
      for (Bytes& frame : frames_of(pipe_->sent(from))) {
        if (recorded_.size() < kMostRecorded &&
            std::ranges::find(recorded_, frame) == recorded_.end()) {
          recorded_.push_back(std::move(frame));
        }
      }
    }
  }
  void insert(std::size_t from, std::span<const std::byte> bytes) {
    if (pipe_ && !bytes.empty()) pipe_->insert(from, bytes);
  }
  [[nodiscard]] std::span<const std::byte> recorded(std::size_t which) const {
    if (recorded_.empty()) return {};
    return recorded_[which % recorded_.size()];
  }

  // ---- Who connects himself

  void say(std::span<const std::byte> bytes) {
    if (stranger_.valid() && !bytes.empty()) {
      ::send(stranger_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
  }
  void check_stranger() {
    if (!stranger_.valid()) return;
    turn();
    turn();
    Bytes said(8192);
    const ssize_t count = ::recv(stranger_.get(), said.data(), said.size(), MSG_DONTWAIT);
    said.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    for (const Bytes& frame : frames_of(said)) {
      require(!is(frame, MessageId::proof), "to a stranger nothing is proven");
      if (is(frame, MessageId::challenge) && recorded_.size() < kMostRecorded)
        recorded_.push_back(frame);
    }
    stranger_.reset();
    turn();
  }

  NoDescriptorStays no_descriptor_stays_;
  VirtualTime time_;
  Script script_;
  progress::Engine engine_;
  comch::Address worker_address_ = comch::Address::parse("plain:server:1");
  std::optional<comch::PendingConnections> pending_;
  std::optional<WatchedPipe> pipe_;
  std::vector<Bytes> recorded_;
  core::Fd stranger_;
  bool has_key_ = true;
  bool connecting_ = false;
  bool slow_ = false;
  int waits_ = 0;
  std::size_t connections_ = 0;
  int first_messages_ = 0;
};

}  // namespace
}  // namespace offload::fuzz

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  offload::core::set_log_level("off");
  (void)offload::fuzz::FakeNetwork::instance().listener_fd();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  offload::fuzz::HandshakeBench({data, size}).run();
  return 0;
}
