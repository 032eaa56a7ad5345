#pragma once

#include <array>
#include <cstdint>

namespace offload::simulation {

/// Which call or allocation of which program fails, once.
struct Failure {
  static constexpr std::uint64_t kNone = ~0ULL;
  bool allocation = false;  ///< else a system call
  bool of_worker = false;   ///< the first one, else the first server
  bool over_tcp = false;    ///< with the proxies, else shared memory
  /// Counted from the program's start to its end; a call counts once for each error that it can
  /// give.
  std::uint64_t number = kNone;
};

/// How far it was noticed, in this order.
enum class Effect : std::uint8_t { none, client_hurt, program_ended };

struct FailureResult {
  std::uint64_t points;  ///< of this kind in the run
  bool fired;
  int error;  ///< what the call gave
  Effect effect;
  std::array<char, 24> call;
  std::array<char, 256> wrong;  ///< what was not as it should be; empty: nothing
  std::uint64_t hash;           ///< of the trace
};

/// A server, its workers and four clients from start to end, with that failure. Once a process.
FailureResult run_with_failure(const Failure& failure, bool traces);

}  // namespace offload::simulation
