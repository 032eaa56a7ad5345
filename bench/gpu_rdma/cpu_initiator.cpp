#include <cstring>
#include <new>
#include <thread>
#include <vector>

#include "bench/gpu_rdma/initiator.hpp"
#include "kernels/group.hpp"

namespace offload::bench {
namespace {

class CpuInitiator final : public Initiator {
 public:
  void* allocate(std::size_t bytes) override {
    constexpr std::align_val_t kLine{64};
    auto* const memory = static_cast<std::byte*>(::operator new(bytes, kLine));
    memory_.emplace_back(memory, [](std::byte* data) { ::operator delete(data, kLine); });
    return std::memset(memory, 0, bytes);
  }
  void* allocate_own(std::size_t bytes) override { return allocate(bytes); }
  void clear() override { memory_.clear(); }
  void start(const Load& load, std::uint32_t groups) override {
    for (std::uint32_t i = 0; i < groups; ++i) {
      threads_.emplace_back([load, i] { run_load(kernels::SingleLane{}, i, load); });
    }
  }
  void join() override { threads_.clear(); }

 private:
  std::vector<std::unique_ptr<std::byte, void (*)(std::byte*)>> memory_;
  std::vector<std::jthread> threads_;
};

}  // namespace

std::unique_ptr<Initiator> make_cpu_initiator() {
  return std::make_unique<CpuInitiator>();
}

}  // namespace offload::bench
