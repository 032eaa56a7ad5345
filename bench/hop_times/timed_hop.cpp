#include "bench/hop_times/timed_hop.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "bench/hop_times/timed_worker.hpp"
#include "channel/packets.hpp"
#include "channel/stream_copy.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "gpu/cuda_stream.hpp"
#include "gpu/memory.hpp"
#include "kernels/channel_layout.hpp"

namespace offload::bench {
namespace {

constexpr std::uint32_t kDepth = 128;
/// Messages for which one offset between the clocks holds: some milliseconds, in which they drift
/// by nanoseconds.
constexpr std::size_t kWindow = 256;
/// How long either side waits for the other, for one message.
constexpr core::Duration kLimit = std::chrono::seconds(20);

struct HostTimes {
  core::TimePoint begin, posted, seen;
};

std::int64_t nanoseconds(core::TimePoint time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

/// The server's end of a channel in pinned memory.
class Client {
 public:
  Client(const kernels::ChannelView& channel, std::uint32_t size)
      : channel_(channel), request_(size), response_(size + kernels::kSlack) {
    std::minstd_rand random(size);
    for (auto& byte : request_) byte = static_cast<std::byte>(random());
    expected_.assign(request_.rbegin(), request_.rend());
  }

  HostTimes round_trip(std::uint64_t message) {
    vary(message);
    HostTimes times;
    const kernels::Slot request = channel_.request(message);
    const std::uint32_t flag = channel_.layout.flag_of(message);
    times.begin = core::Clock::now();
    if (is_long()) {
      write_long(request, flag);
    } else {
      channel::write_packets(request.packets, flag, request_.data(), length());
    }
    times.posted = core::Clock::now();
    while (!seen(message, flag)) {
      if (core::Clock::now() - times.posted > kLimit) {
        throw core::Error(core::ErrorCode::timed_out, "the GPU did not answer in time");
      }
    }
    times.seen = core::Clock::now();
    check(message);
    return times;
  }

 private:
  [[nodiscard]] std::uint32_t length() const { return static_cast<std::uint32_t>(request_.size()); }
  [[nodiscard]] bool is_long() const { return length() > kernels::kMaxPacketPayload; }

  /// Makes the messages that a channel holds at once differ.
  void vary(std::uint64_t message) {
    if (request_.empty()) return;
    request_.front() = expected_.back() = static_cast<std::byte>(message);
  }

  void write_long(const kernels::Slot& slot, std::uint32_t flag) {
    channel::copy_for_device(slot.plain(), request_.data(), request_.size());
    kernels::store_packet(slot.packets, {{length(), 0, 0}, flag});
  }

  bool seen(std::uint64_t message, std::uint32_t flag) {
    const kernels::Slot slot = channel_.response(message);
    if (kernels::load_packet(slot.packets).flag != flag) return false;
    return is_long() || channel::read_packets(slot.packets, flag, response_.data(), length());
  }

  void check(std::uint64_t message) const {
    const kernels::Slot slot = channel_.response(message);
    const void* const payload = is_long() ? static_cast<void*>(slot.plain()) : response_.data();
    if (kernels::load_packet(slot.packets).data[0] != length() ||
        (!expected_.empty() && std::memcmp(payload, expected_.data(), expected_.size()) != 0)) {
      throw core::Error(core::ErrorCode::unexpected,
                        "message " + std::to_string(message) + ": wrong response");
    }
  }

  kernels::ChannelView channel_;
  std::vector<std::byte> request_;
  std::vector<std::byte> expected_;
  std::vector<std::byte> response_;
};

/// The offset of the GPU's clock from the host's, ns.
std::int64_t lead_of_gpu(std::span<const HostTimes> host, std::span<const Stamps> gpu) {
  std::int64_t there = INT64_MAX;
  std::int64_t back = INT64_MAX;
  for (std::size_t i = 0; i < host.size(); ++i) {
    there = std::min(there, static_cast<std::int64_t>(gpu[i].found) - nanoseconds(host[i].posted));
    back = std::min(back, nanoseconds(host[i].seen) - static_cast<std::int64_t>(gpu[i].published));
  }
  return (there - back) / 2;
}

void add_window(HopTimes& times, std::span<const HostTimes> host, std::span<const Stamps> gpu) {
  const std::int64_t lead = lead_of_gpu(host, gpu);
  const auto between = [](std::uint64_t begin, std::uint64_t end) {
    return std::chrono::nanoseconds(static_cast<std::int64_t>(end - begin));
  };
  for (std::size_t i = 0; i < host.size(); ++i) {
    const auto posted = static_cast<std::uint64_t>(nanoseconds(host[i].posted) + lead);
    const auto seen = static_cast<std::uint64_t>(nanoseconds(host[i].seen) + lead);
    const Stamps& at = gpu[i];
    const std::uint64_t answered = at.written != 0 ? at.written : at.published;
    times.fill.record(host[i].posted - host[i].begin);
    times.total.record(host[i].seen - host[i].posted);
    times.to_gpu.record(between(posted, at.found));
    times.answer.record(between(at.found, answered));
    times.fence.record(between(answered, at.published));
    times.to_host.record(between(at.published, seen));
    times.look.record(between(at.looked, at.found));
  }
}

}  // namespace

HopTimes measure_hop(std::uint32_t size, std::uint32_t messages) {
  const auto layout = kernels::make_layout(kDepth, size);
  const gpu::PinnedArray<kernels::Packet> memory(layout.bytes() / sizeof(kernels::Packet));
  auto* const base = reinterpret_cast<std::uint8_t*>(memory.get());
  const kernels::ChannelView channel{base, base + layout.request_bytes, layout};
  const gpu::DeviceArray<Stamps> stamps(messages);
  Client client(channel, size);
  std::vector<HostTimes> host(messages);
  {
    const gpu::CudaStream stream;
    gpu::check_cuda(
        launch_timed_worker(channel, messages, stamps.get(),
                            static_cast<std::uint64_t>(std::chrono::nanoseconds(kLimit).count()),
                            stream.get()),
        "launch");
    for (std::uint32_t i = 0; i < messages; ++i) host[i] = client.round_trip(i);
    stream.sync();
  }
  std::vector<Stamps> gpu(messages);
  gpu::check_cuda(
      cudaMemcpy(gpu.data(), stamps.get(), messages * sizeof(Stamps), cudaMemcpyDeviceToHost),
      "cudaMemcpy of the stamps");
  HopTimes times;
  // The first window warms up.
  for (std::size_t i = kWindow; i + kWindow <= messages; i += kWindow) {
    add_window(times, std::span(host).subspan(i, kWindow), std::span(gpu).subspan(i, kWindow));
  }
  return times;
}

}  // namespace offload::bench
