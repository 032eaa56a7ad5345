#include "tests/fuzz/state/scripted_workers.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "tests/fuzz/state/stream_client.hpp"

namespace offload::fuzz {
namespace {

/// A connection to a worker that cannot be reached any more.
class BrokenLine final : public comch::DataEndpoint {
 public:
  std::unique_ptr<comch::DataConnection> start(progress::Engine&, const kernels::ChannelView&,
                                               comch::DataHandler&, std::uint32_t) override {
    throw core::Error(core::ErrorCode::connection_reset, "the line is cut");
  }
};

}  // namespace

std::shared_ptr<comch::WorkerChannel> ScriptedWorkers::make_channel(comch::WorkerId id,
                                                                    channel::Wakeup wakeup,
                                                                    std::uint32_t depth) {
  return std::shared_ptr<comch::WorkerChannel>(
      new comch::WorkerChannel{id, wakeup, {0, depth, StreamClient::kLongest, -1}});
}

ScriptedWorkers::ScriptedWorkers(server::IoThread& thread,
                                 std::shared_ptr<comch::WorkerChannel> first,
                                 std::function<void()> before_loss)
    : thread_(&thread), before_loss_(std::move(before_loss)) {
  workers_.push_back({SlotWorker(std::move(first))});
}

void ScriptedWorkers::add_another(bool broken) {
  const SlotWorker& first = workers_.front().slots;
  auto channel = make_channel(workers_.size() + 1, first.wakeup(), first.depth());
  if (broken) channel->endpoint = std::make_unique<BrokenLine>();
  workers_.push_back({SlotWorker(channel), broken});
  thread_->add_worker(std::move(channel));
}

void ScriptedWorkers::lose(comch::WorkerId id) {
  if (id == 0 || id > workers_.size() || workers_[id - 1].lost) return;
  before_loss_();
  workers_[id - 1].lost = true;
  ++losses_;
  thread_->remove_worker(id, comch::WorkerLoss::ended);
  if (selected_ == id) select(0);
}

void ScriptedWorkers::select(comch::WorkerId id) {
  if (id > workers_.size() || (id != 0 && workers_[id - 1].lost)) return;
  selected_ = id;
  thread_->select_worker(id);
}

void ScriptedWorkers::answer(std::size_t index, unsigned count) {
  if (index >= workers_.size()) return;
  SlotWorker& worker = workers_[index].slots;
  for (unsigned i = 0; (i < count || count == 255) && worker.serve(); ++i) continue;
}

void ScriptedWorkers::lie(std::size_t index, Script& script) {
  const std::uint8_t kind = script.byte();
  const std::uint32_t length = script.two_bytes();
  const std::uint32_t count = script.byte();
  const auto bytes = script.bytes(kind >> 3U);
  // A lost worker writes no more: its process is gone, even before the thread hears of it in its
  // next turn.
  if (index >= workers_.size() || workers_[index].lost) return;
  Worker& worker = workers_[index];
  worker.lies = true;
  switch (kind % 8U) {
    case 0: worker.slots.refuse(); break;
    case 1: worker.slots.skip(); break;
    case 2:
    case 3: worker.slots.lie(length, count, bytes); break;
    default: (void)worker.slots.spoil(length % 2048U, bytes); break;
  }
}

bool ScriptedWorkers::serve_all() {
  bool served = false;
  for (Worker& worker : workers_) {
    if (!worker.lost && !worker.lies) served = worker.slots.serve_all() != 0 || served;
  }
  return served;
}

bool ScriptedWorkers::have_liar() const {
  return std::ranges::any_of(workers_, [](const Worker& w) { return w.lies && !w.lost; });
}

void ScriptedWorkers::replace_bad() {
  for (const Worker& worker : workers_) {
    const comch::WorkerId id = worker.slots.id();
    if (worker.lies || worker.broken || id != selected_) lose(id);
  }
  if (selected_ != 0) return;
  add_another(/*broken=*/false);
  select(workers_.back().slots.id());
}

}  // namespace offload::fuzz
