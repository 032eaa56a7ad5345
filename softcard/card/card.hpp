#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "rdma/queues/entry_reader.hpp"
#include "rdma/queues/queue_memory.hpp"
#include "softcard/card/completions.hpp"
#include "softcard/card/events.hpp"
#include "softcard/card/exchange.hpp"
#include "softcard/card/flow_rules.hpp"
#include "softcard/card/mirror.hpp"
#include "softcard/card/receives.hpp"
#include "softcard/card/regions.hpp"
#include "softcard/card/request.hpp"

namespace offload::rdma::model {

using Clock = std::chrono::steady_clock;

/// A queue pair whose owner is a process, as that has made it.
struct PairLayout {
  std::uint32_t number = 0;
  kernels::rdma::SendRing sends{};  ///< no blocks: it sends nothing
  std::uint32_t* send_record = nullptr;
  ReceiveLayout receives{};           ///< none: count is 0
  std::uint32_t shared_receives = 0;  ///< their number; 0: it has its own
  std::uint32_t sent = 0;             ///< numbers of its completion queues
  std::uint32_t came = 0;
  std::uint32_t domain = 0;
  bool is_unreliable = false;  ///< its peer acknowledges nothing
  bool has_record = true;      ///< for its sends; else a doorbell says how far there are sends
  /// Its entries may wait for completions of other queues ("cross-channel master").
  bool may_wait = true;
  EntryFormat format = EntryFormat::rdma;
  /// For raw packets. Frames of queue pairs of the same owner get to this one only if it
  /// `receives_own`.
  std::uint32_t owner = 0;
  bool receives_own = false;
};

/// The queue pairs that a register for sends belongs to: those with a record of their sends, or
/// those without (PairLayout::has_record).
enum class SendRegister : std::uint8_t { with_record, without_record };

/// A change of a queue pair: the fields that have a value.
struct PairChange {
  std::optional<State> state{};
  std::optional<RemoteRights> rights{};
  std::optional<std::uint32_t> peer{};
  std::optional<std::uint32_t> remote{};  ///< IPv4 address of the peer's card; 0: this one
  std::optional<std::uint32_t> send_psn{};
  std::optional<std::uint32_t> receive_psn{};
  std::optional<std::uint8_t> retries{};
  std::optional<std::uint8_t> rnr_retries{};  ///< 7: for ever
  std::optional<std::uint8_t> timeout{};      ///< 4.096 µs * 2^timeout; 0: none
  std::optional<std::uint8_t> rnr_timer{};
};

/// A card in memory: carries out the entries of its queues, between these queues themselves, and is
/// strict about the entries, as our own writers make them; with Reading::as_card it accepts the
/// entries that a card accepts from others. It stands for an mlx5 card in tests and benchmarks, and
/// is what the program `softcard` runs behind the vendor's library; it cannot show timing, and the
/// reordering of a PCIe device.
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

  /// The same objects, one by one and under numbers that the caller chooses, each of which can be
  /// removed: of owners in other processes. A queue pair is connected by changes, and its doorbell
  /// is rung by ring().
  void add_memory(std::uint32_t key, const Region& region) { regions_.add(key, region); }
  /// Writes that are not in memory yet are placed first.
  void remove_memory(std::uint32_t key);
  Completions& add_completions(const kernels::rdma::CompletionQueue& queue,
                               const Completions::Options& options);
  void remove_completions(std::uint32_t number) { completions_.erase(number); }
  Receives& add_receives(std::uint32_t number, const ReceiveLayout& layout);
  void remove_receives(std::uint32_t number) { shared_.erase(number); }
  void add(const PairLayout& layout);
  /// Throws Error: invalid_value if the queue pair is in error and the new state is neither that
  /// nor reset; nothing is changed then.
  void change(std::uint32_t number, const PairChange& change);
  void remove(std::uint32_t number);
  /// `doorbell`: what was written to a register of kind `where`. Returns false, and rings nothing,
  /// if this queue pair does not belong to such a register.
  bool ring(std::uint32_t number, std::uint64_t doorbell, SendRegister where);
  /// Reads the record of a queue pair that has one: another queue pair's doorbell may have
  /// overwritten its own.
  void ring(std::uint32_t number);
  /// Returns how far a queue pair has come, to find the reason why it waits.
  [[nodiscard]] std::string describe(std::uint32_t number) const;
  void set_events(Events* events) noexcept { events_ = events; }
  /// For peers on other cards.
  void set_wire(Wire* wire) noexcept { wire_ = wire; }
  /// For memory that is a copy: of regions, and of queues that were made by their layout.
  void set_mirror(Mirror* mirror) noexcept { mirror_ = mirror; }
  /// Takes a datagram of the wire.
  void receive(std::uint32_t address, std::span<const std::byte> datagram);

