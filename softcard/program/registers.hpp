#pragma once

#include <array>
#include <cstdint>
#include <set>

#include "softcard/card/card.hpp"
#include "softcard/program/link.hpp"

namespace offload::softcard {

namespace model = rdma::model;

/// A page of doorbells: a register for requests for events, four for send queues with a record, two
/// of which take turns, and one for send queues without a record. A doorbell in a register of the
/// other kind is logged and rings nothing. Queues may share a register, so that a value may have
/// been overwritten by the next one; then the records of all queues of the page are looked at. A
/// value that was read is overwritten, so that the same value is seen again when it is written
/// again. One thread.
class Registers {
 public:
  explicit Registers(Area area);

  void add_pair(std::uint32_t number) { pairs_.insert(number); }
  void remove_pair(std::uint32_t number) { pairs_.erase(number); }
  void add_completions(model::Completions& completions) { completions_.insert(&completions); }
  void remove_completions(model::Completions& completions) { completions_.erase(&completions); }

  /// Looks at each register, and rings what it says. Returns whether one has changed.
  bool look(model::Card& card);

 private:
  struct Place {
    std::size_t at;
    model::SendRegister kind;
  };
  static constexpr std::array<Place, 5> kSendRegisters = {
      {{0x600, model::SendRegister::without_record},
       {0x800, model::SendRegister::with_record},
       {0x900, model::SendRegister::with_record},
       {0xa00, model::SendRegister::with_record},
       {0xb00, model::SendRegister::with_record}}};
  static constexpr std::size_t kEventRegister = 0x20;

  /// No owner writes this.
  static constexpr std::uint64_t kNothing = ~std::uint64_t{0};

  [[nodiscard]] std::uint64_t take(std::size_t at) const noexcept;
  void ring(model::Card& card, std::uint64_t doorbell, model::SendRegister where) const;

  Area area_;
  std::set<std::uint32_t> pairs_;
  std::set<model::Completions*> completions_;
};

}  // namespace offload::softcard
