#include <infiniband/mlx5dv.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "core/error.hpp"
#include "core/log.hpp"
#include "rdma/mlx5/devx_fields.hpp"
#include "softcard/preload/device.hpp"
#include "softcard/preload/objects.hpp"

/// libmlx5's functions that libdpu-gpu-offload-doca and lib/rdma/mlx5 call.
using offload::core::Error;
using offload::rdma::mlx5::DevxCommand;
using offload::rdma::mlx5::DevxOpcode;
using offload::rdma::mlx5::ShortDevxCommand;
using offload::softcard::Device;
using offload::softcard::guarded;
using offload::softcard::guarded_number;

namespace mlx5 = offload::rdma::mlx5;

/// libmlx5 has the definition to itself.
struct mlx5dv_devx_obj {
  DevxOpcode made_by;
  std::uint32_t number;
};

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kRegisterOfSends = 0x800;  ///< MLX5_BF_OFFSET

struct alignas(kPage) Page {
  std::byte bytes[kPage];
};

struct Registers {
  mlx5dv_devx_uar native{};  // first: a pointer to it is one to this
  Page page{};
};

struct AddressHandle {
  ibv_ah native{};  // first
  mlx5_wqe_av vector{};
};

std::uint16_t word_at(const void* message, std::size_t byte) {
  const auto* const bytes = static_cast<const std::uint8_t*>(message);
  return static_cast<std::uint16_t>(bytes[byte] << 8 | bytes[byte + 1]);
}

void set(void* message, mlx5::DevxField field, std::uint32_t value) {
  auto* const words = static_cast<std::uint32_t*>(message);
  words[field.first / 32] |=
      offload::kernels::rdma::big_endian(value << (32 - field.width - field.first % 32));
}

DevxOpcode opcode_of(const void* command) {
  return static_cast<DevxOpcode>(word_at(command, 0));
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

bool mlx5dv_is_supported(ibv_device*) {
  return true;
}

int mlx5dv_init_obj(mlx5dv_obj* object, std::uint64_t kind) {
  if ((kind & ~std::uint64_t{MLX5DV_OBJ_PD | MLX5DV_OBJ_AH}) != 0) return EOPNOTSUPP;
  if ((kind & MLX5DV_OBJ_PD) != 0) *object->pd.out = {object->pd.in->handle, 0};
  if ((kind & MLX5DV_OBJ_AH) != 0) {
    *object->ah.out = {&reinterpret_cast<AddressHandle*>(object->ah.in)->vector, 0};
  }
  return 0;
}

ibv_ah* ibv_create_ah(ibv_pd* pd, ibv_ah_attr* path) {
  if (path->is_global == 0) {
    errno = EINVAL;
    return nullptr;
  }
  auto made = std::make_unique<AddressHandle>();
  made->native.context = pd->context;
  made->native.pd = pd;
  std::memcpy(made->vector.rgid, path->grh.dgid.raw, sizeof made->vector.rgid);
  constexpr std::uint8_t kLocal = 2;  // an address that no vendor has
  made->vector.rmac[0] = kLocal;
  std::memcpy(made->vector.rmac + 2, path->grh.dgid.raw + 12, 4);
  return &made.release()->native;
}
int ibv_destroy_ah(ibv_ah* ah) {
  delete reinterpret_cast<AddressHandle*>(ah);
  return 0;
}

mlx5dv_devx_umem* mlx5dv_devx_umem_reg_ex(ibv_context*, mlx5dv_devx_umem_in* in) {
  if ((in->comp_mask & MLX5DV_UMEM_MASK_DMABUF) != 0) {
    errno = EOPNOTSUPP;  // nothing tells the address of a GPU's memory by its dma-buf
    return nullptr;
  }
  return guarded(
      [&] { return new mlx5dv_devx_umem{Device::instance().add_space(in->addr, in->size)}; });
}
mlx5dv_devx_umem* mlx5dv_devx_umem_reg(ibv_context* context, void* address, std::size_t size,
                                       std::uint32_t access) {
  mlx5dv_devx_umem_in in{};
  in.addr = address;
  in.size = size;
  in.access = access;
  return mlx5dv_devx_umem_reg_ex(context, &in);
}
int mlx5dv_devx_umem_dereg(mlx5dv_devx_umem* umem) {
  Device::instance().remove_space(umem->umem_id);
  delete umem;
  return 0;
}

mlx5dv_devx_uar* mlx5dv_devx_alloc_uar(ibv_context*, std::uint32_t) {
  return guarded([&] {
    auto made = std::make_unique<Registers>();
    made->native.base_addr = made->page.bytes;
    made->native.reg_addr = made->page.bytes + kRegisterOfSends;
    made->native.page_id = Device::instance().add_registers(made->page.bytes);
    return &made.release()->native;
  });
}
void mlx5dv_devx_free_uar(mlx5dv_devx_uar* uar) {
  Device::instance().remove_registers(uar->page_id);
  delete reinterpret_cast<Registers*>(uar);
}

int mlx5dv_devx_query_eqn(ibv_context*, std::uint32_t, std::uint32_t* number) {
  *number = 0;
  return 0;
}

int mlx5dv_devx_general_cmd(ibv_context*, const void* in, std::size_t in_size, void* out,
                            std::size_t out_size) {
  if (in_size < ShortDevxCommand::size() || opcode_of(in) != DevxOpcode::query_abilities) {
    return EOPNOTSUPP;
  }
  constexpr std::size_t kMode = 6;
  constexpr unsigned kSecondGroup = 0x20;
  std::memset(out, 0, out_size);
  const unsigned group = word_at(in, kMode) >> 1U;
  if (group == 0) {
    set(out, mlx5::kAbilities + mlx5::kCrossChannel, 1);
    set(out, mlx5::kAbilities + mlx5::kWaitOnTime, 1);
  }
  if (group == kSecondGroup) set(out, mlx5::kAbilities + mlx5::kWithoutRecord, 1);
  return 0;
}

mlx5dv_devx_obj* mlx5dv_devx_obj_create(ibv_context*, const void* in, std::size_t in_size,
                                        void* out, std::size_t out_size) {
  const DevxOpcode opcode = opcode_of(in);
  const bool makes = opcode == DevxOpcode::create_cq || opcode == DevxOpcode::create_qp;
  if (!makes || in_size < DevxCommand::size()) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  return guarded([&] {
    const std::uint32_t number = opcode == DevxOpcode::create_cq
                                     ? Device::instance().make_completions(in)
                                     : Device::instance().make_pair(in);
    std::memset(out, 0, out_size);
    set(out, mlx5::kNumber, number);
    return new mlx5dv_devx_obj{opcode, number};
  });
}
int mlx5dv_devx_obj_modify(mlx5dv_devx_obj* object, const void* in, std::size_t in_size, void* out,
                           std::size_t out_size) {
  const DevxOpcode opcode = opcode_of(in);
  const bool is_short = opcode == DevxOpcode::to_error || opcode == DevxOpcode::to_reset;
  if (in_size < (is_short ? ShortDevxCommand::size() : DevxCommand::size())) return EINVAL;
  std::memset(out, 0, out_size);
  return guarded_number([&] { Device::instance().change_pair(object->number, in); });
}
int mlx5dv_devx_obj_destroy(mlx5dv_devx_obj* object) {
  if (object->made_by == DevxOpcode::create_cq) {
    Device::instance().remove_completions(object->number);
  } else {
    Device::instance().remove_pair(object->number);
  }
  delete object;
  return 0;
}
}
#pragma GCC visibility pop