  /// The rules by which frames get to queue pairs for raw packets that were made by their layout.
  /// A frame that no rule matches is dropped, and so is one whose queue has no receive.
  [[nodiscard]] FlowRules& flow_rules() noexcept { return flow_rules_; }
  /// Sets the port's Ethernet address: its own frames for this address come back.
  void set_port_address(const std::array<std::uint8_t, 6>& address) { port_address_ = address; }
  /// Takes a frame of the wire.
  void receive_frame(std::span<const std::byte> frame);

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

  /// From now on the RDMA writes of a queue pair come into memory in two parts each, in any order,
  /// one in each turn, selected by `seed`, as adaptive routing allows it. Data that another
  /// operation or a completion reports is there. For a card that is not rude.
  void set_unordered(std::uint32_t seed) { unordered_.emplace(seed); }

  /// From now on completions are written some turns later, selected by `seed`, each queue's in its
  /// order.
  void set_late_completions(std::uint32_t seed) { late_.emplace(seed); }

  /// Describes the first entry, doorbell or record that violated the format; empty: none did.
  [[nodiscard]] const std::string& fault() const noexcept { return fault_; }

 private:
  using Syndrome = kernels::rdma::Syndrome;

  /// An RDMA write that is not in memory yet.
  struct Write {
    std::vector<std::byte> bytes;
    std::span<std::byte> to;
  };

  struct QueuePair {
    std::uint32_t number;
    std::unique_ptr<std::uint64_t> rung;  ///< the doorbell of ring()
    kernels::rdma::SendQueue sends;
    EntryFormat format;
    EntryReader entries;
    std::unique_ptr<Receives> own;
    ReceiveLayout own_layout;
    Receives* receives;  ///< its own or shared ones
    std::uint32_t shared = 0;
    Completions* sent;
    Completions* came;
    std::uint32_t domain = 0;
    RemoteRights rights{true, true, true};
    State state = State::sending;
    std::uint32_t peer = 0;  ///< its number
    bool is_unreliable = false;
    bool may_wait = true;
    bool is_owned = false;  ///< by a process: it was made by its layout
    std::uint32_t next_psn = 0;
    std::uint32_t expected_psn = 0;
    std::uint32_t least_inline = 0;
    std::uint32_t owner = 0;  ///< of a queue pair for raw packets
    bool receives_own = false;
    bool has_written_fault = false;

    /// The time for which the peer may be away; none: for ever.
    std::optional<Clock::duration> patience = Clock::duration::zero();
    std::uint8_t retries = 0;
    std::uint8_t timeout = 0;
    std::uint8_t rnr_retries = 7;
    std::uint8_t rnr_timer = 0;
    std::uint32_t rnr_tries = 0;
    Clock::time_point not_before{};
    std::optional<Clock::time_point> away_since{};

    std::deque<kernels::rdma::Completion> late_sent{};  ///< behind the writes below
    std::vector<Write> unplaced{};
    std::optional<std::uint32_t> remote{};
    std::optional<Exchange> exchange{};
    Arrival arrival{};
    std::optional<Receive> filling{};  ///< by a message whose parts come in
    bool is_placing = false;           ///< the next entry's write is among `unplaced`, or was
  };

  /// The result of an operation.
  enum class Result : std::uint8_t { done, waits, failed };

