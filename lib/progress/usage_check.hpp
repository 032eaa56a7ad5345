#pragma once

#include <atomic>
#include <thread>

namespace offload::progress {

/// Whether UsageCheck looks: in builds with assertions. Others pay nothing for it.
#ifdef NDEBUG
inline constexpr bool kChecksUsage = false;
#else
inline constexpr bool kChecksUsage = true;
#endif

/// Finds the two misuses of an object that belongs to one thread at a time: a second thread comes
/// in while a first is inside, and a turn begins inside a turn. Either logs a line and ends the
/// program. An object may be handed from thread to thread.
class UsageCheck {
 public:
  /// A call from its begin to its end. It may be made from inside another one of the same thread.
  class Call {
   public:
    Call(UsageCheck& check, const char* name) noexcept : check_(check) {
      if constexpr (kChecksUsage) outermost_ = check_.enter(name);
    }
    ~Call() {
      if (outermost_) check_.leave();
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    UsageCheck& check_;
    bool outermost_ = false;
  };

  /// A call that may not be made from inside another of its kind.
  class Turn {
   public:
    Turn(UsageCheck& check, const char* name) noexcept : call_(check, name), check_(check) {
      if constexpr (kChecksUsage) check_.begin_turn(name);
    }
    ~Turn() {
      if constexpr (kChecksUsage) check_.in_turn_ = false;
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Call call_;
    UsageCheck& check_;
  };

 private:
  /// Whether this is the first call of its thread, which is to leave.
  bool enter(const char* name) noexcept;
  void leave() noexcept;
  void begin_turn(const char* name) noexcept;

  /// The thread that is inside. Relaxed: whoever hands the object over orders it.
  std::atomic<std::thread::id> user_{};
  bool in_turn_ = false;
};

}  // namespace offload::progress
