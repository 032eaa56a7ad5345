#include "softcard/card/completions.hpp"

namespace offload::rdma::model {
namespace {

using kernels::rdma::big_endian;

/// Positions of a completion queue have 24 bits in its owner's records.
constexpr std::uint32_t kPositionBits = 24;
constexpr std::uint32_t kPositionMask = (1U << kPositionBits) - 1;
/// In the record of a request for an event (MLX5_CQ_DB_REQ_NOT_SOL): solicited ones only.
constexpr std::uint32_t kSolicitedOnly = 1U << kPositionBits;

}  // namespace

bool Completions::write(const kernels::rdma::Completion& completion, bool solicited) {
  if (in_error_) return false;
  if (options_.checks_overrun) {
    // With acquire: the owner has read the place before it gave it back.
    const std::uint32_t read = big_endian(__atomic_load_n(queue_.record, __ATOMIC_ACQUIRE));
    const auto held = static_cast<std::uint32_t>(writer_.written() - read) & kPositionMask;
    if (held >= 1U << queue_.log2) {
      in_error_ = true;
      return false;
    }
  }
  writer_.write(completion);
  if (solicited || completion.is_error()) solicited_end_ = writer_.written();
  return true;
}

void Completions::rung() noexcept {
  if (options_.armed == nullptr) return;
  const std::uint32_t request = __atomic_exchange_n(options_.armed, kNoRequest, __ATOMIC_ACQ_REL);
  if (request == kNoRequest) return;
  const std::uint32_t record = big_endian(request);
  armed_ = (record & kSolicitedOnly) != 0 ? Armed::solicited : Armed::any;
  const std::uint64_t end = writer_.written();
  const auto behind = static_cast<std::uint32_t>(end - record) & kPositionMask;
  armed_at_ = end - behind;
}

bool Completions::has_event() noexcept {
  if (armed_ == Armed::no) return false;
  const std::uint64_t end = armed_ == Armed::any ? writer_.written() : solicited_end_;
  if (end <= armed_at_) return false;
  armed_ = Armed::no;
  return true;
}

}  // namespace offload::rdma::model