  std::uint32_t add(const QueuePairMemory& memory, EntryFormat format);
  QueuePair& pair_at(std::uint32_t number);
  QueuePair* sender_at(std::uint32_t number);
  void ring(QueuePair& pair, std::uint64_t doorbell);
  bool progress_rudely();
  bool place_one(QueuePair& pair);
  void place_all();
  bool write_late();
  void write_oldest_late(Completions& to);
  bool serve(QueuePair& pair);
  bool flush_receives(QueuePair& pair);
  Result carry_out(QueuePair& pair, const Entry& entry, Syndrome& syndrome, std::uint32_t& bytes);
  Result ask_peer(QueuePair& pair, const Entry& entry, Syndrome& syndrome, std::uint32_t& bytes);
  Result without_peer(QueuePair& pair, Syndrome& syndrome);
  Result without_receive(QueuePair& pair, std::uint8_t rnr_timer, Syndrome& syndrome) const;
  static std::uint64_t length_of(const Entry& entry, std::size_t gathered);
  Result ask_remote(QueuePair& pair, const Entry& entry, const Request& request,
                    Syndrome& syndrome);
  void send_parts(QueuePair& pair, Exchange& exchange);
  void send_part(const QueuePair& pair, const Exchange& exchange, std::uint32_t part);
  void take_answer(QueuePair& pair, const DatagramHeader& header, std::span<const std::byte> bytes);
  void take_request(QueuePair& pair, const DatagramHeader& header,
                    std::span<const std::byte> bytes);
  Result await(const QueuePair& pair, const kernels::rdma::Awaited& awaited,
               Syndrome& syndrome) const;
  Result send_frame(QueuePair& pair, const Entry& entry, Syndrome& syndrome);
  void transmit(const QueuePair& from, std::span<const std::byte> frame);
  void steer(std::span<const std::byte> frame, const QueuePair* from);
  Result deliver_frame(QueuePair& peer, std::span<const std::byte> frame);

  /// These functions act for the peer of `from`, which is null on another card.
  Answer respond_to_part(QueuePair& peer, const DatagramHeader& header, Request& request,
                         std::vector<std::byte>& result);
  Answer respond(QueuePair& peer, QueuePair* from, const Request& request,
                 std::vector<std::byte>& result);
  static bool is_duplicate(const QueuePair& peer, std::uint32_t psn);
  Answer answer_duplicate(QueuePair& peer, const Request& request, std::vector<std::byte>& result);
  Answer respond_to_memory(QueuePair& peer, QueuePair* from, const Request& request,
                           std::vector<std::byte>& result);
  void place_later(QueuePair& from, std::span<const std::byte> bytes, std::span<std::byte> to);
  Answer deliver(QueuePair& peer, const Request& request);
  Syndrome fill(QueuePair& peer, const Receive& receive, const Request& request);

  template <class T>
  void fetch(std::span<T> copy) const {
    if (mirror_ != nullptr && !copy.empty()) mirror_->fetch(std::as_bytes(copy));
  }
  template <class T>
  void store(std::span<T> copy) const {
    if (mirror_ != nullptr && !copy.empty()) mirror_->store(std::as_bytes(copy));
  }
  void fetch_entries(const QueuePair& pair, std::uint64_t from) const;
  std::uint32_t look_for_receives(Receives& receives) const;

  Syndrome gather(const QueuePair& pair, const Entry& entry, std::vector<std::byte>& message) const;
  Syndrome scatter(QueuePair& pair, std::span<const kernels::rdma::LocalBuffer> buffers,
                   std::uint64_t offset, std::span<const std::byte> message);
  void copy(std::span<const std::byte> from, std::span<std::byte> to);
  void copy_to_copy(std::span<const std::byte> from, std::span<std::byte> to);
  static void copy_rudely(std::span<const std::byte> from, std::span<std::byte> to);
  void complete_sent(QueuePair& pair, const kernels::rdma::Completion& completion);
  void complete(QueuePair& pair, Completions& to, const kernels::rdma::Completion& completion,
                bool solicited);
  void write(QueuePair& pair, Completions& to, const kernels::rdma::Completion& completion,
             bool solicited);
  void enter_error(QueuePair& pair, PairEvent event);
  void note_fault(QueuePair& pair);

  Reading reading_ = Reading::strict;
  Regions regions_;
  std::uint32_t keys_ = 0;
  std::map<std::uint32_t, Completions> completions_;
  std::map<std::uint32_t, Receives> shared_;
  std::map<std::uint32_t, QueuePair> pairs_;
  std::vector<std::byte> message_;  // of the operation that is carried out
  Events* events_ = nullptr;
  Wire* wire_ = nullptr;
  Mirror* mirror_ = nullptr;
  bool fail_without_receive_ = false;
  std::uint64_t dropped_ = 0;
  FlowRules flow_rules_;
  std::array<std::uint8_t, 6> port_address_{};
  std::optional<std::minstd_rand> rude_;
  std::optional<std::minstd_rand> unordered_;
  std::optional<std::minstd_rand> late_;
  std::string fault_;
};

}  // namespace offload::rdma::model
