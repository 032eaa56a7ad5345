#include "comch/proxy/server_proxy.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "core/cpu.hpp"
#include "core/error.hpp"

namespace offload::comch {
namespace {

using protocol::DataHeader;

/// How long the thread looks for the back end's answer before it sleeps.
constexpr core::Duration kSpin = std::chrono::microseconds(50);
/// How long it sleeps at most; it is woken by the connection, the back end or the end.
constexpr core::Duration kLongestSleep = std::chrono::seconds(1);

channel::ChannelImport import_own(const channel::Channel& channel) {
  const auto own = channel.fds();
  std::array<core::Fd, 3> fds;
  std::transform(own.begin(), own.end(), fds.begin(), [](int fd) {
    return core::Fd(core::check_errno(::fcntl(fd, F_DUPFD_CLOEXEC, 0), "duplicate a descriptor"));
  });
  return {channel.descriptor(), std::move(fds)};
}

const protocol::ChannelDescriptor& checked(const protocol::ChannelDescriptor& shape) {
  if (kernels::is_valid_shape(shape.depth, shape.max_message_length)) return shape;
  throw core::Error(core::ErrorCode::bad_message,
                    "channel " + std::to_string(shape.channel) + " has an impossible shape");
}

}  // namespace

class ServerProxy::Proxy final : DataHandler {
 public:
  Proxy(progress::Engine& engine, const channel::ServerEnd& end,
        std::unique_ptr<DataEndpoint> endpoint)
      : engine_(&engine),
        channel_(end.channel),
        producer_(end),
        consumer_(end, producer_),
        sends_(producer_, producer_.capacity(), {free_send, free_send, this}),
        receives_(consumer_, producer_.capacity(),
                  {deliver, [](channel::PostRecvTask&, void*) {}, this}),
        connection_(endpoint->start(engine, channel_, *this, producer_.capacity())) {
    answering_.resize(producer_.capacity());
    producer_.connect(engine);
    consumer_.connect(engine);
    engine.watch(consumer_.wake_fd(), EPOLLIN | EPOLLET, bell_);
  }
  ~Proxy() {
    engine_->unwatch(consumer_.wake_fd(), bell_);
    if (consumer_.state() == progress::Context::State::running) consumer_.stop();
    if (producer_.state() == progress::Context::State::running) producer_.stop();
  }

  void start(channel::Peer peer) {
    consumer_.set_peer(peer);
    producer_.start();
    consumer_.start();
    while (channel::PostRecvTask* const task = receives_.allocate()) {
      if (const core::Status posted = consumer_.submit_unflushed(*task); !posted.ok()) {
        throw core::Error(posted.error(), "cannot post a receive");
      }
    }
  }

  [[nodiscard]] const std::string* failure() const noexcept {
    return connection_->failed() ? &connection_->reason() : nullptr;
  }

 private:
  /// The channel's doorbell only has to end the sleep.
  struct Bell final : progress::EventHandler {
    void on_events(std::uint32_t) override {}
  };

  static void free_send(channel::SendTask& task, void* self) {
    (void)static_cast<Proxy*>(self)->sends_.release(task);
  }

  /// The back end has answered: from turns of the engine.
  static void deliver(channel::PostRecvTask& task, void* object) {
    auto& self = *static_cast<Proxy*>(object);
    const auto payload = task.payload();
    self.answering_[self.answered_ % self.answering_.size()] = &task;
    self.connection_->post_send({self.answered_++, static_cast<std::uint32_t>(payload.size()),
                                 static_cast<std::uint32_t>(task.response_status())},
                                payload.data());
  }
  bool post_sends() override { return false; }  // deliver() pushes

  void on_sent(std::size_t count) override {
    for (; count != 0; --count) {
      (void)consumer_.submit_unflushed(*answering_[answers_sent_++ % answering_.size()]);
    }
    (void)consumer_.flush();
  }

  std::byte* receive_buffer(std::uint64_t sequence) override {
    return reinterpret_cast<std::byte*>(channel_.request(sequence).plain);
  }
  bool on_received(const DataHeader&, std::span<const std::byte> payload) override {
    channel::SendTask* const task = sends_.allocate();
    if (task == nullptr) return false;  // never: the server has a credit for each task
    task->message = payload;
    return producer_.submit_unflushed(*task).ok();
  }
  void on_receives_done() override { (void)producer_.flush(); }

  progress::Engine* engine_;
  Bell bell_;
  kernels::ChannelView channel_;
  channel::Producer producer_;
  channel::Consumer consumer_;
  progress::TaskPool<channel::SendTask> sends_;
  progress::TaskPool<channel::PostRecvTask> receives_;
  std::vector<channel::PostRecvTask*> answering_;  ///< whose responses are being sent, in order
  std::uint64_t answered_ = 0;
  std::uint64_t answers_sent_ = 0;
  std::unique_ptr<DataConnection> connection_;
};

ServerProxy::ServerProxy(const protocol::ChannelDescriptor& shape,
                         std::unique_ptr<DataEndpoint> endpoint)
    : channel_(checked(shape).channel, shape.depth, shape.max_message_length, -1),
      import_(import_own(channel_)),
      engine_(kSpin),
      proxy_(std::make_unique<Proxy>(engine_, channel_.server_end(), std::move(endpoint))) {}

ServerProxy::~ServerProxy() {
  stop_.store(true, std::memory_order_relaxed);
  engine_.notify();
  if (thread_.joinable()) thread_.join();
}

void ServerProxy::start(channel::Peer peer, std::function<void()> on_failure) {
  on_failure_ = std::move(on_failure);
  proxy_->start(peer);
  thread_ = std::thread([this] { run(); });
}

const std::string* ServerProxy::failure() const noexcept {
  return proxy_->failure();
}

void ServerProxy::run() {
  core::name_this_thread(("relay-" + std::to_string(import_.index())).c_str());
  while (!stop_.load(std::memory_order_relaxed) && proxy_->failure() == nullptr) {
    engine_.run_once(engine_.now() + kLongestSleep);
  }
  if (proxy_->failure() != nullptr) on_failure_();
}

}  // namespace offload::comch
