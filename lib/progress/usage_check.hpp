#pragma once

#include <atomic>
#include <thread>

namespace offload::progress {

/// True if UsageCheck checks: only in builds with assertions.
#ifdef NDEBUG
inline constexpr bool kChecksUsage = false;
#else
inline constexpr bool kChecksUsage = true;
#endif

/// A checker of the thread rules of an engine: only one thread at a time is inside its functions,
/// and a turn does not begin inside a turn. A violation is logged and ends the program. The engine
/// may be handed from thread to thread.
class UsageCheck {
 public:
  /// The scope of a call. Calls of one thread may nest.
  class Call {
   public:
    Call(UsageCheck& check, const char* name) noexcept : check_(check) {
      if constexpr (kChecksUsage) outermost_ = check_.enter(name);
    }
    ~Call() {
      if (outermost_) check_.leave();
    }
    Call& operator=(Call&&) = delete;

   private:
    UsageCheck& check_;
    bool outermost_ = false;
  };

  /// The scope of a call that makes a turn. Turns must not nest.
  class Turn {
   public:
    Turn(UsageCheck& check, const char* name) noexcept : call_(check, name), check_(check) {
      if constexpr (kChecksUsage) check_.begin_turn(name);
    }
    ~Turn() {
      if constexpr (kChecksUsage) check_.in_turn_ = false;
    }
    Turn& operator=(Turn&&) = delete;

   private:
    Call call_;
    UsageCheck& check_;
  };

 private:
  /// Returns whether this is the outermost call, which is the one to call leave().
  bool enter(const char* name) noexcept;
  void leave() noexcept;
  void begin_turn(const char* name) noexcept;

  /// The thread that is inside. Relaxed: the program orders a hand-over between threads by itself.
  std::atomic<std::thread::id> user_{};
  bool in_turn_ = false;
};

}  // namespace offload::progress
