#include "doca/verbs/external.hpp"

#include <bit>
#include <cerrno>
#include <string>
#include <utility>

#include "core/log.hpp"
#include "doca/guard.hpp"
#include "doca/include/doca_umem.h"
#include "doca/mmap.hpp"
#include "doca/rdma/rdma_device.hpp"

namespace offload::doca {
namespace {

namespace wire = kernels::rdma;
using core::Error;
using core::ErrorCode;
using rdma::mlx5::CardSpace;
using rdma::mlx5::DevxQueuePair;
using rdma::mlx5::kRingAlignment;
using rdma::mlx5::QueueSpace;

/// The bytes of the record of a queue of completions, and of the two of a queue pair.
constexpr std::size_t kRecordBytes = 8;
/// The fewest receives: the sends behind them begin at a block.
constexpr std::uint32_t kFewestReceives = wire::kBlockBytes / sizeof(wire::Segment);

/// Returns the UMEM if it is one of the context that has room. Throws Error.
doca_umem& umem_of(const doca_verbs_context& context, doca_umem* umem, std::uint64_t offset,
                   std::size_t bytes, const char* what) {
  if (umem == nullptr) reject(std::string(what) + " with an external data path need a UMEM");
  if (umem->native != context.device.get()) reject("a UMEM of another context");
  if (offset > umem->size || bytes > umem->size - offset) {
    reject(std::string(what) + " need " + std::to_string(bytes) + " bytes from offset " +
           std::to_string(offset) + " on; the UMEM has " + std::to_string(umem->size));
  }
  return *umem;
}

std::uint32_t log2_of(std::uint32_t count, const char* what) {
  if (!std::has_single_bit(count) || count > rdma::kMostEntries) {
    reject("invalid number " + std::to_string(count) + " of " + what +
           " with an external data path; allowed are powers of two up to " +
           std::to_string(rdma::kMostEntries));
  }
  return static_cast<std::uint32_t>(std::countr_zero(count));
}

void require_page(std::uint64_t offset, const char* what) {
  if (offset % kRingAlignment != 0) {
    reject(std::string(what) + " must begin at a multiple of " + std::to_string(kRingAlignment) +
           " bytes in the UMEM");
  }
}

rdma::QueueSizes ring_sizes_of(const doca_verbs_qp_init_attr& from) {
  static_cast<void>(log2_of(from.max_send_wr, "sends"));
  static_cast<void>(log2_of(from.max_recv_wr, "receives"));
  if (from.max_recv_wr < kFewestReceives) reject("an external data path needs 4 receives");
  if (from.max_send_sge > 1 || from.max_recv_sge > 1 || from.max_inline_data != 0) {
    throw Error(ErrorCode::not_supported,
                "with an external data path, entries of several buffers and inline data");
  }
  return {from.max_send_wr, from.max_recv_wr};
}

std::size_t bytes_of(const rdma::QueueSizes& sizes) {
  return sizes.receives * sizeof(wire::Segment) +
         std::size_t{sizes.send_blocks} * wire::kBlockBytes;
}

doca_uar& required_uar(const doca_verbs_context& context, doca_uar* uar) {
  if (uar == nullptr) reject("a queue pair with an external data path needs an external UAR");
  return uar_of(context, uar);
}

template <class T>
T* address_at(void* base, std::uint64_t offset) noexcept {
  return reinterpret_cast<T*>(static_cast<std::byte*>(base) + offset);
}

/// Makes memory known to the card: by the dma-buf of the GPU that has it, or by its address, which
/// nvidia-peermem knows, if there is no dma-buf or the device takes none.
CardSpace make_space(const rdma::DeviceContext& device, doca_gpu* gpu, void* address,
                     std::size_t size) {
  core::Fd dma_buf;
  if (gpu != nullptr) dma_buf = gpu->export_dma_buf(address, size);
  if (dma_buf.valid()) {
    try {
      return {device, {address, size, dma_buf.get()}};  // the card keeps the memory
    } catch (const Error& error) {
      core::log_info("registers memory for queues by its address: {}", error.what());
    }
  }
  return {device, {address, size}};
}

}  // namespace

ExternalCq::ExternalCq(doca_verbs_context& of, const doca_verbs_cq_attr& attributes)
    : doca_verbs_cq(of),
      umem_(umem_of(of, attributes.umem, attributes.umem_offset,
                    std::size_t{attributes.size} * sizeof(wire::Cqe) + kRecordBytes,
                    "completions")),
      place_{attributes.umem_offset,
             attributes.umem_offset + std::size_t{attributes.size} * sizeof(wire::Cqe)},
      log2_(log2_of(attributes.size, "completions")) {
  require_page(place_.entries, "completions");
  if (attributes.uar != nullptr) {
    uar_.emplace(uar_of(of, attributes.uar));
  } else {
    own_registers_.emplace(of.device);
  }
  native_ =
      make_card_completions(of.device, umem_->space, uar_ ? (*uar_)->registers : *own_registers_,
                            place_, log2_, attributes.overrun == 0);
}

wire::CompletionQueue ExternalCq::queue() const noexcept {
  return {address_at<wire::Cqe>(umem_->address, place_.entries), log2_,
          address_at<std::uint32_t>(umem_->address, place_.record), number()};
}

ExternalQp::ExternalQp(doca_verbs_context& of, const doca_verbs_qp_init_attr& from)
    : doca_verbs_qp(of, from),
      uar_(required_uar(of, from.uar)),
      rings_(umem_of(of, from.umem, from.umem_offset, bytes_of(ring_sizes_of(from)), "rings")),
      records_(umem_of(of, from.dbr_umem, from.dbr_umem_offset, kRecordBytes, "records")),
      sizes_(ring_sizes_of(from)),
      rings_offset_(from.umem_offset),
      records_offset_(from.dbr_umem_offset),
      has_record_(from.send_dbr_mode == DOCA_VERBS_QP_SEND_DBR_MODE_DBR_VALID) {
  require_page(rings_offset_, "rings");
  if (records_offset_ % kRecordBytes != 0) reject("records must begin at a multiple of 8 bytes");
  const DevxQueuePair::Options options{
      .has_record = has_record_,
      .registers = &uar_->registers,
      .completions =
          DevxQueuePair::CompletionNumbers{sends_queue().number(), receives_queue().number()},
      .places = DevxQueuePair::Places{rings_->space.number(), rings_offset_,
                                      records_->space.number(), records_offset_}};
  pair_.emplace(of.device, from.pd->domain, sizes_, QueueSpace{}, options);
  if (from.is_master != 0 && !pair_->waits_for_completions()) {
    throw Error(ErrorCode::not_supported, "waits for completions on " + of.device.name());
  }
}

rdma::QueuePairMemory ExternalQp::queues(void* rings) const noexcept {
  rdma::QueuePairMemory queues{};
  auto* const records = address_at<std::uint32_t>(records_->address, records_offset_);
  queues.receive = {address_at<wire::Segment>(rings, rings_offset_), sizes_.receives,
                    records + MLX5_RCV_DBR, receives_queue().queue()};
  queues.send.ring = {queues.receive.ring + sizes_.receives, sizes_.send_blocks};
  queues.send.number = number();
  queues.send.record = records + MLX5_SND_DBR;
  queues.send.doorbell = pair_->card_register();
  queues.send.completions = sends_queue().queue();
  queues.send.has_record = has_record_;
  return queues;
}

std::unique_ptr<doca_verbs_cq> make_external_cq(doca_verbs_context& context,
                                                const doca_verbs_cq_attr& attributes) {
  return std::make_unique<ExternalCq>(context, attributes);
}

std::unique_ptr<doca_verbs_qp> make_external_qp(doca_verbs_context& context,
                                                const doca_verbs_qp_init_attr& attributes) {
  return std::make_unique<ExternalQp>(context, attributes);
}

}  // namespace offload::doca

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace

