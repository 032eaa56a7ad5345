#include "tests/rdma/fake_devx.hpp"

#include <infiniband/mlx5dv.h>

#include <cerrno>
#include <cstring>

#include "kernels/rdma/wqe.hpp"
#include "tests/rdma/fake_verbs.hpp"

namespace offload::rdma::test {
namespace {

FakeDevx devx;

/// Returns 0, or the errno of a call that fails.
int errno_of(const char* call) {
  fake().calls.emplace_back(call);
  return fake().fail_call == call ? fake().fail_with : 0;
}

/// Returns whether the call fails, and sets errno then: for functions that return null.
bool returns_null(const char* call) {
  errno = errno_of(call);
  return errno != 0;
}

void keep_command(std::uint32_t object, const void* command, std::size_t size) {
  DevxCall call{object, size, {}};
  for (std::uint32_t place = 0; place < size; place += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, static_cast<const std::byte*>(command) + place, sizeof word);
    if (word != 0) call.words[place] = kernels::rdma::big_endian(word);
  }
  devx.calls.push_back(std::move(call));
}

void write_answer(const DevxWords& words, void* out, std::size_t size) {
  std::memset(out, 0, size);
  for (const auto& [place, value] : words) {
    const std::uint32_t word = kernels::rdma::big_endian(value);
    std::memcpy(static_cast<std::byte*>(out) + place, &word, sizeof word);
  }
}

}  // namespace

FakeDevx& fake_devx() {
  return devx;
}

}  // namespace offload::rdma::test

using namespace offload::rdma::test;

/// libmlx5 has the definition to itself.
struct mlx5dv_devx_obj {
  std::uint32_t number;
};

extern "C" {

mlx5dv_devx_umem* mlx5dv_devx_umem_reg_ex(ibv_context*, mlx5dv_devx_umem_in* in) {
  if (returns_null("mlx5dv_devx_umem_reg_ex")) return nullptr;
  devx.spaces.push_back({in->addr, in->size, in->access, in->pgsz_bitmap,
                         (in->comp_mask & MLX5DV_UMEM_MASK_DMABUF) != 0, in->dmabuf_fd});
  ++fake().open["umem"];
  return new mlx5dv_devx_umem{FakeDevx::kFirstSpace +
                              static_cast<std::uint32_t>(devx.spaces.size() - 1)};
}

int mlx5dv_devx_umem_dereg(mlx5dv_devx_umem* umem) {
  --fake().open["umem"];
  delete umem;
  return 0;
}

mlx5dv_devx_uar* mlx5dv_devx_alloc_uar(ibv_context*, std::uint32_t kind) {
  if (returns_null("mlx5dv_devx_alloc_uar")) return nullptr;
  const auto number = FakeDevx::kFirstRegisters + static_cast<std::uint32_t>(devx.kinds.size());
  devx.kinds.push_back(kind);
  ++fake().open["uar"];
  auto* const made = new mlx5dv_devx_uar{};
  made->base_addr = devx.page;
  made->reg_addr = devx.page + 0x800;
  made->page_id = number;
  return made;
}

void mlx5dv_devx_free_uar(mlx5dv_devx_uar* uar) {
  --fake().open["uar"];
  delete uar;
}

int mlx5dv_devx_query_eqn(ibv_context*, std::uint32_t, std::uint32_t* number) {
  *number = FakeDevx::kEvents;
  return errno_of("mlx5dv_devx_query_eqn");
}

int mlx5dv_devx_general_cmd(ibv_context*, const void* in, std::size_t in_size, void* out,
                            std::size_t out_size) {
  if (const int failed = errno_of("mlx5dv_devx_general_cmd"); failed != 0) return failed;
  keep_command(0, in, in_size);
  write_answer(devx.answers[devx.calls.back().words[4]], out, out_size);
  return 0;
}

mlx5dv_devx_obj* mlx5dv_devx_obj_create(ibv_context*, const void* in, std::size_t in_size,
                                        void* out, std::size_t out_size) {
  if (returns_null("mlx5dv_devx_obj_create")) return nullptr;
  keep_command(0, in, in_size);
  ++fake().open["devx object"];
  const std::uint32_t number = FakeDevx::kFirstObject + devx.made++;
  write_answer({{8, number}}, out, out_size);
  return new mlx5dv_devx_obj{number};
}

int mlx5dv_devx_obj_modify(mlx5dv_devx_obj* object, const void* in, std::size_t in_size, void* out,
                           std::size_t out_size) {
  if (const int failed = errno_of("mlx5dv_devx_obj_modify"); failed != 0) return failed;
  keep_command(object->number, in, in_size);
  write_answer({}, out, out_size);
  return 0;
}

int mlx5dv_devx_obj_destroy(mlx5dv_devx_obj* object) {
  --fake().open["devx object"];
  delete object;
  return 0;
}
}
