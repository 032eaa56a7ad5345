#include "softcard/preload/gpu_mirrors.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace offload::softcard {
namespace {

using core::Error;
using core::ErrorCode;

void check(int result, const char* what) {
  if (result == CudaDriver::kSuccess) return;
  throw Error(ErrorCode::driver, std::string(what) + ": CUDA error " + std::to_string(result),
              {core::Cause::Domain::cuda, result});
}

/// Makes a context that of the thread while it lives.
class Current {
 public:
  Current(const CudaDriver& driver, CudaDriver::Context context) : driver_(driver) {
    check(driver.push_context(context), "cuCtxPushCurrent");
  }
  Current& operator=(Current&&) = delete;
  ~Current() {
    CudaDriver::Context former = nullptr;
    driver_.pop_context(&former);
  }

 private:
  const CudaDriver& driver_;
};

}  // namespace

GpuMirrors::~GpuMirrors() {
  while (!copies_.empty()) {
    const auto& [at, copy] = *copies_.begin();
    remove({const_cast<std::byte*>(at), copy.length});
  }
}

std::span<std::byte> GpuMirrors::add(void* address, std::size_t length) {
  const std::span bytes(static_cast<std::byte*>(address), length);
  if (driver_ == nullptr) driver_ = CudaDriver::loaded();
  const auto original = reinterpret_cast<CudaDriver::Address>(address);
  unsigned type = 0;
  if (driver_ == nullptr ||
      driver_->pointer_attribute(&type, CudaDriver::kOfMemoryType, original) !=
          CudaDriver::kSuccess ||
      type != CudaDriver::kDeviceMemory) {
    return bytes;
  }
  CudaDriver::Context context = nullptr;
  check(driver_->pointer_attribute(&context, CudaDriver::kOfContext, original),
        "find the context of memory of a GPU");
  const Current current(*driver_, context);
  stream_of(context);
  void* memory = nullptr;
  check(driver_->allocate_host(&memory, length, 0), "cuMemHostAlloc");
  auto* const copy = static_cast<std::byte*>(memory);
  copies_.emplace(copy, Copy{length, original, context});
  fetch({copy, length});
  return {copy, length};
}

void GpuMirrors::remove(std::span<std::byte> bytes) noexcept {
  const auto found = copies_.find(bytes.data());
  if (found == copies_.end()) return;
  if (driver_->push_context(found->second.context) == CudaDriver::kSuccess) {
    driver_->free_host(bytes.data());
    CudaDriver::Context former = nullptr;
    driver_->pop_context(&former);
  }
  copies_.erase(found);
}

const GpuMirrors::Copy* GpuMirrors::find(std::span<const std::byte> part,
                                         std::size_t& offset) const {
  auto behind = copies_.upper_bound(part.data());
  if (behind == copies_.begin()) return nullptr;
  const auto& [at, copy] = *--behind;
  offset = static_cast<std::size_t>(part.data() - at);
  return offset < copy.length ? &copy : nullptr;
}

CudaDriver::Stream GpuMirrors::stream_of(CudaDriver::Context context) {
  const auto found = streams_.find(context);
  if (found != streams_.end()) return found->second;
  CudaDriver::Stream stream = nullptr;
  check(driver_->create_stream(&stream, CudaDriver::kNonBlocking), "cuStreamCreate");
  return streams_.emplace(context, stream).first->second;
}

void GpuMirrors::wait(CudaDriver::Stream stream) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  int result = CudaDriver::kNotReady;
  Clock::duration waited{};
  while (result == CudaDriver::kNotReady) {
    result = driver_->query_stream(stream);
    waited = Clock::now() - begin;
    if (waited > std::chrono::seconds(10)) {
      throw Error(ErrorCode::timed_out, "a copy of memory of a GPU did not end");
    }
  }
  check(result, "copy memory of a GPU");
  counts_.waited += waited;
  counts_.longest = std::max<std::chrono::nanoseconds>(counts_.longest, waited);
}

template <class Enqueue>
void GpuMirrors::copy(std::span<const std::byte> part, std::uint64_t& count, Enqueue enqueue) {
  std::size_t offset = 0;
  const Copy* const copy = find(part, offset);
  if (copy == nullptr) return;
  const Current current(*driver_, copy->context);
  const CudaDriver::Stream stream = stream_of(copy->context);
  enqueue(copy->original + offset, stream);
  wait(stream);
  ++count;
}

void GpuMirrors::fetch(std::span<const std::byte> part) {
  copy(part, counts_.reads, [&](CudaDriver::Address from, CudaDriver::Stream stream) {
    auto* const to = const_cast<std::byte*>(part.data());
    check(driver_->copy_to_host(to, from, part.size(), stream), "cuMemcpyDtoHAsync");
  });
}

void GpuMirrors::store(std::span<const std::byte> part) {
  constexpr std::size_t kWord = sizeof(std::uint32_t);
  constexpr std::size_t kAtOnce = 2 * kWord;  // an atomic word
  const std::size_t before = part.size() > kAtOnce ? part.size() - kWord : 0;
  copy(part, counts_.writes, [&](CudaDriver::Address to, CudaDriver::Stream stream) {
    for (const auto& [at, bytes] :
         {std::pair(std::size_t{0}, before), std::pair(before, part.size() - before)}) {
      if (bytes == 0) continue;
      check(driver_->copy_to_device(to + at, part.data() + at, bytes, stream), "cuMemcpyHtoDAsync");
    }
  });
}

}  // namespace offload::softcard
