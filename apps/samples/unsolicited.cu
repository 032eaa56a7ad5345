#include <memory>

#include "apps/samples/launch.hpp"
#include "apps/samples/unsolicited.hpp"
#include "kernels/comch/unsolicited.hpp"
#include "kernels/module/reduce.hpp"
#include "kernels/rdma/wait.hpp"

namespace offload::samples {
namespace {

using kernels::comch::SendResult;

/// The state of the group: zero at the beginning.
struct State {
  kernels::Staging memory;
  kernels::comch::SentMessage sent[kReceives];
  std::uint8_t before[kernels::kSlack];
  Notice notice;
  std::uint8_t after[kernels::kSlack];
  std::uint32_t taken;
};

struct AlarmWatch {
  kernels::ChannelView channel;
  State* state;

  template <class Group>
  OFFLOAD_HOST_DEVICE void operator()(const Group& group, unsigned) const {
    kernels::comch::UnsolicitedProducer<> producer(channel, state->memory, state->sent, kReceives);
    std::uint32_t events = 0;
    std::uint32_t sent = 0;
    std::uint32_t taken = 0;
    std::uint32_t id = 0;
    const auto is_over = [&](auto& wait) { return group.from_first(wait.is_over() ? 1 : 0) != 0; };
    for (std::uint32_t chunk = 0; chunk < kChunks; ++chunk) {
      std::uint32_t found = 0;
      for (std::uint32_t i = group.lane(); i < kChunk; i += group.size()) {
        if (value_at(chunk * kChunk + i) > kAlarm) ++found;
      }
      events += kernels::reduce_sum(group, found);
      if (events / kEvents == sent) continue;
      // Unsolicited: the group sends when it has a notice.
      if (group.lane() == 0) state->notice = {events, chunk};
      group.sync();
      const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&state->notice);
      kernels::rdma::Wait for_receive(patience());
      for (;;) {
        while (producer.poll_completion(group, id)) ++taken;
        const SendResult result = producer.send(group, bytes, sizeof(Notice), sent);
        if (result == SendResult::sent) break;
        if (result != SendResult::no_receive && result != SendResult::full) return;
        if (is_over(for_receive)) return;
      }
      ++sent;
    }
    kernels::rdma::Wait for_completions(patience());
    while (taken < sent && !is_over(for_completions)) {
      if (producer.poll_completion(group, id)) ++taken;
    }
    if (group.lane() == 0) state->taken = taken;
  }
};

#if defined(__CUDACC__)
void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

/// The GPU's address of memory of the host, which it may read, or write too.
std::uint8_t* as_the_gpu_sees(std::uint8_t* memory, std::uint64_t bytes, unsigned flags) {
  check(cudaHostRegister(memory, bytes, cudaHostRegisterMapped | flags));
  void* seen = nullptr;
  check(cudaHostGetDevicePointer(&seen, memory, 0));
  return static_cast<std::uint8_t*>(seen);
}

#endif

}  // namespace

std::uint32_t watch(kernels::ChannelView channel, const char*& by) {
  by = has_gpu() ? "a GPU" : "a thread";
#if defined(__CUDACC__)
  if (has_gpu()) {
    channel.requests =
        as_the_gpu_sees(channel.requests, channel.layout.request_bytes, cudaHostRegisterReadOnly);
    channel.responses = as_the_gpu_sees(channel.responses, channel.layout.response_bytes, 0);
  }
#endif
  const auto memory = allocate(sizeof(State));
  auto* const state = static_cast<State*>(memory.get());
  run_blocks(1, AlarmWatch{channel, state});
  return state->taken;
}

}  // namespace offload::samples
