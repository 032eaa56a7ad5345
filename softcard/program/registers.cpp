#include "softcard/program/registers.hpp"

#include "core/log.hpp"
#include "kernels/rdma/wqe.hpp"

namespace offload::softcard {

Registers::Registers(Area area) : area_(std::move(area)) {
  static_cast<void>(take(kEventRegister));
  for (const Place& place : kSendRegisters) static_cast<void>(take(place.at));
}

std::uint64_t Registers::take(std::size_t at) const noexcept {
  auto* const place = reinterpret_cast<std::uint64_t*>(area_.bytes.data() + at);
  // A look that finds nothing only reads.
  if (__atomic_load_n(place, __ATOMIC_RELAXED) == kNothing) return kNothing;
  // With acquire: what was written before the doorbell is read after it.
  return __atomic_exchange_n(place, kNothing, __ATOMIC_ACQ_REL);
}

bool Registers::look(model::Card& card) {
  bool changed = false;
  if (take(kEventRegister) != kNothing) {
    changed = true;
    for (model::Completions* const queue : completions_) queue->rung();
  }
  for (const Place& place : kSendRegisters) {
    const std::uint64_t doorbell = take(place.at);
    if (doorbell == kNothing) continue;
    changed = true;
    ring(card, doorbell, place.kind);
  }
  return changed;
}

void Registers::ring(model::Card& card, std::uint64_t doorbell, model::SendRegister where) const {
  const auto second = static_cast<std::uint32_t>(doorbell >> 32);
  const std::uint32_t named = kernels::rdma::big_endian(second) >> 8;
  if (!pairs_.contains(named)) {
    core::log_warning("a doorbell names queue pair {}, which does not use its page", named);
  } else if (!card.ring(named, doorbell, where)) {
    core::log_warning("a doorbell of queue pair {} is in the register of queue pairs {} a record",
                      named, where == model::SendRegister::with_record ? "with" : "without");
  }
  if (where == model::SendRegister::without_record) return;
  for (const std::uint32_t pair : pairs_) {
    if (pair != named) card.ring(pair);
  }
}

}  // namespace offload::softcard
