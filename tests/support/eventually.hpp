#pragma once

#include <chrono>
#include <thread>

namespace offload::support {

/// The time limit of every wait of a test. It is generous, for machines that are busy.
inline constexpr std::chrono::seconds kBound{20};

/// Calls `step` until `condition` holds; returns false if it does not within kBound. `step` should
/// rest for a moment if there is nothing to do.
template <class Condition, class Step>
bool eventually(Condition condition, Step step) {
  const auto deadline = std::chrono::steady_clock::now() + kBound;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    step();
  }
  return true;
}

template <class Condition>
bool eventually(Condition condition) {
  return eventually(condition, [] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); });
}

}  // namespace offload::support
