#include "rdma/mlx5/devx.hpp"

#include <cerrno>
#include <limits>
#include <string>

#include "rdma/mlx5/card.hpp"
#include "rdma/mlx5/devx_fields.hpp"

namespace offload::rdma::mlx5 {
namespace {

/// Groups of abilities, as the mode of the query; the lowest bit asks for the current values.
constexpr std::uint32_t kGeneral = 0 << 1 | 1;
constexpr std::uint32_t kSecondGroup = 0x20 << 1 | 1;

constexpr std::uint32_t kWithoutRecordRegister = 0x600;

using AbilitiesAnswer = DevxMessage<4112>;

std::uint32_t native_kind_of(RegisterKind kind) noexcept {
  switch (kind) {
    case RegisterKind::shared: break;
    case RegisterKind::dedicated: return 1U << 31;  // MLX5DV_UAR_ALLOC_TYPE_NC_DEDICATED
    case RegisterKind::combining: return MLX5DV_UAR_ALLOC_TYPE_BF;
  }
  return MLX5DV_UAR_ALLOC_TYPE_NC;
}

AbilitiesAnswer ask(const DeviceContext& device, std::uint32_t group) {
  ShortDevxCommand command;
  command.set(kOpcode, static_cast<std::uint16_t>(DevxOpcode::query_abilities));
  command.set(kMode, group);
  AbilitiesAnswer answer;
  check(mlx5dv_devx_general_cmd(device.get(), command.data(), command.size(), answer.data(),
                                answer.size()),
        "ask " + device.name() + " for its abilities by devx");
  return answer;
}

}  // namespace

CardAbilities query_abilities(const DeviceContext& device) {
  require_card(device);
  const AbilitiesAnswer general = ask(device, kGeneral);
  const AbilitiesAnswer second = ask(device, kSecondGroup);
  return {general.get(kAbilities + kCrossChannel) != 0, general.get(kAbilities + kWaitOnTime) != 0,
          second.get(kAbilities + kWithoutRecord) != 0};
}

CardSpace::CardSpace(const DeviceContext& device, const QueueSpace& space) {
  require_card(device);
  mlx5dv_devx_umem_in in{};
  in.addr = space.address;
  in.size = space.size;
  in.access = IBV_ACCESS_LOCAL_WRITE;
  in.pgsz_bitmap = std::numeric_limits<std::uint64_t>::max() & ~(kRingAlignment - 1);
  if (space.dma_buf != -1) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the field is an offset in the dma-buf
    in.addr = reinterpret_cast<void*>(space.offset);
    in.comp_mask = MLX5DV_UMEM_MASK_DMABUF;
    in.dmabuf_fd = space.dma_buf;
  }
  native_ = {check_pointer(mlx5dv_devx_umem_reg_ex(device.get(), &in),
                           "make memory for queues known to " + device.name()),
             "memory for queues"};
}

CardRegisters::CardRegisters(const DeviceContext& device, RegisterKind kind) {
  require_card(device);
  native_ = {check_pointer(mlx5dv_devx_alloc_uar(device.get(), native_kind_of(kind)),
                           "allocate registers of " + device.name()),
             "registers"};
}

int CardRegisters::free(mlx5dv_devx_uar* registers) {
  mlx5dv_devx_free_uar(registers);
  return 0;
}

std::uint64_t* CardRegisters::doorbell(bool has_record) const noexcept {
  if (has_record) return static_cast<std::uint64_t*>(native_->reg_addr);
  auto* const page = static_cast<std::byte*>(native_->base_addr);
  return reinterpret_cast<std::uint64_t*>(page + kWithoutRecordRegister);
}

CardObject::CardObject(const DeviceContext& device, DevxCommand& command, DevxOpcode opcode,
                       const char* what) {
  DevxAnswer answer;
  command.set(kOpcode, static_cast<std::uint16_t>(opcode));
  native_ = {check_pointer(mlx5dv_devx_obj_create(device.get(), command.data(), command.size(),
                                                  answer.data(), answer.size()),
                           "make " + std::string(what) + " by devx"),
             what};
  number_ = answer.get(kNumber);
}

void CardObject::change(const void* command, std::size_t size, const char* what) {
  DevxAnswer answer;
  check(mlx5dv_devx_obj_modify(native_.get(), command, size, answer.data(), answer.size()), what);
}

void mark_fresh(std::span<kernels::rdma::Cqe> entries) {
  const std::uint32_t word = kernels::rdma::big_endian(kernels::rdma::kFreshOwner);
  for (kernels::rdma::Cqe& entry : entries) entry.words[kernels::rdma::kCqeOwner] = word;
}

CardObject make_card_completions(const DeviceContext& device, const CardSpace& space,
                                 const CardRegisters& registers, const RingPlace& place,
                                 std::uint32_t log2, bool checks_overrun) {
  std::uint32_t events = 0;
  check(mlx5dv_devx_query_eqn(device.get(), 0, &events), "ask for the card's queue of events");
  DevxCommand command;
  command.set(kCqContext + kCqRecordIsInSpace, 1);
  command.set(kCqContext + kCqRecordSpace, space.number());
  command.set(kCqContext + kCqRecordPlace, place.record);
  command.set(kCqContext + kCqIgnoresOverrun, checks_overrun ? 0 : 1);
  command.set(kCqContext + kCqLogOfSize, log2);
  command.set(kCqContext + kCqRegisters, registers.number());
  command.set(kCqContext + kCqEventQueue, events);
  command.set(kEntriesPlace, place.entries);
  command.set(kEntriesSpace, space.number());
  command.set(kEntriesAreInSpace, 1);
  return {device, command, DevxOpcode::create_cq, "a completion queue"};
}

std::uint32_t number_of(const ProtectionDomain& domain) {
  mlx5dv_pd native{};
  mlx5dv_obj object{};
  object.pd = {domain.get(), &native};
  check(mlx5dv_init_obj(&object, MLX5DV_OBJ_PD), "ask libmlx5 about a protection domain");
  return native.pdn;
}

}  // namespace offload::rdma::mlx5
