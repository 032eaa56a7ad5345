#include <memory>
#include <string>
#include <vector>

#include "bench/doca/way.hpp"
#include "doca/comch/control_context.hpp"
#include "doca/comch/data_contexts.hpp"
#include "progress/task_pool.hpp"
#include "tasks/memory/inventory.hpp"

namespace offload::bench {
namespace {

using core::ErrorCode;
using core::Status;
using doca::ComchConnection;

/// The time that a start or a stop may take.
constexpr core::Duration kLongestChange = std::chrono::seconds(5);

/// An engine with a server or a client.
template <class Context>
struct LinkedEnd final : doca::ControlEvents {
  explicit LinkedEnd(const std::string& name) : context(kHost, name, *this) {
    context.connect(engine);
  }

  void on_message(ComchConnection&, std::span<std::byte>) override { count->receive(); }
  void on_connection(ComchConnection&, bool) override {}
  void on_consumer(ComchConnection&, std::uint32_t id, bool) override { consumer = id; }
  void on_lost() override {}
  [[nodiscard]] const std::shared_ptr<ComchConnection>& connection() const {
    return context.connections().front();
  }

  Count* count = nullptr;
  std::uint32_t consumer = 0;
  progress::Engine engine;
  Context context;
};

/// A server and a client that is connected to it.
class LinkedEnds {
 public:
  explicit LinkedEnds(const std::string& name) : server(name), client(name) {
    server.count = client.count = &count;
  }
  LinkedEnds& operator=(LinkedEnds&&) = delete;
  ~LinkedEnds() {
    client.context.stop();
    server.context.stop();
    const auto limit = core::Clock::now() + kLongestChange;
    while ((client.context.state() != progress::Context::State::idle ||
            server.context.state() != progress::Context::State::idle) &&
           core::Clock::now() < limit) {
      turn();
    }
  }

  void turn() {
    client.engine.progress();
    server.engine.progress();
  }
  void start() {
    server.context.start();
    client.context.start();
    until([&] {
      return client.context.state() == progress::Context::State::running &&
             !server.context.connections().empty();
    });
  }
  template <class Done>
  void until(Done done) {
    const auto limit = core::Clock::now() + kLongestChange;
    while (!done()) {
      if (core::Clock::now() > limit) throw core::Error(ErrorCode::timed_out, "no connection");
      turn();
    }
  }

  Count count;
  LinkedEnd<doca::ServerContext> server;
  LinkedEnd<doca::ClientContext> client;
};

/// Control messages of a client to a server.
class MessagesByObjects final : public Way {
 public:
  explicit MessagesByObjects(const Load& load)
      : bytes_(load.size), pool_(ends_.client.context, load.in_flight, {sent, failed, this}) {
    ends_.start();
    for (doca::MessageTask& task : pool_.tasks()) {
      idle_.push_back(pool_.allocate());
      task.connection = ends_.client.connection();
      task.message = bytes_;
    }
  }
  ~MessagesByObjects() override {
    for (doca::MessageTask& task : pool_.tasks()) static_cast<void>(pool_.release(task));
  }

  void carry(std::uint64_t count) override {
    ends_.count.begin(count);
    while (!ends_.count.is_done(count)) {
      while (!idle_.empty() && ends_.count.take(pool_.size())) {
        check(ends_.client.context.submit(*idle_.back()), "cannot send");
        idle_.pop_back();
      }
      ends_.turn();
    }
  }

 private:
  static void sent(doca::MessageTask& task, void* self) {
    auto& own = *static_cast<MessagesByObjects*>(self);
    ++own.ends_.count.ended;
    own.idle_.push_back(&task);
  }
  static void failed(doca::MessageTask&, void* self) {
    static_cast<MessagesByObjects*>(self)->ends_.count.has_failed = true;
  }

  std::vector<std::byte> bytes_;
  LinkedEnds ends_{"bench of objects"};
  progress::TaskPool<doca::MessageTask> pool_;
  std::vector<doca::MessageTask*> idle_;
};

/// DataMemory with an inventory.
struct DataMemory {
  explicit DataMemory(std::size_t bytes, std::size_t buffers) : inventory(buffers) {
    region.add_range(memory::allocate_range(bytes));
    region.start();
    inventory.start();
  }
  memory::BufferRef take(std::size_t offset, std::size_t length) {
    return inventory.take(region, {region.ranges()[0].address + offset, length}).buffer;
  }

