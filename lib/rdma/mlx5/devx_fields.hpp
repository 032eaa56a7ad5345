#pragma once

#include "rdma/mlx5/devx_command.hpp"

/// Fields of the card's commands, for those who write commands and those who read them.
namespace offload::rdma::mlx5 {

/// Abilities.
inline constexpr DevxField kCrossChannel{0x22c, 1};
inline constexpr DevxField kWaitOnTime{0x68c, 1};
inline constexpr DevxField kWithoutRecord{0x2e1, 1};

/// Fields of a completion queue's context.
inline constexpr DevxField kCqRecordIsInSpace{0x6, 1};
inline constexpr DevxField kCqIgnoresOverrun{0xe, 1};
inline constexpr DevxField kCqRecordSpace{0x20, 32};
inline constexpr DevxField kCqLogOfSize{0x63, 5};
inline constexpr DevxField kCqRegisters{0x68, 24};
inline constexpr DevxField kCqEventQueue{0xb8, 8};
inline constexpr DevxField kCqRecordPlace{0x1c0, 64};
/// Fields of the command that makes a completion queue.
inline constexpr DevxField kEntriesPlace{0x280, 64};
inline constexpr DevxField kEntriesSpace{0x2c0, 32};
inline constexpr DevxField kEntriesAreInSpace{0x2e0, 1};

/// Fields of a queue pair's context.
inline constexpr DevxField kMigration{0x13, 2};
inline constexpr DevxField kDomain{0x28, 24};
inline constexpr DevxField kMtu{0x40, 3};
inline constexpr DevxField kLogOfMessage{0x43, 5};
inline constexpr DevxField kLogOfReceives{0x49, 4};
inline constexpr DevxField kLogOfBlocks{0x51, 4};
inline constexpr DevxField kRegisters{0x68, 24};
inline constexpr DevxField kDoorbellKind{0x80, 2};
inline constexpr DevxField kPeer{0xa8, 24};
inline constexpr DevxField kLogOfReads{0x388, 3};
inline constexpr DevxField kRetries{0x38d, 3};
inline constexpr DevxField kRnrRetries{0x390, 3};
inline constexpr DevxField kSendPsn{0x3c8, 24};
inline constexpr DevxField kSendCompletions{0x3e8, 24};
inline constexpr DevxField kLogOfAnswers{0x488, 3};
inline constexpr DevxField kAtomicMode{0x48c, 4};
inline constexpr DevxField kRemoteRead{0x490, 1};
inline constexpr DevxField kRemoteWrite{0x491, 1};
inline constexpr DevxField kRemoteAtomic{0x492, 1};
inline constexpr DevxField kMaster{0x49f, 1};
inline constexpr DevxField kRnrTimer{0x4a3, 5};
inline constexpr DevxField kReceivePsn{0x4a8, 24};
inline constexpr DevxField kReceiveCompletions{0x4e8, 24};
inline constexpr DevxField kRecordPlace{0x500, 64};
inline constexpr DevxField kReceiveKind{0x565, 3};
inline constexpr DevxField kShared{0x568, 24};
inline constexpr DevxField kRecordIsInSpace{0x683, 1};
inline constexpr DevxField kRecordSpace{0x720, 32};
/// Fields of the command that makes a queue pair.
inline constexpr DevxField kRingsPlace{0x800, 64};
inline constexpr DevxField kRingsSpace{0x840, 32};
inline constexpr DevxField kRingsAreInSpace{0x860, 1};

/// Fields of the path of a queue pair.
inline constexpr DevxField kHasGid{0x28, 1};
inline constexpr DevxField kLidBits{0x29, 7};
inline constexpr DevxField kLid{0x30, 16};
inline constexpr DevxField kTimeout{0x40, 5};
inline constexpr DevxField kOwnGid{0x48, 8};
inline constexpr DevxField kRate{0x54, 4};
inline constexpr DevxField kHopLimit{0x58, 8};
inline constexpr DevxField kTrafficClass{0x64, 8};
inline constexpr DevxField kFlow{0x6c, 20};
inline constexpr std::uint32_t kPeerGid = 0x80;
inline constexpr DevxField kDscp{0x10a, 6};
inline constexpr DevxField kUdpPort{0x110, 16};
inline constexpr DevxField kEthernetPriority{0x121, 3};
inline constexpr DevxField kServiceLevel{0x124, 4};
inline constexpr DevxField kPort{0x128, 8};
inline constexpr std::uint32_t kPeerMac = 0x130;

/// Fields of shared receives, and of their ring.
inline constexpr DevxField kRmpState{0x8, 4};
inline constexpr DevxField kRmpIsPlain{0x20, 1};
inline constexpr DevxField kRingKind{0, 4};
inline constexpr DevxField kRingDomain{0x48, 24};
inline constexpr DevxField kRingRecordPlace{0x80, 64};
inline constexpr DevxField kRingLogOfStride{0x10c, 4};
inline constexpr DevxField kRingLogOfSize{0x11b, 5};
inline constexpr DevxField kRingRecordIsInSpace{0x120, 1};
inline constexpr DevxField kRingIsInSpace{0x121, 1};
inline constexpr DevxField kRingRecordSpace{0x140, 32};
inline constexpr DevxField kRingSpace{0x160, 32};
inline constexpr DevxField kRingPlace{0x180, 64};

}  // namespace offload::rdma::mlx5
