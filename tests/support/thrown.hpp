#pragma once

#include <gtest/gtest.h>

#include <optional>

#include "core/error.hpp"

namespace offload::support {

/// The Error that `action` throws; a failure of the test if it throws none.
template <class Action>
core::Error thrown_by(Action action) {
  try {
    action();
  } catch (const core::Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {core::ErrorCode::unexpected, "nothing was thrown"};
}

}  // namespace offload::support
