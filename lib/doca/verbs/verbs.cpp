#include "doca/verbs/verbs.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>

#include "doca/device.hpp"
#include "doca/guard.hpp"
#include "doca/include/doca_rdma_bridge.h"
#include "doca/include/doca_verbs_bridge.h"
#include "doca/rdma/rdma_device.hpp"
#include "rdma/mlx5/devx.hpp"

namespace offload::doca {
namespace {

using core::Error;
using core::ErrorCode;

std::uint32_t number_of(int count) noexcept {
  return static_cast<std::uint32_t>(std::max(count, 0));
}

/// Returns whether a card's doorbells hand entries over without a record; false for other devices.
bool rings_without_record(const rdma::DeviceContext& device) {
  try {
    return rdma::mlx5::query_abilities(device).rings_without_record;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_supported) throw;
    return false;
  }
}

/// Ends an object that nothing else uses.
template <class Object>
doca_error_t end(Object* object) noexcept {
  if (object == nullptr) return DOCA_ERROR_INVALID_VALUE;
  if (is_used(*object)) return DOCA_ERROR_IN_USE;
  delete object;
  return DOCA_SUCCESS;
}

/// One that libibverbs makes.
struct NativeCq final : doca_verbs_cq {
  NativeCq(doca_verbs_context& of, std::uint32_t size)
      : doca_verbs_cq(of), queue(of.device, size) {}

  [[nodiscard]] Maker maker() const noexcept override { return Maker::libibverbs; }
  int poll(int most, ibv_wc* into) noexcept override {
    const auto found = queue.poll({into, static_cast<std::size_t>(most)});
    taken += found.size();
    return queue.failed() ? -1 : static_cast<int>(found.size());
  }

  rdma::CompletionQueue queue;
};

/// Returns the queue of one of the two kinds of work; without it, that of the other kind.
doca_verbs_cq& queue_or(doca_verbs_cq* wanted, doca_verbs_cq* other, std::uint32_t requests) {
  if (wanted == nullptr && (requests != 0 || other == nullptr)) {
    reject("a queue pair needs a completion queue");
  }
  return wanted != nullptr ? *wanted : *other;
}

doca_verbs_pd& domain_of(const doca_verbs_qp_init_attr& attributes) {
  if (attributes.pd == nullptr) reject("a queue pair needs a protection domain");
  return *attributes.pd;
}

int errno_of(core::Status status) noexcept {
  if (status.ok()) return 0;
  switch (status.error()) {
    case ErrorCode::full: return ENOMEM;
    case ErrorCode::invalid_value:
    case ErrorCode::bad_state: return EINVAL;
    default: return EIO;
  }
}

/// One that libibverbs makes.
struct NativeQp final : doca_verbs_qp {
  NativeQp(doca_verbs_context& of, const doca_verbs_qp_init_attr& from)
      : doca_verbs_qp(of, from),
        pair(from.pd->domain, static_cast<NativeCq&>(sends()).queue,
             static_cast<NativeCq&>(receives()).queue, options(from)) {}

  static rdma::QueuePairOptions options(const doca_verbs_qp_init_attr& from) {
    rdma::QueuePairOptions options;
    options.max_send_wr = from.max_send_wr;
    options.max_recv_wr = from.max_recv_wr;
    options.max_sge = std::max(from.max_send_sge, from.max_recv_sge);
    options.max_inline_data = from.max_inline_data;
    options.sq_sig_all = from.sq_sig_all != 0;
    return options;
  }

  [[nodiscard]] std::uint32_t number() const noexcept override { return pair.qp_num(); }
  void modify(const ibv_qp_attr& attributes, int mask) override { pair.modify(attributes, mask); }
  int post_send(ibv_send_wr& first, ibv_send_wr*& bad) noexcept override {
    ibv_send_wr* refused = nullptr;
    const int errnum = errno_of(pair.post_send(first, refused));
    if (errnum != 0) bad = refused;
    return errnum;
  }
  int post_receive(ibv_recv_wr& first, ibv_recv_wr*& bad) noexcept override {
    ibv_recv_wr* refused = nullptr;
    const int errnum = errno_of(pair.post_receive(first, refused));
    if (errnum != 0) bad = refused;
    return errnum;
  }

