#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cli/leave.hpp"
#include "cli/log_options.hpp"
#include "core/clock.hpp"
#include "rdma/path/path_choice.hpp"
#include "rdma/verbs/device_context.hpp"

namespace offload::rdma_tool {

enum class Operation : std::uint8_t {
  send,
  recv,
  write,
  read,
  write_imm,
  send_imm,
  atomic,
  sync_event,
  multi_conn,
  burst,
  ordered,
  put_signal,
  copy,
};

/// The initiator of operations: tasks of lib/rdma, or the device functions of kernels/rdma, in a
/// kernel if there is a GPU.
enum class Initiator : std::uint8_t { cpu, gpu };

/// The rings that lanes post to: those that the card itself reads, or those of an emulator.
enum class Rings : std::uint8_t {
  automatic,  ///< the card's if there are any, as offload-worker chooses
  card,
  proxy,
};

enum class Role : std::uint8_t { requester, responder };

/// The checked command line. The help text (options.cpp) has the meaning of each option.
struct Options {
  Operation operation = Operation::send;
  Role role = Role::requester;
  rdma::PathChoice path{"rdma"};
  std::string gid;  ///< an address; empty for GidRule's default
  std::string local_descriptor;
  std::string remote_descriptor;
  std::string cm_address;  ///< empty for descriptor files
  std::uint16_t cm_port = 18515;
  rdma::QpType qp_type = rdma::QpType::rc;
  Initiator initiator = Initiator::cpu;
  Rings rings = Rings::automatic;  ///< with gpu alone
  std::string gpu;                 ///< as make_launcher() takes it
  std::uint8_t rdma_port = 1;      ///< of the device
  std::uint32_t queue_lanes = 1;   ///< that share a connection's queue; more than 1 with gpu alone
  bool shared_receives = false;
  bool event_driven = false;
  std::vector<std::uint32_t> sizes = {8};  ///< bytes, one after the other
  std::uint64_t iterations = 1000;         ///< of each size, on each connection
  std::uint32_t in_flight = 1;             ///< 1: latency; more: bandwidth
  std::uint32_t batch = 1;                 ///< operations a doorbell
  std::uint32_t connections = 1;
  std::uint32_t max_inline_data = 64;
  std::uint64_t seed = 1;
  bool verify = true;
  core::Duration timeout = core::seconds(30);
  std::string output;  ///< empty for none
  cli::LogOptions log{};
};

std::variant<Options, cli::Leave> parse_options(int argc, const char* const* argv);

/// "send", "write-imm", ...
std::string_view name_of(Operation operation) noexcept;
std::string_view name_of(Role role) noexcept;

/// Whether one process does it all, without a peer.
bool is_alone(Operation operation) noexcept;

/// The options that both ends must agree on, as text: "send RC --size 8 ...".
std::string agreed(const Options& options);

}  // namespace offload::rdma_tool
