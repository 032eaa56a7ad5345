#include "apps/client/report/machine.hpp"

#include <fmt/core.h>
#include <sys/utsname.h>

#include <fstream>
#include <thread>

namespace offload::client {
namespace {

/// From /proc/cpuinfo (proc(5)); Arm's has no such line.
std::string processor_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return {};
}

}  // namespace

ThisMachine ThisMachine::here() {
  ThisMachine machine;
  utsname system{};
  if (::uname(&system) == 0) {
    machine.host = system.nodename;
    machine.system = fmt::format("{} {} {}", system.sysname, system.release, system.machine);
  }
  machine.processor = processor_model();
  machine.processors = std::thread::hardware_concurrency();
  return machine;
}

}  // namespace offload::client
