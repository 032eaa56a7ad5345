#include "packets/steering.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/core.h>
#include <linux/if_link.h>

#include <cstdarg>
#include <cstdio>
#include <span>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"
#include "packets/privileges.hpp"

namespace offload::packets {

/// The XDP program as clang compiled it when this was built: an ELF object, for libbpf.
std::span<const std::byte> steer_object() noexcept;

namespace {

/// The reason for a refusal in the kernel's words, of the last call on this thread that had one.
thread_local std::string kernel_reason;

/// Handles lines of libbpf: an Error also reports its failures, and what to do.
int log_line(libbpf_print_level level, const char* format, va_list arguments) {
  if (level == LIBBPF_DEBUG) return 0;
  char line[512];
  const int length = std::vsnprintf(line, sizeof line, format, arguments);
  std::string text(line);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  core::log_debug("libbpf: {}", text);
  constexpr std::string_view kReason = "Kernel error message: ";
  const std::size_t at = text.find(kReason);
  if (at != std::string::npos) kernel_reason = text.substr(at + kReason.size());
  return length;
}

}  // namespace

void Steering::Close::operator()(bpf_object* object) const noexcept {
  ::bpf_object__close(object);
}
void Steering::Close::operator()(bpf_link* link) const noexcept {
  ::bpf_link__destroy(link);
}

Steering::Steering(std::string interface, unsigned interface_index)
    : interface_(std::move(interface)), interface_index_(interface_index) {
  ::libbpf_set_print(log_line);
  const auto object = steer_object();
  object_.reset(::bpf_object__open_mem(object.data(), object.size(), nullptr));
  if (!object_) throw_port_error("opening the XDP program", errno);
  const int loaded = ::bpf_object__load(object_.get());
  if (loaded != 0) throw_port_error("loading the XDP program", -loaded);
  const int processors = ::libbpf_num_possible_cpus();
  if (processors < 0) throw_port_error("counting processors", -processors);
  processors_ = static_cast<std::uint32_t>(processors);
}

Steering::~Steering() = default;

int Steering::map(const char* name) const {
  return ::bpf_object__find_map_fd_by_name(object_.get(), name);
}

void Steering::add_socket(std::uint32_t hardware_queue, std::uint32_t queue, int socket) {
  const std::uint32_t key = hardware_queue * OFFLOAD_MOST_QUEUES + queue;
  check_port(::bpf_map_update_elem(map("sockets"), &key, &socket, BPF_ANY),
             fmt::format("giving queue {} of {} to a socket", hardware_queue, interface_));
}

void Steering::attach() {
  const auto* const program = ::bpf_object__find_program_by_name(object_.get(), "steer");
  link_.reset(::bpf_program__attach_xdp(program, static_cast<int>(interface_index_)));
  if (link_) return;
  const int errnum = errno;
  if (errnum == EBUSY || errnum == EEXIST) {
    throw core::Error(core::ErrorCode::in_use,
                      fmt::format("{} has an XDP program of another process (ip link show {})",
                                  interface_, interface_));
  }
  const std::string action = fmt::format("attaching the XDP program to {}", interface_);
  if (errnum == EPERM || errnum == EACCES) throw_port_error(action, errnum);
  const std::string reason = refusal_of(::bpf_program__fd(program));
  if (reason.empty()) throw_port_error(action, errnum);
  throw core::Error(core::ErrorCode::not_supported,
                    fmt::format("{}: {} ({})", action, reason, core::describe_errno(errnum)),
                    {core::Cause::Domain::system, errnum});
}

/// Why the driver refuses the program, such as too long an MTU or too few queues: a link's system
/// call has an errno alone, and the older way by netlink has the reason too.
std::string Steering::refusal_of(int program) const {
  const auto index = static_cast<int>(interface_index_);
  kernel_reason.clear();
  if (::bpf_xdp_attach(index, program, XDP_FLAGS_UPDATE_IF_NOEXIST, nullptr) == 0) {
    ::bpf_xdp_detach(index, 0, nullptr);
  }
  return kernel_reason;
}

void Steering::detach() noexcept {
  link_.reset();
}

void Steering::clear_counters(std::uint32_t slot) const {
  const std::vector<offload_counter> zeros(processors_);
  for (std::uint32_t i = 0; i < OFFLOAD_COUNTERS; ++i) {
    const std::uint32_t key = slot * OFFLOAD_COUNTERS + i;
    check_port(::bpf_map_update_elem(map("counters"), &key, zeros.data(), BPF_ANY),
               "clearing counters of rules");
  }
}

void Steering::set_rules(std::vector<Rule> rules) {
  if (rules.size() > OFFLOAD_MOST_RULES) {
    throw core::Error(core::ErrorCode::invalid_value,
                      fmt::format("{} rules: the limit is {}", rules.size(), +OFFLOAD_MOST_RULES));
  }
  // The set that does not hold has no reader, since the change before this one waited for them.
  const std::uint32_t next = 1 - slot_;
  offload_rule_set set{};
  set.count = static_cast<__u32>(rules.size());
  set.slot = next;
  for (std::size_t i = 0; i < rules.size(); ++i) set.rules[i] = rules[i].fields;
  clear_counters(next);
  const int inner = map(next == 0 ? "rule_set_0" : "rule_set_1");
  const std::uint32_t first = 0;
  check_port(::bpf_map_update_elem(inner, &first, &set, BPF_ANY), "writing rules");
  check_port(::bpf_map_update_elem(map("rule_set"), &first, &inner, BPF_ANY), "changing rules");
  slot_ = next;
  rules_ = std::move(rules);
}

std::vector<RuleCount> Steering::counts() const {
  std::vector<RuleCount> counts;
  std::vector<offload_counter> of_processors(processors_);
  for (std::size_t i = 0; i <= rules_.size(); ++i) {
    const bool is_rule = i < rules_.size();
    const std::size_t index = is_rule ? i : std::size_t{OFFLOAD_MOST_RULES};
    const auto key = static_cast<std::uint32_t>(slot_ * OFFLOAD_COUNTERS + index);
    check_port(::bpf_map_lookup_elem(map("counters"), &key, of_processors.data()),
               "reading counters of rules");
    RuleCount count{is_rule ? rules_[i].text : "no rule", 0, 0};
    for (const offload_counter& each : of_processors) {
      count.packets += each.packets;
      count.bytes += each.bytes;
    }
    counts.push_back(std::move(count));
  }
  return counts;
}

}  // namespace offload::packets
