#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "apps/packets/runner.hpp"
#include "core/process/thread.hpp"
#include "packets/image.hpp"

namespace offload::packets {
namespace {

/// A thread polls for this time, then sleeps until the next packet, for at most kSleepMs.
constexpr std::uint64_t kSpinNs = 20'000;
constexpr int kSleepMs = 20;

class CpuRunner final : public Runner {
 public:
  CpuRunner(packets::FrameMemory& memory, packets::Port& port, const Plan& plan)
      : port_(port),
        image_(memory, std::span(&one_, 1)),
        counts_(image_.queues().size()),
        items_(image_.queues().size()) {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      works_.push_back(make_work(plan, &image_.queues()[i], &stop_, &counts_[i], items_[i]));
      works_.back().wait_ns = kSpinNs;
      semaphores_.push_back(items_[i].view());
    }
  }
  ~CpuRunner() override { CpuRunner::stop(); }

  void start() override {
    threads_.reserve(works_.size());
    for (std::size_t i = 0; i < works_.size(); ++i) {
      threads_.push_back(core::start_thread<std::jthread>(fmt::format("lane-{}", i), [this, i] {
        const kernels::SingleLane group;
        Lane<kernels::SingleLane>(group, works_[i]).run([this, i](bool had_work) {
          port_.wake(i);
          if (had_work || works_[i].command == Command::send) return;
          pollfd readable{port_.queues()[i].socket.fd(), POLLIN, 0};
          ::poll(&readable, 1, kSleepMs);
        });
        left_.fetch_add(1, std::memory_order_release);
      }));
    }
  }
  void stop() override {
    // Relaxed: the join orders what matters.
    __atomic_store_n(&stop_, 1U, __ATOMIC_RELAXED);
    threads_.clear();
  }
  // Acquire, pairs with the lanes' release: their counts are whole.
  bool is_done() override { return left_.load(std::memory_order_acquire) == works_.size(); }
  [[nodiscard]] LaneCounts counts() const override { return sum_of(counts_); }
  [[nodiscard]] std::span<const kernels::packets::Semaphore> items() const override {
    return semaphores_;
  }

 private:
  packets::Port& port_;
  const packets::Port* one_ = &port_;
  packets::HostImage image_;
  std::uint32_t stop_ = 0;
  std::vector<LaneCounts> counts_;
  std::vector<QueueItems> items_;
  std::vector<LaneWork> works_;
  std::vector<kernels::packets::Semaphore> semaphores_;
  std::atomic<std::size_t> left_{0};
  std::vector<std::jthread> threads_;
};

}  // namespace

std::unique_ptr<Runner> make_cpu_runner(packets::FrameMemory& memory, packets::Port& port,
                                        const Plan& plan) {
  return std::make_unique<CpuRunner>(memory, port, plan);
}

LaneWork make_work(const Plan& plan, const kernels::packets::Queue* queue,
                   const std::uint32_t* stop, LaneCounts* counts, QueueItems& items) {
  LaneWork work{};
  work.command = plan.command;
  work.queue = queue;
  work.stop = stop;
  work.counts = counts;
  work.items = items.view();
  work.templates = {plan.frames.data(), plan.lengths.data(),
                    static_cast<std::uint32_t>(plan.lengths.size())};
  work.host = &plan.host;
  work.statistics_every = plan.statistics_every;
  work.interval_ns = plan.interval_ns;
  work.most_packets = plan.most_packets;
  work.port = plan.port;
  work.batch = plan.batch;
  return work;
}

LaneCounts sum_of(std::span<const LaneCounts> counts) noexcept {
  // Relaxed, as show() writes them.
  const auto read = [](const std::uint64_t& value) {
    return __atomic_load_n(&value, __ATOMIC_RELAXED);
  };
  LaneCounts sum{};
  for (const LaneCounts& each : counts) {
    sum.packets += read(each.packets);
    sum.bytes += read(each.bytes);
    sum.answered += read(each.answered);
    sum.sent += read(each.sent);
    sum.missed += read(each.missed);
    sum.late_ns += read(each.late_ns);
    sum.latest_ns = std::max(sum.latest_ns, read(each.latest_ns));
    for (std::size_t i = 0; i < std::size(sum.errors); ++i) sum.errors[i] += read(each.errors[i]);
    for (std::size_t i = 0; i < std::size(sum.martians); ++i) {
      sum.martians[i] += read(each.martians[i]);
    }
  }
  return sum;
}

}  // namespace offload::packets
