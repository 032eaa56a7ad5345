#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "progress/context.hpp"
#include "rdma/emulator/translation.hpp"
#include "rdma/queues/completion_writer.hpp"
#include "rdma/queues/entry_reader.hpp"
#include "rdma/queues/queue_memory.hpp"
#include "rdma/verbs/completion_loop.hpp"
#include "rdma/verbs/protection_domain.hpp"
#include "rdma/verbs/queue_pair.hpp"

namespace offload::rdma {

/// The objects that an emulator uses, which all outlive it.
struct QueueEmulatorParts {
  const ProtectionDomain& domain;  ///< of the queue pair
  CompletionLoop& completions;     ///< with the queue that the queue pair was made with
  /// RC or UC, in INIT at least, such as that of a Connection without tasks.
  const QueuePair& queue_pair;
};

/// Emulates an mlx5 card behind the queues of one queue pair, on any device: carries out entries
/// that a kernel or a thread posts in the formats of mlx5, with ibv_post_send and ibv_post_recv,
/// and writes completions in the same format. Keys in entries are those of the device; an entry may
/// use each key of the protection domain, as on a card.
///
///     emulator.connect(engine);
///     emulator.start();          // receives are carried out from here on
///     ...                     // the queue pair gets connected
///     emulator.start_sends();
///     ...
///     emulator.stop();           // before the queue pair ends
///
/// Entries are not trusted: each index and length is checked. Otherwise they are read as a card
/// reads them (Reading::as_card), because kernels of others post here, too. An entry that violates
/// the format, that the queue pair does not support, or that fails in the network is completed with
/// its syndrome, and the queue pair is in error from then on: earlier and later entries are
/// completed as flushed. So a poller always ends: immediately, or within 2 s if the device has
/// outstanding completions. The owner gets the error as text, and stops the emulator.
///
/// Operations without verbs: a no-op and a dump are completed in order, and nothing is done for
/// them; an invalid address in a dump is not detected. An entry that waits is refused, by name.
/// Both fences wait for reads and atomics.
///
/// Used by the engine's thread only. While it runs, the engine polls it in each turn, and at least
/// every 50 us when it sleeps. After the start, only the text of an error allocates.
class QueueEmulator final : public progress::Context, CompletionHandler {
 public:
  /// Called once, in a turn of the engine, with the error that broke the queue. It may stop the
  /// emulator, and must not throw.
  using OnError = std::function<void(QueueEmulator&, const core::Error&)>;

  /// `queues`: with addresses of this process; they outlive the emulator. Throws Error:
  /// invalid_value for invalid sizes, errors of the device.
  QueueEmulator(const QueueEmulatorParts& parts, const QueuePairMemory& queues,
                OnError on_error = {}, std::string name = "emulator");
  ~QueueEmulator() override;

  /// The queue pair is connected (RTS): entries are carried out, those too that wait already.
  void start_sends() noexcept { sending_ = true; }
  /// Breaks the queue, as when the peer is known to be gone. Nothing more is sent; all that is
  /// posted is completed as flushed. Does nothing if it is broken or not running.
  void fail(const core::Error& why);

  /// Returns the error that broke the queue.
  [[nodiscard]] const std::optional<core::Error>& error() const noexcept { return error_; }

 private:
  using Syndrome = kernels::rdma::Syndrome;

  /// An entry that was read and is not completed.
  struct Underway {
    std::uint64_t position;
    std::uint32_t bytes;
    std::uint8_t blocks;
    kernels::rdma::Opcode opcode;
    bool is_signaled;
    bool is_posted;     ///< the device has it
    Syndrome syndrome;  ///< of one that the device did not get
  };
  struct Batch;

  Step on_start() override;
  Step on_stop() noexcept override;
  void on_abandon() noexcept override;
  core::Status on_submit(progress::Task&) noexcept override {
    return core::ErrorCode::not_supported;
  }
  bool on_poll(std::size_t most) override;
  core::Duration arm() override;
  void on_completion(std::uint32_t number, const ibv_wc& told) override;
  void on_queue_failed() noexcept override;

  bool carry_out_sends();
  bool take_entry(Batch& batch);
  void post(Batch& batch);
  bool carry_out_receives();

  void on_sent(std::uint32_t number, const ibv_wc& told);
  void on_received(std::uint32_t number, const ibv_wc& told);
  Underway& add_underway(std::uint64_t position, std::uint32_t blocks) noexcept;
  void complete_oldest(Syndrome syndrome, std::uint32_t vendor = 0) noexcept;
  void complete_local();

  void enter_error(const core::Error& why);
  bool flush() noexcept;
  bool flush_sends() noexcept;
  bool flush_receives() noexcept;
  void leave() noexcept;
  [[nodiscard]] std::byte* inline_room() noexcept;
  [[nodiscard]] std::size_t outstanding() const noexcept {
    return posted_sends_ + posted_receives_;
  }
  [[nodiscard]] std::string described() const;
  [[nodiscard]] std::string described(std::uint64_t position) const;

  QueueEmulatorParts parts_;
  std::uint32_t number_;  ///< of the queue, as its entries have it
  OnError on_error_;
  EntryReader entries_;
  ReceiveReader receives_;
  CompletionWriter sent_;
  CompletionWriter came_;
  QueueLimits limits_;
  std::uint32_t most_sends_;  ///< that the device has at a time
  std::uint32_t most_receives_;

  std::vector<Underway> underway_;  ///< a ring
  std::uint64_t oldest_ = 0;        ///< the first that is not completed
  std::uint64_t newest_ = 0;        ///< behind the last
  std::size_t posted_sends_ = 0;    ///< that the device has
  std::size_t posted_receives_ = 0;

  std::vector<std::byte> inline_bytes_;  ///< each entry's at its place in the ring
  Handle<ibv_mr, ibv_dereg_mr> inline_region_;
  std::uint32_t ring_mask_;

  std::uint32_t tag_ = 0;  ///< the upper half of its wr_ids
  bool sending_ = false;
  bool refused_ = false;  ///< the newest under way is one that ends the queue
  bool lost_ = false;     ///< no more completions come
  std::optional<core::Error> error_;
  bool told_ = false;  ///< the owner of it
  core::TimePoint flush_deadline_;
};

}  // namespace offload::rdma