  rdma::QueuePair pair;
};

/// A change of state: what the program gives, and what libibverbs gets.
struct Transition {
  doca_verbs_qp_state to;
  ibv_qp_state native;
  std::optional<ibv_qp_state> from;  ///< none: any state
  int required;
  int mask;
};
constexpr std::array kTransitions{
    Transition{DOCA_VERBS_QP_STATE_RST, IBV_QPS_RESET, std::nullopt, 0, 0},
    Transition{DOCA_VERBS_QP_STATE_INIT, IBV_QPS_INIT, IBV_QPS_RESET, DOCA_VERBS_QP_ATTR_PORT_NUM,
               IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS},
    Transition{DOCA_VERBS_QP_STATE_RTR, IBV_QPS_RTR, IBV_QPS_INIT,
               DOCA_VERBS_QP_ATTR_RQ_PSN | DOCA_VERBS_QP_ATTR_DEST_QP_NUM |
                   DOCA_VERBS_QP_ATTR_MIN_RNR_TIMER | DOCA_VERBS_QP_ATTR_PATH_MTU |
                   DOCA_VERBS_QP_ATTR_AH_ATTR,
               IBV_QP_RQ_PSN | IBV_QP_DEST_QPN | IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MTU |
                   IBV_QP_AV | IBV_QP_MAX_DEST_RD_ATOMIC},
    Transition{DOCA_VERBS_QP_STATE_RTS, IBV_QPS_RTS, IBV_QPS_RTR,
               DOCA_VERBS_QP_ATTR_SQ_PSN | DOCA_VERBS_QP_ATTR_ACK_TIMEOUT |
                   DOCA_VERBS_QP_ATTR_RETRY_CNT | DOCA_VERBS_QP_ATTR_RNR_RETRY,
               IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                   IBV_QP_MAX_QP_RD_ATOMIC},
    Transition{DOCA_VERBS_QP_STATE_ERR, IBV_QPS_ERR, std::nullopt, 0, 0},
};

void change_state(doca_verbs_qp& pair, const doca_verbs_qp_attr& wanted, int mask) {
  const Transition& change = kTransitions.at(wanted.next_state);
  if ((mask & DOCA_VERBS_QP_ATTR_NEXT_STATE) == 0 || (mask & change.required) != change.required) {
    reject("the mask lacks attributes that the next state needs");
  }
  if (change.from ? *change.from != pair.state : pair.state == change.native) {
    throw Error(ErrorCode::bad_state, "queue pair " + std::to_string(pair.number()) +
                                          " cannot change from " +
                                          std::string(rdma::name_of(pair.state)) + " to " +
                                          std::string(rdma::name_of(change.native)));
  }
  const auto allowed = [mask](std::uint8_t value, int bit, unsigned flag) {
    return value != 0 && (mask & bit) != 0 ? flag : 0U;
  };
  ibv_qp_attr attributes = wanted;
  attributes.qp_state = change.native;
  attributes.port_num = wanted.port;
  attributes.qp_access_flags =
      allowed(wanted.allow_remote_write, DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_WRITE,
              IBV_ACCESS_REMOTE_WRITE) |
      allowed(wanted.allow_remote_read, DOCA_VERBS_QP_ATTR_ALLOW_REMOTE_READ,
              IBV_ACCESS_REMOTE_READ) |
      allowed(static_cast<std::uint8_t>(wanted.atomic_mode), DOCA_VERBS_QP_ATTR_ATOMIC_MODE,
              IBV_ACCESS_REMOTE_ATOMIC);
  attributes.path_mtu = static_cast<ibv_mtu>(IBV_MTU_256 + wanted.mtu);
  const std::uint8_t port = change.native == IBV_QPS_INIT ? wanted.port : pair.port;
  attributes.ah_attr = wanted.peer.path(port);
  if ((mask & DOCA_VERBS_QP_ATTR_MAX_QP_RD_ATOMIC) == 0) attributes.max_rd_atomic = 1;
  if ((mask & DOCA_VERBS_QP_ATTR_MAX_DEST_RD_ATOMIC) == 0) attributes.max_dest_rd_atomic = 1;
  pair.modify(attributes, IBV_QP_STATE | change.mask);
  pair.state = change.native;
  pair.port = port;
}

}  // namespace
}  // namespace offload::doca

