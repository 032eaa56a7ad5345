#include "progress/context.hpp"

#include <utility>

#include "core/error.hpp"
#include "core/log.hpp"

namespace offload::progress {

using core::ErrorCode;

std::string_view name_of(Context::State state) noexcept {
  switch (state) {
    case Context::State::idle: return "idle";
    case Context::State::starting: return "starting";
    case Context::State::running: return "running";
    case Context::State::stopping: return "stopping";
  }
  return "unknown";
}

Context::Context(std::string name, Turns turns) : name_(std::move(name)), turns_(turns) {}

Context::~Context() {
  if (state_ == State::idle) return;
  log_early_end("");
  // The subclass is destroyed already, so on_stop cannot be called.
  if (state_ != State::stopping) change_state(State::stopping);
  stopped();
}

void Context::connect(Engine& engine) {
  if (engine_ != nullptr) {
    core::throw_bad_state("context '" + name_ + "'", "connected", "connect to an engine");
  }
  engine_ = &engine;
}

void Context::set_state_callback(StateCallback callback, void* user_data) {
  expect_idle("set the state callback");
  state_callback_ = callback;
  state_user_data_ = user_data;
}

void Context::start() {
  expect_idle("start");
  if (engine_ == nullptr) {
    core::throw_bad_state("context '" + name_ + "'", "not connected to an engine", "start");
  }
  change_state(State::starting);
  if (state_ != State::starting) return;  // the callback has stopped it
  Step step{};
  try {
    step = on_start();
  } catch (...) {
    change_state(State::idle);
    throw;
  }
  if (step == Step::done) {
    started();
  } else {
    request_turn();
  }
}

void Context::stop() {
  if (state_ == State::idle) core::throw_bad_state("context '" + name_ + "'", "idle", "stop");
  if (state_ == State::stopping) return;
  change_state(State::stopping);
  if (on_stop() == Step::done) {
    stopped();
  } else {
    request_turn();
  }
}

void Context::stop_within(core::Duration limit) {
  if (state_ == State::idle) return;
  stop();
  engine_->run_until([this] { return state_ == State::idle; }, limit);
}

void Context::stopped() {
  assert(state_ == State::starting || state_ == State::stopping);
  // Ends, as no task is accepted in this state.
  while (Task* const task = in_flight_.front()) complete(*task, ErrorCode::shutdown);
  engine_->deactivate(*this);
  change_state(State::idle);
}

void Context::end(std::string_view what) noexcept {
  if (state_ == State::idle) return;
  log_early_end(what);
  if (state_ != State::stopping) {
    change_state(State::stopping);
    if (on_stop() == Step::done) return stopped();
  }
  if (state_ != State::stopping) return;
  on_abandon();
  stopped();
}

bool Context::poll() {
  if (turns_ == Turns::on_request && state_ == State::running) {
    engine_->deactivate(*this);  // first, as on_poll may request another turn
    return on_poll(kCompletionsAtOnce);
  }
  const bool worked = on_poll(kCompletionsAtOnce);
  const bool settled =
      (state_ == State::running && turns_ != Turns::always) || state_ == State::idle;
  if (settled && in_flight_.empty()) engine_->deactivate(*this);
  return worked;
}

void Context::change_state(State to) {
  const State from = std::exchange(state_, to);
  if (state_callback_ != nullptr) state_callback_(*this, from, to, state_user_data_);
}

void Context::log_early_end(std::string_view what) const {
  core::log_error("{}context '{}' is destroyed while the context is {}, with {} tasks in flight",
                  what, name_, name_of(state_), in_flight_count_);
}

void Context::expect_idle(std::string_view action) const {
  if (state_ != State::idle) {
    core::throw_bad_state("context '" + name_ + "'", name_of(state_), action);
  }
}

}  // namespace offload::progress
