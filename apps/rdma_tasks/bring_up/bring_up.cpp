#include "apps/rdma_tasks/bring_up/bring_up.hpp"

#include <utility>

#include "apps/rdma_tasks/bring_up/device_steps.hpp"
#include "apps/rdma_tasks/device/launcher.hpp"

namespace offload::rdma_tool {
namespace {

/// Completion queue entries for the rings of both ends.
constexpr std::uint32_t kCompletions = 512;

constexpr const char* kFixPairs =
    "look at dmesg; raise the limits of locked memory and of the device (ibv_devinfo -v); let a "
    "virtual machine map the card's registers";
constexpr const char* kFixWrite =
    "look at dmesg and at hw_counters of the port; if the device does not reach itself, run "
    "offload-rdma write between two machines";
constexpr const char* kFixOrder =
    "mstconfig -d CARD set PCI_WR_ORDERING=0, or offload-worker --data-path cpu";
constexpr const char* kFixCard =
    "offload-worker uses an emulator instead; in a virtual machine the kernel may offer no write "
    "combining";
constexpr const char* kFixRings = "offload-worker --data-path cpu, and report this line";

/// Returns the finding for parts that cannot be made: the initiator's, or else the device's.
StepFinding explain_parts(const std::string& gpu, const core::Error& error) {
  try {
    static_cast<void>(make_launcher(gpu));
  } catch (const core::Error&) {
    return {StepVerdict::error, "initiator", error.what(), "correct --gpu, or use --gpu none"};
  }
  return {StepVerdict::error, "queue pairs", error.what(), kFixPairs};
}

/// Returns the finding for rings that cannot be made.
StepFinding explain_rings(Rings kind, StepVerdict on_failure, const core::Error& error) {
  const std::string found = std::string("not available: ") + error.what();
  if (kind == Rings::proxy) return {on_failure, "proxy rings", found, kFixPairs};
  // A device that has none says so without a failed call.
  const bool has_none = error.code() == core::ErrorCode::not_supported && error.system_errno() == 0;
  if (has_none) return {StepVerdict::note, "card rings", found, ""};
  return {StepVerdict::warning, "card rings", found, kFixCard};
}

}  // namespace

BringUp::BringUp(const BringUpOptions& options, core::Signals& signals, Show show)
    : options_(options), signals_(signals), show_(std::move(show)) {}

const StepFindings& BringUp::run() {
  run_steps();
  return findings_;
}

bool BringUp::add(StepFinding finding) {
  show_(finding);
  findings_.push_back(std::move(finding));
  return findings_.back().verdict != StepVerdict::error;
}

bool BringUp::attempt(StepVerdict on_failure, const std::string& step, const std::string& to_fix,
                      const Action& action) {
  try {
    add({StepVerdict::good, step, action(), ""});
    return true;
  } catch (const core::Error& error) {
    add({on_failure, step, error.what(), to_fix});
    return false;
  }
}

void BringUp::run_steps() {
  if (!open_device()) return;
  if (!run_verbs()) return conclude(false, {}, {});
  const auto card = run_lanes(Rings::card, true);
  const auto proxy = run_lanes(Rings::proxy, !card.has_value());
  conclude(true, card, proxy);
}

bool BringUp::open_device() {
  try {
    const rdma::DeviceContext device = open_rdma_device(options_.run.path.device);
    has_atomics_ = device.has_atomics();
    options_.run.path.device = device.name();
    options_.run.rdma_port = choose_port(device);
    add(describe_device(device));
    if (!add(check_port(device, options_.run.rdma_port, options_.run))) return false;
    return add(check_path(device, options_.run.rdma_port, options_.run));
  } catch (const core::Error& error) {
    return add(explain_device(error));
  }
}

bool BringUp::run_verbs() {
  std::optional<Environment> environment;
  std::optional<VerbsLoopback> loopback;
  try {
    environment.emplace(options_.run, signals_, kCompletions);
  } catch (const core::Error& error) {
    return add(explain_parts(options_.run.gpu, error));
  }
  has_gpu_ = static_cast<bool>(environment->lanes().register_mapper());
  add({StepVerdict::good, "initiator", environment->initiator(), ""});
  if (!add(check_memory(*environment))) return false;
  add(check_gpu_memory(*environment));
  const bool transfers =
      attempt(StepVerdict::error, "queue pairs", kFixPairs,
              [&] { return loopback.emplace(*environment).described(); }) &&
      attempt(StepVerdict::error, "write", kFixWrite, [&] { return loopback->write(); }) &&
      attempt(StepVerdict::error, "send", kFixWrite, [&] { return loopback->send(); }) &&
      attempt(StepVerdict::error, "order", kFixWrite, [&] { return loopback->observe_order(); }) &&
      attempt(StepVerdict::error, "immediate", kFixOrder,
              [&] { return loopback->flag_by_immediate(); });
  if (!transfers) return false;
  if (has_atomics_) {
    return attempt(StepVerdict::error, "atomic", kFixOrder,
                   [&] { return loopback->flag_by_atomic(); });
  }
  return add({StepVerdict::note, "atomic", "not tried: the device has no atomic operations", ""});
}

std::optional<bool> BringUp::run_lanes(Rings kind, bool is_chosen) {
  const std::string name = kind == Rings::card ? "card" : "proxy";
  const bool matters = is_chosen && has_gpu_ && has_atomics_;
  const StepVerdict on_failure = matters ? StepVerdict::error : StepVerdict::warning;
  try {
    Environment environment(options_.run, signals_, kCompletions);
    std::optional<LaneLoopback> loopback;
    try {
      loopback.emplace(environment, kind);
    } catch (const core::Error& error) {
      add(explain_rings(kind, on_failure, error));
      return std::nullopt;
    }
    add({StepVerdict::good, name + " rings", loopback->carrier(), ""});
    return run_lane_steps(*loopback, name, on_failure);
  } catch (const core::Error& error) {
    add({on_failure, name + " rings", error.what(), kFixRings});
    return false;
  }
}

bool BringUp::run_lane_steps(LaneLoopback& loopback, const std::string& kind,
                             StepVerdict on_failure) {
  const auto step = [&](const char* what, const char* to_fix, const Action& action) {
    return attempt(on_failure, kind + " " + what, to_fix, action);
  };
  if (!step("write", kFixRings, [&] { return loopback.write(); })) return false;
  if (!step("immediate", kFixOrder, [&] { return loopback.flag_by_immediate(); })) return false;
  if (has_atomics_ && !step("atomic", kFixOrder, [&] { return loopback.flag_by_atomic(); })) {
    return false;
  }
  return step("rate", kFixRings, [&] { return loopback.rate(options_.rate_time); });
}

void BringUp::conclude(bool verbs, std::optional<bool> card, std::optional<bool> proxy) {
  if (!verbs) {
    add({StepVerdict::error, "data path", "none works on this device", "correct the error above"});
    return;
  }
  constexpr const char* kAuto = "--data-path auto is ";
  StepFinding finding{StepVerdict::good, "data path", kAuto, ""};
  const bool works = card ? *card : proxy.value_or(false);
  if (!has_atomics_) {
    finding.found += "cpu, because the device has no atomic operations";
    add(finding);
    return;
  }
  finding.found += has_gpu_ ? "gpu for a persistent kernel: " : "cpu without a GPU; with gpu ";
  finding.found += card ? "the card carries out its entries" : "a thread carries out its entries";
  if (!works) {
    finding.verdict = has_gpu_ ? StepVerdict::error : StepVerdict::warning;
    finding.found += ", which does not work";
    finding.to_fix = "offload-worker --data-path cpu";
  }
  add(finding);
}

}  // namespace offload::rdma_tool
