#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "apps/server/io_thread.hpp"
#include "tests/fuzz/state/script.hpp"
#include "tests/fuzz/state/slot_worker.hpp"

namespace offload::fuzz {

/// The workers of an I/O thread; the script makes them attach, answer, lie and detach. They are
/// counted from 1, like their ids.
class ScriptedWorkers {
 public:
  static std::shared_ptr<comch::WorkerChannel> make_channel(comch::WorkerId id,
                                                            channel::Wakeup wakeup,
                                                            std::uint32_t depth);

  /// `first`: the thread's first channel. `before_loss` is called before a worker is lost.
  ScriptedWorkers(server::IoThread& thread, std::shared_ptr<comch::WorkerChannel> first,
                  std::function<void()> before_loss);

  /// Adds a worker, unless there are kMost. `broken`: its connection does not reach it.
  void add(bool broken = false) {
    if (workers_.size() < kMost) add_another(broken);
  }
  void lose(comch::WorkerId id);
  /// Gives the requests to this worker; 0: to none.
  void select(comch::WorkerId id);

  /// Has a worker answer `count` slots; 255: all.
  void answer(std::size_t index, unsigned count);
  /// Has a worker lie. Operands: kind, u16 length, count, bytes.
  void lie(std::size_t index, Script& script);
  /// Has the workers that have never lied answer all requests. Returns whether there were any.
  bool serve_all();

  /// Returns whether answers may be lies.
  [[nodiscard]] bool have_liar() const;
  [[nodiscard]] int losses() const noexcept { return losses_; }
  /// Gives the requests to a reliable worker, and loses all others.
  void replace_bad();

 private:
  static constexpr std::size_t kMost = 6;

  struct Worker {
    SlotWorker slots;
    bool broken = false;  ///< cannot be reached
    bool lost = false;
    bool lies = false;  ///< it has lied at least once
  };

  void add_another(bool broken);

  server::IoThread* thread_;
  std::function<void()> before_loss_;
  std::vector<Worker> workers_;
  comch::WorkerId selected_ = 0;
  int losses_ = 0;
};

}  // namespace offload::fuzz