using namespace offload::doca;  // NOLINT(google-build-using-namespace): the calls have no namespace
using offload::rdma::DeviceContext;
using offload::rdma::ProtectionDomain;

ibv_ah_attr doca_verbs_ah_attr::path(std::uint8_t port) const noexcept {
  ibv_ah_attr path{};
  path.port_num = port;
  path.dlid = dlid;
  path.is_global = type == DOCA_VERBS_ADDR_TYPE_IB_NO_GRH ? 0 : 1;
  if (path.is_global != 0) path.grh = route;
  return path;
}

doca_verbs_qp::doca_verbs_qp(doca_verbs_context& context, const doca_verbs_qp_init_attr& attributes)
    : context_(context),
      domain_(domain_of(attributes)),
      sends_(queue_or(attributes.send_cq, attributes.receive_cq, attributes.max_send_wr)),
      receives_(queue_or(attributes.receive_cq, attributes.send_cq, attributes.max_recv_wr)) {
  ibv_context* const native = context.device.get();
  const Maker maker = maker_of(attributes);
  if (domain_->domain.get()->context != native) reject("a protection domain of another context");
  for (const doca_verbs_cq* queue : {sends_.get(), receives_.get()}) {
    if (queue->context->device.get() != native) reject("a completion queue of another context");
    if (queue->maker() != maker) {
      reject("a queue pair and its completion queues differ in their external UAR or data path");
    }
  }
}

doca_error_t doca_verbs_context_create(doca_devinfo* devinfo, uint32_t flags,
                                       doca_verbs_context** verbs_context) {
  if (any_null(devinfo, verbs_context) || flags != DOCA_VERBS_CONTEXT_CREATE_FLAGS_NONE) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  if (devinfo->device.kind != offload::device::Kind::rdma) return DOCA_ERROR_NOT_SUPPORTED;
  return guarded(__func__,
                 [&] { *verbs_context = new doca_verbs_context{DeviceContext(devinfo->device)}; });
}

doca_error_t doca_verbs_bridge_verbs_context_create(ibv_device* ibv_dev, uint32_t flags,
                                                    doca_verbs_context** verbs_context) {
  if (any_null(ibv_dev, verbs_context) || flags != DOCA_VERBS_CONTEXT_CREATE_FLAGS_NONE) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  return guarded(__func__, [&] {
    *verbs_context = new doca_verbs_context{DeviceContext(std::string_view(ibv_dev->name))};
  });
}

doca_error_t doca_verbs_query_device(doca_verbs_context* verbs_context,
                                     doca_verbs_device_attr** verbs_device_attr) {
  if (any_null(verbs_context, verbs_device_attr)) return DOCA_ERROR_INVALID_VALUE;
  return guarded(__func__, [&] {
    const ibv_device_attr& native = verbs_context->device.attributes();
    auto attributes = std::make_unique<doca_verbs_device_attr>();
    attributes->max_qp_rd_atom = number_of(native.max_qp_rd_atom);
    attributes->max_qp_init_rd_atom = number_of(native.max_qp_init_rd_atom);
    attributes->rings_without_record = rings_without_record(verbs_context->device);
    *verbs_device_attr = attributes.release();
  });
}

