#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "packets/rule.hpp"

struct bpf_link;
struct bpf_object;

namespace offload::packets {

/// The frames that a rule has matched since it was set.
struct RuleCount {
  std::string rule;  ///< as it was written; "no rule" for other frames
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
};

/// The XDP program of an interface, which passes each frame to a socket or to the kernel's stack,
/// or drops it, by rules. It is attached by a link that this process holds: the kernel detaches it
/// when the process ends in any way. One thread.
class Steering {
 public:
  /// Loads the program. Throws Error; not_permitted says which capability is missing.
  Steering(std::string interface, unsigned interface_index);
  Steering& operator=(Steering&&) = delete;
  ~Steering();

  /// Sets the socket for the frames of a hardware queue that a rule sends to `queue`. Throws Error.
  void add_socket(std::uint32_t hardware_queue, std::uint32_t queue, int socket);
  /// Attaches the program: rules hold from here on. Throws Error: in_use if the interface has
  /// another one.
  void attach();
  void detach() noexcept;

  /// Puts other rules in the place of those that hold: at once for each frame, and on return no
  /// frame is being looked at by the old ones. Their counts begin at 0. Costs a grace period of the
  /// kernel's, some milliseconds. Throws Error: invalid_value for too many.
  void set_rules(std::vector<Rule> rules);

  /// Returns the count of each rule in order, and last of no rule. Takes a system call for each:
  /// not for the data path.
  [[nodiscard]] std::vector<RuleCount> counts() const;

 private:
  struct Close {
    void operator()(bpf_object* object) const noexcept;
    void operator()(bpf_link* link) const noexcept;
  };
  [[nodiscard]] int map(const char* name) const;
  void clear_counters(std::uint32_t slot) const;
  [[nodiscard]] std::string refusal_of(int program) const;

  std::string interface_;
  unsigned interface_index_;
  std::unique_ptr<bpf_object, Close> object_;
  std::unique_ptr<bpf_link, Close> link_;
  std::vector<Rule> rules_;
  std::uint32_t slot_ = 0;  ///< of the set that holds
  std::uint32_t processors_;
};

}  // namespace offload::packets