doca_umem::doca_umem(doca_dev& of, doca_gpu* owner, void* first, std::size_t bytes)
    : device(of),
      native(of.rdma().device.get()),
      address(static_cast<std::byte*>(first)),
      size(bytes),
      space(make_space(of.rdma().device, owner, first, bytes)) {
  if (owner != nullptr) gpu.emplace(*owner);
}

namespace {

doca_error_t create_umem(const char* call, doca_gpu* gpu, doca_dev* dev, void* address, size_t size,
                         uint32_t access_flags, doca_umem** umem) {
  if (any_null(dev, address, umem) || size == 0 || (access_flags & ~kAllAccessFlags) != 0) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  if (!dev->is_rdma()) return DOCA_ERROR_NOT_SUPPORTED;
  return guarded(call, [&] { *umem = new doca_umem(*dev, gpu, address, size); });
}

}  // namespace

doca_error_t doca_umem_create(doca_dev* dev, void* address, size_t size, uint32_t access_flags,
                              doca_umem** umem) {
  return create_umem(__func__, nullptr, dev, address, size, access_flags, umem);
}

doca_error_t doca_umem_gpu_create(doca_gpu* gpu_dev, doca_dev* dev, void* address, size_t size,
                                  uint32_t access_flags, doca_umem** umem) {
  if (gpu_dev == nullptr) return DOCA_ERROR_INVALID_VALUE;
  return create_umem(__func__, gpu_dev, dev, address, size, access_flags, umem);
}

doca_error_t doca_umem_destroy(doca_umem* umem) {
  if (umem == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (is_used(*umem)) return DOCA_ERROR_IN_USE;
  delete umem;
  return DOCA_SUCCESS;
}
