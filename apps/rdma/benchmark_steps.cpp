#include "apps/rdma/benchmark.hpp"
#include "tasks/progress/graph.hpp"

/// Benchmarks whose iterations have several operations.
namespace offload::rdma_tool {

using core::Clock;

/// Each iteration counts the sync event up by one, by a set or an add.
void Benchmark::publish() {
  using Work = Variant::Work;
  using Action = rdma::RemoteSyncEventTask::Action;
  const bool sets = variant_.work == Work::set;
  for (std::uint64_t i = 0; i < options_.iterations; ++i) {
    for (const auto& endpoint : endpoints_) {
      auto begun = Clock::now();
      std::uint64_t found =
          endpoint->work_on_event(sets ? Action::set : Action::add, sets ? i + 1 : 1);
      std::uint64_t expected = i;
      if (variant_.work == Work::get) {
        begun = Clock::now();
        found = endpoint->work_on_event(Action::get, 0);
        expected = i + 1;
      }
      result_.latency.record(Clock::now() - begun);
      if (sets) continue;
      if (found != expected) throw_wrong(i, "the event has the wrong value");
      ++result_.checked;
    }
  }
}

void Benchmark::subscribe() {
  for (std::uint64_t i = 0; i < options_.iterations; ++i) {
    for (const auto& endpoint : endpoints_) {
      environment_.wait([&] { return endpoint->event().get() > i; }, "the event", kPollInterval);
      if (endpoint->event().get() > options_.iterations) throw_wrong(i, "the event is too high");
      ++result_.checked;
    }
  }
}

/// The second connection sends what the first reads, from the same buffer. A send that did not wait
/// for the read would send the data of the read before it.
void Benchmark::read_then_send() {
  Endpoint& first = *endpoints_[0];
  Endpoint& second = *endpoints_[1];
  struct Run {
    bool ended = false;
    bool well = false;
  } run;
  const auto ended = [](progress::GraphInstance& instance, void* user_data) {
    *static_cast<Run*>(user_data) = {true, instance.status().ok()};
  };
  progress::Graph graph("read, then send", 1, {ended, ended, &run});
  graph.connect(environment_.engine());
  const auto read = graph.add_node("read", first.connection());
  const auto send = graph.add_node("send", second.connection());
  graph.add_dependency(read, send);
  graph.start();
  progress::GraphInstance& instance = *graph.allocate();
  for (std::uint64_t i = 0; i < options_.iterations; ++i) {
    first.sync();  // after it the peer's data can be read
    rdma::ReadTask& reading = first.prepared_read(0, size_);
    rdma::SendTask& sending = second.prepared_send(*reading.destination);
    run = {};
    const auto begun = Clock::now();
    if (!instance.bind_task(read, reading).ok() || !instance.bind_task(send, sending).ok() ||
        !graph.submit(instance).ok()) {
      throw core::Error(core::ErrorCode::unexpected, "the graph does not accept its tasks");
    }
    environment_.wait([&] { return run.ended; }, "the end of the graph");
    if (!run.well) {
      const bool reads = instance.failed_node() == read;
      throw core::Error(core::ErrorCode::io_failed,
                        reads ? "read: " + reading.explain() : "send: " + sending.explain());
    }
    result_.latency.record(Clock::now() - begun);
    check(first.outgoing(0).first(size_), first, false, i);
  }
  graph.stop();
}

void Benchmark::expect_send_of_read() {
  Endpoint& first = *endpoints_[0];
  Endpoint& second = *endpoints_[1];
  for (std::uint64_t i = 0; i < options_.iterations; ++i) {
    make(first.incoming(0).first(size_), first, false, i);
    first.sync();
    rdma::Receive& message = second.receive();
    if (message.length() != size_) throw_wrong(i, "a message has the wrong length");
    check(message.destination->data(), first, false, i);
    second.give_back(message);
  }
}

}  // namespace offload::rdma_tool