doca_error_t doca_verbs_bridge_verbs_context_import(ibv_context* ibv_ctx, uint32_t flags,
                                                    doca_verbs_context** verbs_context) {
  if (any_null(ibv_ctx, verbs_context) || flags != DOCA_VERBS_CONTEXT_CREATE_FLAGS_NONE) {
    return DOCA_ERROR_INVALID_VALUE;
  }
  return guarded(__func__,
                 [&] { *verbs_context = new doca_verbs_context{DeviceContext::import(ibv_ctx)}; });
}

doca_error_t doca_verbs_context_destroy(doca_verbs_context* verbs_context) {
  return end(verbs_context);
}

doca_error_t doca_verbs_pd_create(doca_verbs_context* verbs_context, doca_verbs_pd** verbs_pd) {
  if (any_null(verbs_context, verbs_pd)) return DOCA_ERROR_INVALID_VALUE;
  return guarded(__func__, [&] {
    *verbs_pd = new doca_verbs_pd{Use(*verbs_context), ProtectionDomain(verbs_context->device)};
  });
}

doca_error_t doca_verbs_bridge_verbs_pd_import(ibv_pd* pd, doca_verbs_pd** verbs_pd) {
  if (any_null(pd, verbs_pd)) return DOCA_ERROR_INVALID_VALUE;
  return guarded(__func__, [&] {
    *verbs_pd = new doca_verbs_pd{std::nullopt, ProtectionDomain::import(pd)};
  });
}

ibv_pd* doca_verbs_bridge_verbs_pd_get_ibv_pd(const doca_verbs_pd* verbs_pd) {
  return verbs_pd != nullptr ? verbs_pd->domain.get() : nullptr;
}

doca_error_t doca_verbs_pd_destroy(doca_verbs_pd* verbs_pd) {
  return end(verbs_pd);
}

doca_error_t doca_verbs_pd_as_doca_dev(doca_verbs_pd* verbs_pd, doca_dev** dev) {
  if (any_null(verbs_pd, dev)) return DOCA_ERROR_INVALID_VALUE;
  return guarded(__func__, [&] {
    auto opened = std::make_unique<RdmaDevice>(verbs_pd->domain.get());
    doca_devinfo info = rdma_device_named(opened->device.name());
    auto use = std::make_shared<Use<doca_verbs_pd>>(*verbs_pd);
    *dev = new doca_dev(std::move(info), std::move(opened), std::move(use));
  });
}

doca_error_t doca_rdma_bridge_open_dev_from_pd(ibv_pd* pd, doca_dev** dev) {
  if (any_null(pd, dev)) return DOCA_ERROR_INVALID_VALUE;
  return guarded(__func__, [&] {
    auto opened = std::make_unique<RdmaDevice>(pd);
    doca_devinfo info = rdma_device_named(opened->device.name());
    *dev = new doca_dev(std::move(info), std::move(opened), nullptr);
  });
}

doca_error_t doca_rdma_bridge_get_dev_pd(const doca_dev* dev, ibv_pd** pd) {
  if (any_null(dev, pd)) return DOCA_ERROR_INVALID_VALUE;
  if (!dev->is_rdma()) return DOCA_ERROR_NOT_SUPPORTED;
  // The const_cast is safe: only the first use of the device changes it, under its own lock.
  return guarded(__func__, [&] { *pd = const_cast<doca_dev*>(dev)->rdma().domain.get(); });
}

doca_error_t doca_verbs_cq_create(doca_verbs_context* verbs_context, doca_verbs_cq_attr* cq_attr,
                                  doca_verbs_cq** verbs_cq) {
  if (any_null(verbs_context, cq_attr, verbs_cq)) return DOCA_ERROR_INVALID_VALUE;
  return guarded(__func__, [&] {
    if (cq_attr->size == 0) reject("a completion queue without a size");
    switch (maker_of(*cq_attr)) {
      case Maker::libibverbs: *verbs_cq = new NativeCq(*verbs_context, cq_attr->size); break;
      case Maker::card: *verbs_cq = make_card_cq(*verbs_context, *cq_attr).release(); break;
      case Maker::external: *verbs_cq = make_external_cq(*verbs_context, *cq_attr).release(); break;
    }
  });
}

