// For programs of tests that are ONE_THREAD or have THREADED sources: tests/CMakeLists.txt.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

/// The ends of the paths of sources whose tests may start threads; null at the end. CMake writes
/// it.
extern const char* const kThreadedSources[];

namespace {

/// Returns whether a thread may start now. Outside of tests it may where there is any such source.
bool may_start() {
  const testing::TestInfo* const test = testing::UnitTest::GetInstance()->current_test_info();
  if (test == nullptr) return kThreadedSources[0] != nullptr;
  const std::string_view file = test->file();
  for (const char* const* source = kThreadedSources; *source != nullptr; ++source) {
    if (file.ends_with(*source)) return true;
  }
  return false;
}

}  // namespace

/// Replaces libc's function, also for libstdc++: ends the program where no thread may start.
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) noexcept {
  if (!may_start()) {
    static_cast<void>(std::fputs(
        "A thread starts in a test that is not declared THREADED, so ThreadSanitizer does not run "
        "it: change that in the program's CMakeLists.txt.\n",
        stderr));
    std::abort();
  }
  const auto create =
      reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  return create(thread, attributes, start, argument);
}