  memory::MemoryRegion region{{"data"}};
  memory::BufferInventory inventory;
};

/// MessagesByObjects of a producer of the client to a consumer of the server, each with its own
/// engine.
class DataByObjects final : public Way {
 public:
  explicit DataByObjects(const Load& load)
      : to_(kDataMemory, load.in_flight), from_(kDataMemory, 1) {
    ends_.start();
    consumer_.emplace(ends_.server.connection(), lost, this);
    producer_.emplace(ends_.client.connection(), lost, this);
    consumer_->connect(receiver_);
    producer_->connect(sender_);
    receives_.emplace(
        *consumer_, load.in_flight,
        progress::TaskPool<doca::PostedReceive>::Callbacks{received, not_received, this});
    sends_.emplace(*producer_, load.in_flight,
                   progress::TaskPool<doca::DataTask>::Callbacks{sent, not_sent, this});
    consumer_->start();
    ends_.until([&] {
      receiver_.progress();
      return consumer_->state() == progress::Context::State::running && ends_.client.consumer != 0;
    });
    producer_->start();
    std::size_t offset = 0;
    for (std::uint32_t i = 0; i < load.in_flight; ++i) {
      doca::PostedReceive& task = *receives_->allocate();
      task.buffer = to_.take(offset, load.size);
      offset += load.size;
      check(consumer_->submit(task), "cannot post a buffer");
    }
    const memory::BufferRef message = from_.take(0, load.size);
    static_cast<void>(message->append(load.size));
    for (doca::DataTask& task : sends_->tasks()) {
      idle_.push_back(sends_->allocate());
      task.buffer = message;
      task.consumer = ends_.client.consumer;
    }
  }
  ~DataByObjects() override {
    is_ending_ = true;
    producer_->stop();
    consumer_->stop();
    for (doca::DataTask& task : sends_->tasks()) static_cast<void>(sends_->release(task));
    for (doca::PostedReceive& task : receives_->tasks()) {
      static_cast<void>(receives_->release(task));
    }
    sends_.reset();
    receives_.reset();
    producer_.reset();
    consumer_.reset();
  }

  void carry(std::uint64_t count) override {
    ends_.count.begin(count);
    while (!ends_.count.is_done(count)) {
      while (!idle_.empty() && ends_.count.left != 0) {
        const Status status = producer_->submit(*idle_.back());
        if (status == Status(ErrorCode::again)) break;
        check(status, "cannot send");
        idle_.pop_back();
        --ends_.count.left;
      }
      sender_.progress();
      receiver_.progress();
    }
  }

 private:
  static void lost(void* self) { static_cast<DataByObjects*>(self)->ends_.count.has_failed = true; }
  static void received(doca::PostedReceive& task, void* self) {
    auto& own = *static_cast<DataByObjects*>(self);
    ++own.ends_.count.received;
    task.buffer->reset();
    if (!own.consumer_->submit(task).ok()) own.ends_.count.has_failed = true;
  }
  static void not_received(doca::PostedReceive&, void* self) {
    auto& own = *static_cast<DataByObjects*>(self);
    own.ends_.count.has_failed = !own.is_ending_;
  }
  static void sent(doca::DataTask& task, void* self) {
    auto& own = *static_cast<DataByObjects*>(self);
    ++own.ends_.count.ended;
    own.idle_.push_back(&task);
  }
  static void not_sent(doca::DataTask&, void* self) {
    static_cast<DataByObjects*>(self)->ends_.count.has_failed = true;
  }

  DataMemory to_;
  DataMemory from_;
  LinkedEnds ends_{"bench of data by objects"};
  progress::Engine receiver_;
  progress::Engine sender_;
  std::optional<doca::ConsumerContext> consumer_;
  std::optional<doca::ProducerContext> producer_;
  std::optional<progress::TaskPool<doca::PostedReceive>> receives_;
  std::optional<progress::TaskPool<doca::DataTask>> sends_;
  std::vector<doca::DataTask*> idle_;
  bool is_ending_ = false;
};

}  // namespace

std::unique_ptr<Way> messages_by_objects(const Load& load) {
  return std::make_unique<MessagesByObjects>(load);
}

std::unique_ptr<Way> data_by_objects(const Load& load) {
  return std::make_unique<DataByObjects>(load);
}

}  // namespace offload::bench
