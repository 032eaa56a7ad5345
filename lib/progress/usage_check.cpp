#include "progress/usage_check.hpp"

#include <exception>

#include "core/log.hpp"

namespace offload::progress {
namespace {

[[noreturn]] void give_up(const char* name, const char* why) noexcept {
  core::log_critical("progress engine: {} was called {}", name, why);
  core::flush_log();
  std::terminate();
}

}  // namespace

bool UsageCheck::enter(const char* name) noexcept {
  std::thread::id inside{};
  const std::thread::id self = std::this_thread::get_id();
  if (user_.compare_exchange_strong(inside, self, std::memory_order_relaxed)) return true;
  if (inside != self) give_up(name, "while another thread was inside the engine");
  return false;
}

void UsageCheck::leave() noexcept {
  user_.store(std::thread::id{}, std::memory_order_relaxed);
}

void UsageCheck::begin_turn(const char* name) noexcept {
  if (in_turn_) give_up(name, "from inside a callback of the same engine");
  in_turn_ = true;
}

}  // namespace offload::progress