doca_error_t doca_verbs_cq_destroy(doca_verbs_cq* verbs_cq) {
  return end(verbs_cq);
}

uint32_t doca_verbs_cq_get_cqn(const doca_verbs_cq* verbs_cq) {
  return verbs_cq != nullptr ? verbs_cq->number() : 0;
}

doca_error_t doca_verbs_qp_create(doca_verbs_context* verbs_context,
                                  doca_verbs_qp_init_attr* qp_init_attr, doca_verbs_qp** verbs_qp) {
  if (any_null(verbs_context, qp_init_attr, verbs_qp)) return DOCA_ERROR_INVALID_VALUE;
  return guarded(__func__, [&] {
    const Maker maker = maker_of(*qp_init_attr);
    if (qp_init_attr->cqe_inline != 0) {
      throw Error(ErrorCode::not_supported, "received data in completions");
    }
    if (qp_init_attr->send_dbr_mode != DOCA_VERBS_QP_SEND_DBR_MODE_DBR_VALID &&
        maker != Maker::external) {
      throw Error(ErrorCode::not_supported,
                  "a queue pair without a record that the library posts to");
    }
    if (qp_init_attr->is_master != 0 && maker == Maker::libibverbs) {
      throw Error(ErrorCode::not_supported, "waits for completions in a queue pair of libibverbs");
    }
    switch (maker) {
      case Maker::libibverbs: *verbs_qp = new NativeQp(*verbs_context, *qp_init_attr); break;
      case Maker::card: *verbs_qp = make_card_qp(*verbs_context, *qp_init_attr).release(); break;
      case Maker::external:
        *verbs_qp = make_external_qp(*verbs_context, *qp_init_attr).release();
        break;
    }
  });
}

doca_error_t doca_verbs_qp_destroy(doca_verbs_qp* verbs_qp) {
  return end(verbs_qp);
}

uint32_t doca_verbs_qp_get_qpn(const doca_verbs_qp* verbs_qp) {
  return verbs_qp != nullptr ? verbs_qp->number() : 0;
}

doca_error_t doca_verbs_qp_modify(doca_verbs_qp* verbs_qp, doca_verbs_qp_attr* qp_attr,
                                  int attr_mask) {
  if (any_null(verbs_qp, qp_attr)) return DOCA_ERROR_INVALID_VALUE;
  return guarded(__func__, [&] { change_state(*verbs_qp, *qp_attr, attr_mask); });
}

int doca_verbs_bridge_post_send(doca_verbs_qp* verbs_qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) {
  if (any_null(verbs_qp, wr, bad_wr)) return EINVAL;
  return verbs_qp->post_send(*wr, *bad_wr);
}

int doca_verbs_bridge_post_recv(doca_verbs_qp* verbs_qp, ibv_recv_wr* wr, ibv_recv_wr** bad_wr) {
  if (any_null(verbs_qp, wr, bad_wr)) return EINVAL;
  return verbs_qp->post_receive(*wr, *bad_wr);
}

int doca_verbs_bridge_poll_cq(doca_verbs_cq* verbs_cq, int num_entries, ibv_wc* wc) {
  if (any_null(verbs_cq, wc) || num_entries < 0) return -EINVAL;
  return verbs_cq->poll(num_entries, wc);
}

uint32_t doca_verbs_bridge_get_current_cq_ci(doca_verbs_cq* verbs_cq) {
  return verbs_cq != nullptr ? static_cast<uint32_t>(verbs_cq->taken) : 0;
}

doca_error_t doca_verbs_bridge_set_wait_cq_pi_wr(doca_verbs_cq* verbs_cq, uint32_t cq_pi,
                                                 ibv_send_wr* wr) {
  if (any_null(verbs_cq, wr)) return DOCA_ERROR_INVALID_VALUE;
  if (verbs_cq->maker() == Maker::libibverbs) return DOCA_ERROR_NOT_SUPPORTED;
  set_wait(*wr, verbs_cq->number(), cq_pi);
  return DOCA_SUCCESS;
}
