#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace offload::doctor {

/// The effect of a finding on server and worker, the worst last.
enum class Severity : std::uint8_t {
  good,     ///< as it should be
  note,     ///< they do without it
  warning,  ///< they run, but slower or for less long than they could
  error,    ///< what the machine is for cannot work
};

[[nodiscard]] constexpr const char* name_of(Severity severity) noexcept {
  constexpr const char* kNames[] = {"good", "note", "warning", "error"};
  return kNames[static_cast<std::size_t>(severity)];
}

struct Finding {
  Severity severity;
  std::string subject;     ///< such as "gpu 0000:01:00.0"
  std::string found;       ///< what is there
  std::string expected{};  ///< what should be; empty if that is what is there
  std::string mend{};      ///< what to do; empty if there is nothing to do
};

using Findings = std::vector<Finding>;

/// The use of this machine. A missing thing that a role does not need is a note.
enum class MachineRole : std::uint8_t {
  any,     ///< whatever it can: nothing that is missing is an error
  server,  ///< offload-server, with a network card
  worker,  ///< offload-worker on a GPU
};

}  // namespace offload::doctor
