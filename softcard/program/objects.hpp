#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "softcard/card/card.hpp"
#include "softcard/program/link.hpp"
#include "softcard/program/network.hpp"
#include "softcard/program/registers.hpp"

namespace offload::softcard {

/// The objects that owners have made through the module, and the card that uses them. One thread.
class Objects : public model::Events {
 public:
  Objects(Link& link, model::Card& card, Network& network)
      : link_(link), card_(card), network_(network) {
    card_.set_events(this);
  }

  /// Answers the module's requests, looks at doorbells, and reports the events that are due.
  /// Returns whether there was something.
  bool progress();

  /// The device fails: nothing is carried out any more, no object can be made or changed, and
  /// owners get an event. It works again when all objects are gone: at once if it has none.
  void reset();
  [[nodiscard]] bool has_failed() const noexcept { return has_failed_; }

  void pair_event(std::uint32_t pair, model::PairEvent event) override;
  void state_changed(std::uint32_t pair, model::State state) override;
  void completions_in_error(std::uint32_t completions) override;
  void limit_reached(std::uint32_t receives) override;

 private:
  struct Queue {
    Area entries;
    Area record;
    std::uint32_t uar = 0;
  };
  struct CompletionQueue : Queue {
    model::Completions* queue = nullptr;
  };
  struct PairQueue : Queue {
    Area sends;  ///< of raw packets
    bool is_raw = false;
  };
  struct SharedQueue : Queue {
    model::Receives* queue = nullptr;
  };

  void carry_out(const softcard_request& request);
  void make(const softcard_request& request);
  void free_object(const softcard_request& request);
  void make_memory(std::uint32_t key, const softcard_mr& wanted);
  void make_completions(std::uint32_t number, const softcard_cq& wanted);
  void make_receives(std::uint32_t number, const softcard_srq& wanted);
  void make_pair(std::uint32_t number, const softcard_qp& wanted);
  void make_flow(std::uint32_t number, const softcard_flow& wanted);
  void change_pair(std::uint32_t number, const softcard_state& wanted);
  void free_completions(std::uint32_t number);
  void free_pair(std::uint32_t number);
  [[nodiscard]] bool is_empty() const noexcept;
  /// Lets a device that has failed work again, if all objects are gone.
  void recover();

  Link& link_;
  model::Card& card_;
  Network& network_;
  bool has_failed_ = false;
  std::map<std::uint32_t, Registers> registers_;
  std::map<std::uint32_t, Area> memory_;
  std::map<std::uint32_t, CompletionQueue> completions_;
  std::map<std::uint32_t, SharedQueue> receives_;
  std::map<std::uint32_t, PairQueue> pairs_;
  std::size_t raw_pairs_ = 0;
};

}  // namespace offload::softcard
