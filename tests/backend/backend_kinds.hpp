#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>

#include "backend/backend.hpp"
#include "core/error.hpp"

namespace offload::backend::test {

struct Kind {
  const char* name;
  std::function<std::unique_ptr<Backend>()> make;

  friend std::ostream& operator<<(std::ostream& out, const Kind& kind) { return out << kind.name; }
};

/// Tests of a back end of each kind; those that cannot run here are skipped.
class BackendTest : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    try {
      backend_ = GetParam().make();
    } catch (const core::Error& error) {
      if (error.code() != core::ErrorCode::not_found &&
          error.code() != core::ErrorCode::not_supported) {
        throw;
      }
      GTEST_SKIP() << error.what();
    }
  }

  std::unique_ptr<Backend> backend_;
};

}  // namespace offload::backend::test
