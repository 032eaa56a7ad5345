#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

namespace offload::client {

/// The answer to a question, for one load or for all.
struct Answer {
  enum class Verdict : std::uint8_t {
    answered,  ///< a question that has no better or worse
    equal,
    faster,
    slower,
    cannot_tell,
    failed,  ///< errors, or wrong answers
    interrupted,
  };
  Verdict verdict = Verdict::answered;
  std::string sentence;
};

inline constexpr const char* kVerdictNamesOfAnswers[] = {
    "answered", "equal", "faster", "slower", "cannot_tell", "failed", "interrupted"};

/// The same name as in the JSON.
inline const char* name_of(Answer::Verdict verdict) noexcept {
  return kVerdictNamesOfAnswers[static_cast<std::size_t>(verdict)];
}

/// Returns the exit status of a verdict: those of offload-report compare, and the client's for a
/// signal.
inline int status_of(Answer::Verdict verdict) noexcept {
  using enum Answer::Verdict;
  if (verdict == slower || verdict == failed) return 1;
  if (verdict == cannot_tell) return 3;
  return verdict == interrupted ? 130 : 0;
}

}  // namespace offload::client
