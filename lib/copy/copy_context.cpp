#include "copy/copy_context.hpp"

#include <functional>

namespace offload::copy {
namespace {

/// Whether `source` and the bytes that it goes to have one in common.
bool overlap(std::span<const std::byte> source, const std::byte* destination) {
  // std::less orders pointers into different objects too.
  const std::less<> before;
  return before(source.data(), destination + source.size()) &&
         before(destination, source.data() + source.size());
}

}  // namespace

core::Status CopyContext::on_submit(progress::Task& task) noexcept {
  auto& copy = static_cast<CopyTask&>(task);
  if (copy.destination.size() < copy.source.size()) return core::ErrorCode::invalid_value;
  if (overlap(copy.source, copy.destination.data())) return core::ErrorCode::invalid_value;
  return take(copy);
}

}  // namespace offload::copy
