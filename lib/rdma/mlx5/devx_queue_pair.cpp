#include "rdma/mlx5/devx_queue_pair.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "rdma/mlx5/devx_fields.hpp"

namespace offload::rdma::mlx5 {
namespace {

using core::ErrorCode;
using kernels::rdma::Cqe;
using kernels::rdma::kBlockBytes;
using kernels::rdma::Segment;

constexpr std::uint32_t kMigrated = 3;
constexpr std::uint32_t kMostMessage = 30;
constexpr std::uint32_t kAtomicsOfInfiniband = 1;  ///< of 8 bytes
constexpr std::uint32_t kSharedKind = 1;
constexpr std::uint32_t kDoorbellAlone = 1;
constexpr std::uint32_t kReady = 1;
constexpr std::uint32_t kCyclic = 1;
constexpr std::uint16_t kFirstUdpPort = 0xc000;  ///< of RoCE v2's sources
constexpr std::size_t kLine = kQueueAlignment;

std::uint32_t log2_of(std::uint32_t count) {
  return static_cast<std::uint32_t>(std::countr_zero(count));
}

/// The places of all parts in a queue pair's space; with no blocks, in that of shared receives.
struct Layout {
  explicit Layout(const QueueSizes& sizes)
      : blocks(sizes.receives * sizeof(Segment)),
        sends{whole_pages(blocks + sizes.send_blocks * kBlockBytes), 0},
        receives{whole_pages(sends.entries + sizes.send_blocks * sizeof(Cqe)), 0},
        record(whole_pages(receives.entries + sizes.receives * sizeof(Cqe))),
        bytes(record + kRingAlignment) {
    sends.record = record + kLine;
    receives.record = record + 2 * kLine;
  }
  std::size_t blocks;  ///< of sends, behind the receives unless these are shared
  RingPlace sends;     ///< completions
  RingPlace receives;
  std::size_t record;  ///< of both rings
  std::size_t bytes;
};

/// Returns the sizes that a queue pair gets: its sends begin at a multiple of 64 bytes, behind its
/// receives.
QueueSizes granted(const QueueSizes& sizes) {
  static_cast<void>(queue_memory_bytes(sizes));  // checks them
  constexpr std::uint32_t kLeast = kBlockBytes / sizeof(Segment);
  return {sizes.send_blocks, std::max(sizes.receives, kLeast)};
}

Layout layout_of(const QueueSizes& sizes) {
  return Layout(granted(sizes));
}

Layout layout_of_receives(std::uint32_t entries) {
  static_cast<void>(queue_memory_bytes({1, entries}));
  return Layout({0, entries});
}

void mark_fresh(std::span<std::byte> memory, std::size_t place, std::uint32_t count) {
  mlx5::mark_fresh({reinterpret_cast<Cqe*>(&memory[place]), count});
}

const QueueSpace& check_space(const QueueSpace& space, std::size_t needed) {
  if (space.size < needed) {
    throw core::Error(ErrorCode::no_memory, "queues need " + std::to_string(needed) +
                                                " bytes; available are " +
                                                std::to_string(space.size));
  }
  const std::uint64_t begin =
      space.dma_buf == -1 ? reinterpret_cast<std::uintptr_t>(space.address) : space.offset;
  if (begin % kRingAlignment != 0) {
    throw core::Error(ErrorCode::invalid_value, "memory of queues must begin at a page");
  }
  return space;
}

template <class T>
T* at(void* base, std::size_t place) {
  return reinterpret_cast<T*>(static_cast<std::byte*>(base) + place);
}

kernels::rdma::CompletionQueue completions_at(void* base, const RingPlace& place,
                                              std::uint32_t count, std::uint32_t number) {
  return {at<Cqe>(base, place.entries), log2_of(count), at<std::uint32_t>(base, place.record),
          number};
}

CardAbilities abilities_for(const DeviceContext& device, bool has_record) {
  const CardAbilities abilities = query_abilities(device);
  if (!has_record && !abilities.rings_without_record) {
    throw core::Error(ErrorCode::not_supported,
                      device.name() + " has no queue pairs without a record");
  }
  return abilities;
}

/// The logarithm of reads and atomics that are outstanding.
std::uint32_t log2_of_reads(std::uint8_t count) {
  return count == 0 ? 0 : static_cast<std::uint32_t>(std::bit_width(count) - 1);
}

}  // namespace

std::size_t DevxReceives::bytes_of(std::uint32_t entries) {
  return layout_of_receives(entries).bytes;
}

std::vector<std::byte> DevxReceives::first_content(std::uint32_t entries) {
  const Layout layout = layout_of_receives(entries);
  std::vector<std::byte> content(layout.bytes);
  mark_fresh(content, layout.receives.entries, entries);
  return content;
}

DevxReceives::DevxReceives(const DeviceContext& device, const ProtectionDomain& domain,
                           std::uint32_t entries, const QueueSpace& space)
    : entries_(entries), space_(device, check_space(space, bytes_of(entries))), registers_(device) {
  const Layout layout = layout_of_receives(entries);
  completions_ =
      make_card_completions(device, space_, registers_, layout.receives, log2_of(entries));
  DevxCommand command;
  command.set(kRmpContext + kRmpState, kReady);
  command.set(kRmpContext + kRmpIsPlain, 1);
  command.set(kWqOfRmp + kRingKind, kCyclic);
  command.set(kWqOfRmp + kRingDomain, number_of(domain));
  command.set(kWqOfRmp + kRingLogOfStride, log2_of(sizeof(Segment)));
  command.set(kWqOfRmp + kRingLogOfSize, log2_of(entries));
  command.set(kWqOfRmp + kRingRecordIsInSpace, 1);
  command.set(kWqOfRmp + kRingRecordSpace, space_.number());
  command.set(kWqOfRmp + kRingRecordPlace, layout.record);
  command.set(kWqOfRmp + kRingIsInSpace, 1);
  command.set(kWqOfRmp + kRingSpace, space_.number());
  command.set(kWqOfRmp + kRingPlace, 0);
  ring_ = CardObject(device, command, DevxOpcode::create_rmp, "shared receives");
}

kernels::rdma::ReceiveQueue DevxReceives::seen_at(void* base) const {
  const Layout layout = layout_of_receives(entries_);
  return {at<Segment>(base, 0), entries_, at<std::uint32_t>(base, layout.record),
          completions_at(base, layout.receives, entries_, completions_.number())};
}

std::size_t DevxQueuePair::bytes_of(const QueueSizes& sizes) {
  return layout_of(sizes).bytes;
}

std::vector<std::byte> DevxQueuePair::first_content(const QueueSizes& sizes) {
  const Layout layout = layout_of(sizes);
  std::vector<std::byte> content(layout.bytes);
  mark_fresh(content, layout.sends.entries, sizes.send_blocks);
  mark_fresh(content, layout.receives.entries, granted(sizes).receives);
  return content;
}

DevxQueuePair::DevxQueuePair(const DeviceContext& device, const ProtectionDomain& domain,
                             const QueueSizes& sizes, const QueueSpace& space,
                             const Options& options)
    : domain_(domain.get()),
      sizes_(granted(sizes)),
      options_(options),
      abilities_(abilities_for(device, options.has_record)) {
  if (options.places) {
    make_pair(device, number_of(domain));
    return;
  }
  const Layout layout = layout_of(sizes);
  space_.emplace(device, check_space(space, layout.bytes));
  if (options.registers == nullptr) {
    // The value of a doorbell counts alone then; on a shared register another could replace it.
    own_registers_.emplace(device,
                           options.has_record ? RegisterKind::shared : RegisterKind::combining);
  } else if (!options.has_record) {
    throw core::Error(ErrorCode::invalid_value, "a queue pair without a record shares no register");
  }
  if (!options.completions) {
    sends_ = make_card_completions(device, *space_, registers(), layout.sends,
                                   log2_of(sizes.send_blocks), options.checks_overrun);
  }
  if (!options.completions && options.shared == nullptr) {
    receives_ = make_card_completions(device, *space_, registers(), layout.receives,
                                      log2_of(sizes_.receives), options.checks_overrun);
  }
  make_pair(device, number_of(domain));
}

void DevxQueuePair::make_pair(const DeviceContext& device, std::uint32_t domain) {
  const Places places =
      options_.places ? *options_.places
                      : Places{space_->number(), 0, space_->number(), layout_of(sizes_).record};
  const CompletionNumbers completions =
      options_.completions.value_or(CompletionNumbers{sends_.number(), receives_.number()});
  DevxCommand command;
  command.set(kQpContext + kMigration, kMigrated);
  command.set(kQpContext + kDomain, domain);
  command.set(kQpContext + kLogOfBlocks, log2_of(sizes_.send_blocks));
  command.set(kQpContext + kRegisters, registers().number());
  if (!options_.has_record) command.set(kQpContext + kDoorbellKind, kDoorbellAlone);
  command.set(kQpContext + kSendCompletions, completions.sends);
  command.set(kQpContext + kMaster, abilities_.waits_for_completions ? 1 : 0);
  if (options_.shared == nullptr) {
    command.set(kQpContext + kLogOfReceives, log2_of(sizes_.receives));  // of a segment each
    command.set(kQpContext + kReceiveCompletions, completions.receives);
  } else {
    command.set(kQpContext + kReceiveKind, kSharedKind);
    command.set(kQpContext + kShared, options_.shared->number());
    command.set(kQpContext + kReceiveCompletions, options_.shared->completions());
  }
  command.set(kQpContext + kRecordIsInSpace, 1);
  command.set(kQpContext + kRecordSpace, places.record_space);
  command.set(kQpContext + kRecordPlace, places.record);
  command.set(kRingsPlace, places.rings);
  command.set(kRingsSpace, places.rings_space);
  command.set(kRingsAreInSpace, 1);
  pair_ = CardObject(device, command, DevxOpcode::create_qp, "a queue pair");
}

void DevxQueuePair::connect(const RtrAttributes& rtr, const RtsAttributes& rts) {
  initialize(rtr.ah_attr.port_num, memory::kRemoteAccess);
  ready_to_receive(rtr);
  ready_to_send(rts);
}

void DevxQueuePair::initialize(std::uint8_t port_num, memory::Access access) {
  const auto allows = [&](memory::Access right) { return includes(access, right) ? 1U : 0U; };
  DevxCommand init;
  init.set(kQpContext + kMigration, kMigrated);
  init.set(kQpContext + kRemoteRead, allows(memory::Access::remote_read));
  init.set(kQpContext + kRemoteWrite, allows(memory::Access::remote_write));
  init.set(kQpContext + kRemoteAtomic, allows(memory::Access::remote_atomic));
  init.set(kQpContext + kAtomicMode, kAtomicsOfInfiniband);
  init.set(kPathOfQp + kPort, port_num);
  pair_.change(init, DevxOpcode::reset_to_init, "take a queue pair to INIT");
}

void DevxQueuePair::ready_to_receive(const RtrAttributes& rtr) {
  DevxCommand receive;
  receive.set(kQpContext + kMtu, static_cast<std::uint32_t>(rtr.path_mtu));
  receive.set(kQpContext + kLogOfMessage, kMostMessage);
  receive.set(kQpContext + kPeer, rtr.dest_qp_num);
  receive.set(kQpContext + kReceivePsn, rtr.rq_psn);
  receive.set(kQpContext + kRnrTimer, rtr.min_rnr_timer);
  receive.set(kQpContext + kLogOfAnswers, log2_of_reads(rtr.max_dest_rd_atomic));
  set_path(receive, rtr.ah_attr);
  pair_.change(receive, DevxOpcode::init_to_receive, "take a queue pair to RTR");
}

void DevxQueuePair::ready_to_send(const RtsAttributes& rts) {
  DevxCommand send;
  send.set(kQpContext + kSendPsn, rts.sq_psn);
  send.set(kQpContext + kRetries, rts.retry_cnt);
  send.set(kQpContext + kRnrRetries, rts.rnr_retry);
  send.set(kQpContext + kLogOfReads, log2_of_reads(rts.max_rd_atomic));
  send.set(kPathOfQp + kTimeout, rts.timeout);
  pair_.change(send, DevxOpcode::receive_to_send, "take a queue pair to RTS");
}

void DevxQueuePair::set_path(DevxCommand& command, const ibv_ah_attr& path) {
  const auto set = [&](DevxField field, std::uint32_t value) {
    command.set(kPathOfQp + field, value);
  };
  set(kPort, path.port_num);
  set(kRate, path.static_rate);
  set(kServiceLevel, path.sl);
  if (path.is_global == 0) {
    set(kLid, path.dlid);
    set(kLidBits, path.src_path_bits);
    return;
  }
  ibv_port_attr port{};
  check(ibv_query_port(domain_->context, path.port_num, &port), "query a port");
  if (port.link_layer != IBV_LINK_LAYER_ETHERNET) {
    throw core::Error(ErrorCode::not_supported, "a global route over InfiniBand, by devx");
  }
  // The kernel finds the peer's address on an Ethernet for an address handle.
  ibv_ah_attr copy = path;
  const Handle<ibv_ah, ibv_destroy_ah> handle{
      check_pointer(ibv_create_ah(domain_, &copy), "find the way to a peer"), "an address handle"};
  mlx5dv_ah native{};
  mlx5dv_obj object{};
  object.ah = {handle.get(), &native};
  check(mlx5dv_init_obj(&object, MLX5DV_OBJ_AH), "ask libmlx5 about an address handle");
  set(kHasGid, 1);
  set(kLid, path.dlid);
  set(kOwnGid, path.grh.sgid_index);
  set(kHopLimit, path.grh.hop_limit);
  set(kTrafficClass, path.grh.traffic_class);
  set(kFlow, path.grh.flow_label);
  set(kDscp, path.grh.traffic_class >> 2U);
  set(kUdpPort, kFirstUdpPort | (pair_.number() & 0x3fffU));
  set(kEthernetPriority, path.sl & 7U);
  std::memcpy(command.bytes_at(kPathOfQp + kPeerGid), path.grh.dgid.raw, sizeof path.grh.dgid.raw);
  std::memcpy(command.bytes_at(kPathOfQp + kPeerMac), native.av->rmac, sizeof native.av->rmac);
}

void DevxQueuePair::reset() {
  ShortDevxCommand command;
  pair_.change(command, DevxOpcode::to_reset, "take a queue pair to RESET");
}

void DevxQueuePair::fail() {
  ShortDevxCommand command;
  pair_.change(command, DevxOpcode::to_error, "take a queue pair to ERR");
}

QueuePairMemory DevxQueuePair::seen_at(void* base, std::uint64_t* doorbell) const {
  const Layout layout = layout_of(sizes_);
  const bool shares = options_.shared != nullptr;
  QueuePairMemory queues{};
  auto* const records = at<std::uint32_t>(base, layout.record);
  queues.send.ring = {at<Segment>(base, shares ? 0 : layout.blocks), sizes_.send_blocks};
  queues.send.number = number();
  queues.send.record = records + MLX5_SND_DBR;
  queues.send.doorbell = doorbell;
  queues.send.has_record = options_.has_record;
  const bool own = !options_.completions;
  if (own) {
    queues.send.completions =
        completions_at(base, layout.sends, sizes_.send_blocks, sends_.number());
  }
  if (shares) return queues;
  queues.receive = {at<Segment>(base, 0), sizes_.receives, records + MLX5_RCV_DBR, {}};
  if (own) {
    queues.receive.completions =
        completions_at(base, layout.receives, sizes_.receives, receives_.number());
  }
  return queues;
}

}  // namespace offload::rdma::mlx5
