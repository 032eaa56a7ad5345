#pragma once

#include <string>

namespace offload::packets {

/// Returns the privileges that a port needs and this process lacks, as the end of a sentence: ";
/// CAP_BPF is missing (as root, or: setcap cap_bpf,cap_net_admin,cap_net_raw+ep PROGRAM)". Empty if
/// it lacks none.
std::string missing_privileges();

/// Throws the Error for a system call of a port that failed with `errnum`: not_permitted with the
/// missing privileges, not_supported for a kernel without AF_XDP, and so on.
[[noreturn]] void throw_port_error(const std::string& action, int errnum);

/// Passes a system call's result through; throws by throw_port_error() if it is negative.
int check_port(int result, const std::string& action);

}  // namespace offload::packets
