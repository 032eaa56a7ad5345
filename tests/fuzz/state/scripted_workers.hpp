#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "apps/server/io_thread.hpp"
#include "tests/fuzz/state/script.hpp"
#include "tests/fuzz/state/slot_worker.hpp"

namespace offload::fuzz {

/// The workers of an I/O thread, as the script has them come, answer, lie and go. They are counted
/// from 1, as their ids.
class ScriptedWorkers {
 public:
  static std::shared_ptr<comch::WorkerChannel> make_channel(comch::WorkerId id,
                                                            channel::Wakeup wakeup,
                                                            std::uint32_t depth);

  /// `first`: the thread's first channel. `before_loss` is called before a worker is lost.
  ScriptedWorkers(server::IoThread& thread, std::shared_ptr<comch::WorkerChannel> first,
                  std::function<void()> before_loss);

  /// `broken`: a line to one that cannot be reached. Nothing once there are kMost.
  void add(bool broken = false) {
    if (workers_.size() < kMost) add_another(broken);
  }
  void lose(comch::WorkerId id);
  /// It gets the requests; 0: none.
  void select(comch::WorkerId id);

  /// So many slots; 255: all.
  void answer(std::size_t index, unsigned count);
  /// Operands: kind, u16 length, count, bytes.
  void lie(std::size_t index, Script& script);
  /// Those that have never lied answer all. Returns whether there was anything.
  bool serve_all();

  /// Whether answers may be lies.
  [[nodiscard]] bool have_liar() const;
  [[nodiscard]] int losses() const noexcept { return losses_; }
  /// One that can be relied on gets the requests, and no other is left.
  void replace_bad();

 private:
  static constexpr std::size_t kMost = 6;

  struct Worker {
    SlotWorker slots;
    bool broken = false;  ///< cannot be reached
    bool lost = false;
    bool lies = false;  ///< has ever
  };

  void add_another(bool broken);

  server::IoThread* thread_;
  std::function<void()> before_loss_;
  std::vector<Worker> workers_;
  comch::WorkerId selected_ = 0;
  int losses_ = 0;
};

}  // namespace offload::fuzz
