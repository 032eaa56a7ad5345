#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "rdma/queues/completion_writer.hpp"
#include "rdma/queues/entry_reader.hpp"
#include "rdma/queues/queue_memory.hpp"

namespace offload::rdma::model {

/// The rights of a peer to a memory; the card itself may read and write all of it.
struct RemoteRights {
  bool read = false;
  bool write = false;
  bool atomic = false;
};

/// A card in memory: carries out the entries of its queues, between these queues themselves, and is
/// strict about the entries, as our own writers make them; with Reading::as_card it accepts the
/// entries that a card accepts from others. It stands for an mlx5 card in tests and benchmarks; it
/// cannot show timing, and the reordering of a PCIe device.
///
/// An entry that violates the format is a fault of its owner: the card describes it and puts the
/// queue in error. An operation that a card would refuse is completed with its syndrome; the
/// entries that were posted behind it are flushed.
///
/// One thread, which may be another than those of the queues.
class Card {
 public:
  Card() = default;
  explicit Card(Reading reading) : reading_(reading) {}

  /// Lets the queues use `bytes`, under one key for local and remote use. They outlive the card.
  std::uint32_t register_memory(std::span<std::byte> bytes, RemoteRights rights);

  /// Takes a queue pair over; returns its number, whatever the handles have. The memory outlives
  /// the card. Throws Error: invalid_value for invalid sizes.
  std::uint32_t add(const QueuePairMemory& memory);
  /// Does the same for raw packets; the peer on the wire must be such a queue pair too.
  /// `least_inline`: the bytes of a frame that the card needs inline, like ConnectX-4; it refuses
  /// an entry with fewer.
  std::uint32_t add_raw(const QueuePairMemory& memory, std::uint32_t least_inline = 0);
  /// Numbers of a queue pair's completion queues, for entries that wait.
  static constexpr std::uint32_t completions_of_sends(std::uint32_t number) { return 2 * number; }
  static constexpr std::uint32_t completions_of_receives(std::uint32_t number) {
    return 2 * number + 1;
  }
  /// Connects two queue pairs: each gets the messages of the other.
  void connect(std::uint32_t one, std::uint32_t other);

  /// Checks each doorbell once, and carries out new entries. Returns whether there was work.
  bool progress();

  /// Sets whether a send that finds no receive fails, and a raw packet is dropped; otherwise it
  /// waits for one.
  void set_fail_without_receive(bool fail) noexcept { fail_without_receive_ = fail; }

  /// Returns the number of raw packets that were dropped.
  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_; }

  /// From now on the card behaves in the permitted ways that are hardest for an owner, selected by
  /// `seed`: queues in any order, a few entries at a time, bytes from the last to the first,
  /// completions late. It stays within the rules: a queue's entries stay in order, its completions
  /// too, and the data of an operation is there when its completion is.
  void set_rude(std::uint32_t seed) { rude_.emplace(seed); }

  /// From now on the RDMA writes of a queue pair come into memory in any order, one in each turn,
  /// selected by `seed`, as adaptive routing allows it. Data that another operation or a completion
  /// reports is there. For a card that is not rude.
  void set_unordered(std::uint32_t seed) { unordered_.emplace(seed); }

  /// Describes the first entry, doorbell or record that violated the format; empty: none did.
  [[nodiscard]] const std::string& fault() const noexcept { return fault_; }

 private:
  using Syndrome = kernels::rdma::Syndrome;

  struct Region {
    std::span<std::byte> bytes;
    RemoteRights rights;
  };

  /// An RDMA write that is not in memory yet.
  struct Write {
    std::vector<std::byte> bytes;
    std::span<std::byte> to;
  };

  struct QueuePair {
    std::uint32_t number;
    EntryReader entries;
    ReceiveReader receives;
    CompletionWriter sent;
    CompletionWriter came;
    bool is_raw = false;
    std::uint32_t least_inline = 0;
    QueuePair* peer = nullptr;
    bool in_error = false;
    std::deque<kernels::rdma::Completion> late_sent{};  ///< not written yet
    std::deque<kernels::rdma::Completion> late_came{};
    std::vector<Write> unplaced{};
    bool is_placing = false;  ///< the next entry's write is among these, or was
  };

  /// The result of an operation.
  enum class Result : std::uint8_t { done, waits, failed };

  std::uint32_t add(const QueuePairMemory& memory, EntryFormat format);
  bool progress_rudely();
  bool place_one(QueuePair& pair);
  bool serve(QueuePair& pair);
  Result carry_out(QueuePair& pair, const Entry& entry, Syndrome& syndrome, std::uint32_t& bytes);
  Result await(const kernels::rdma::Awaited& awaited, Syndrome& syndrome) const;
  Result deliver(QueuePair& pair, const Entry& entry, std::span<const std::byte> message,
                 Syndrome& syndrome);
  Result send_frame(QueuePair& pair, const Entry& entry, Syndrome& syndrome);
  Result deliver_frame(QueuePair& peer, std::span<const std::byte> frame);
  Syndrome gather(const Entry& entry, std::vector<std::byte>& message) const;
  Syndrome scatter(const Entry& entry, std::span<const std::byte> message);
  /// Returns the bytes under a key, or none.
  [[nodiscard]] std::span<std::byte> find(std::uint64_t address, std::uint64_t length,
                                          std::uint32_t key) const;
  [[nodiscard]] const Region* region_of(std::uint32_t key) const;
  void copy(std::span<const std::byte> from, std::span<std::byte> to);
  static void copy_rudely(std::span<const std::byte> from, std::span<std::byte> to);
  void complete_sent(QueuePair& pair, const kernels::rdma::Completion& completion);
  void complete_came(QueuePair& pair, const kernels::rdma::Completion& completion);
  void note_fault(QueuePair& pair);

  Reading reading_ = Reading::strict;
  std::vector<Region> regions_;
  std::deque<QueuePair> pairs_;     // they refer to each other
  std::vector<std::byte> message_;  // of the operation that is carried out
  bool fail_without_receive_ = false;
  std::uint64_t dropped_ = 0;
  std::optional<std::minstd_rand> rude_;
  std::optional<std::minstd_rand> unordered_;
  std::string fault_;
};

}  // namespace offload::rdma::model
