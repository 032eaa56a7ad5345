// For programs of tests that start no thread: ONE_THREAD in tests/CMakeLists.txt.
#include <pthread.h>

#include <cstdio>
#include <cstdlib>

/// Replaces libc's function, also for libstdc++: ends the program.
int pthread_create(pthread_t* /*thread*/, const pthread_attr_t* /*attributes*/,
                   void* (* /*start*/)(void*), void* /*argument*/) noexcept {
  static_cast<void>(std::fputs(
      "A thread starts in a program of tests that is declared ONE_THREAD, which ThreadSanitizer "
      "does not run: remove the word from its CMakeLists.txt.\n",
      stderr));
  std::abort();
}
