#include "doca/gpu/copies.hpp"

#include <exception>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"

namespace offload::doca {
namespace {

constexpr std::uint32_t kEntries = 1024;
/// Copies that are begun together.
constexpr std::size_t kCopiesAtOnce = 64;

}  // namespace

GpuCopies::GpuCopies(doca_gpu& gpu) : gpu_(gpu), mover_(gpu.mover()), ring_(gpu, kEntries) {
  mover_.add(*this);
}

void GpuCopies::end() noexcept {
  if (std::exchange(has_ended_, true)) return;
  mover_.remove(*this);
  if (!has_failed_) ring_.set_state(DOCA_ERROR_BAD_STATE);
  under_way_.clear();
}

bool GpuCopies::gather(GpuStaging&) noexcept {
  if (has_failed_) return false;
  try {
    for (std::size_t i = 0; i < kCopiesAtOnce; ++i) {
      const auto request = ring_.next_request();
      if (!request) break;
      begin_copy(*request);
    }
  } catch (const std::exception& error) {  // also that there is no memory
    fail(error.what());
    return true;
  }
  return !under_way_.empty();
}

void GpuCopies::begin_copy(const offload_gpu_comch_request& request) {
  auto from = MemoryUse::find(request.mkey, request.address, request.length);
  auto to = MemoryUse::find(request.destination_mkey, request.destination, request.length);
  if (!from || !to || !to->is_writable()) {
    throw core::Error(core::ErrorCode::invalid_value,
                      "a kernel asked for a copy outside of an mmap, or to one that is read-only");
  }
  void* const destination = to->bytes().data();
  const void* const source = from->bytes().data();
  under_way_.push_back(std::move(*from));
  under_way_.push_back(std::move(*to));
  if (request.length != 0) gpu_->copy_in(destination, source, request.length);
}

bool GpuCopies::pass_on() noexcept {
  if (under_way_.empty()) return false;
  if (!has_failed_) {
    try {
      gpu_->sync();
      for (std::size_t i = 0; i < under_way_.size(); i += 2) ring_.write({});
      ring_.publish();
    } catch (const std::exception& error) {
      fail(error.what());
    }
  }
  under_way_.clear();
  return true;
}

void GpuCopies::fail(const char* why) noexcept {
  if (std::exchange(has_failed_, true)) return;
  core::log_error("dma of a kernel: {}", why);
  ring_.set_state(DOCA_ERROR_IO_FAILED);
}

}  // namespace offload::doca
