#include <cstdlib>

#include "doca/comch/gpu_queues.hpp"

// The contexts are compiled into the benchmark without the data path of kernels, which no load of
// it uses.
namespace offload::doca {

void GpuPath::fail(const char*) noexcept {
  std::abort();
}
void GpuReceiver::begin(std::unique_ptr<Link>) {
  std::abort();
}
void GpuReceiver::end() noexcept {
  std::abort();
}
void GpuSender::begin(ComchConnection&, std::uint32_t) {
  std::abort();
}
void GpuSender::end() noexcept {
  std::abort();
}
void GpuSender::lose() noexcept {
  std::abort();
}
bool GpuSender::is_sending() const noexcept {
  std::abort();
}
bool GpuSender::flush() noexcept {
  std::abort();
}
void GpuSender::abandon() noexcept {
  std::abort();
}

}  // namespace offload::doca
