#include "tests/simulation/kernel/calls.hpp"
#include "tests/simulation/kernel/stores.hpp"

using namespace offload::simulation;  // NOLINT

#pragma GCC visibility push(default)
#pragma GCC diagnostic ignored "-Wmissing-declarations"
constexpr std::initializer_list<int> kNoErrors{};
constexpr std::initializer_list<int> kDuplicateErrors{EMFILE};
constexpr std::initializer_list<int> kSealErrors{EBUSY, EPERM};

static bool is_pipe(int fd) {
  return is_ours(fd) && (self().get<PipeReader>(fd) || self().get<PipeWriter>(fd));
}

extern "C" {

// ---- Files and memory

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const auto mode = va_arg(rest, mode_t);
  va_end(rest);
  // A memfd is opened again for reading only.
  const std::string_view text(path);
  constexpr std::string_view kDescriptors = "/proc/self/fd/";
  const int fd = text.starts_with(kDescriptors) ? std::atoi(path + kDescriptors.size()) : -1;
  if (const auto file = is_ours(fd) ? self().get<RealFile>(fd) : nullptr) {
    const int real = OFFLOAD_LIBC(open)(
        (std::string(kDescriptors) + std::to_string(file->real)).c_str(), flags, mode);
    const Call call("open", {EMFILE, ENFILE, ENOMEM, EACCES});
    if (call.refused()) {
      OFFLOAD_LIBC(close)(real);
      return call.refusal();
    }
    return real < 0 ? real : self().add(std::make_shared<RealFile>(real));
  }
  // This is an end of a doorbell that was passed.
  if (is_pipe(fd)) {
    const Call call("open", {EMFILE, ENFILE, ENOMEM, EACCES});
    return call.refused() ? call.refusal() : self().add(self().get<Object>(fd));
  }
  if (!is_path(path)) return OFFLOAD_LIBC(open)(path, flags, mode);
  const Call call("open", {EMFILE, ENFILE, ENOMEM, EACCES, ENOSPC});
  if (call.refused()) return call.refusal();
  return self().add(std::make_shared<EventFd>());  // the lock beside a path
}
// A hardened program calls open() under this name if the flags are not constant.
int __open_2(const char* path, int flags) {  // NOLINT(bugprone-reserved-identifier)
  return open(path, flags, mode_t{});
}
int flock(int fd, int operation) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(flock)(fd, operation);
  const Call call("flock", {EWOULDBLOCK, ENOLCK, EINTR});
  return call.refused() ? call.refusal() : 0;
}
int stat(const char* path, struct stat* status) {
  if (!is_path(path)) return OFFLOAD_LIBC(stat)(path, status);
  const Call call("stat", {ENOMEM, EACCES});
  if (call.refused()) return call.refusal();
  *status = {};
  return 0;
}
int lstat(const char* path, struct stat* status) {
  if (!is_path(path)) return OFFLOAD_LIBC(lstat)(path, status);
  const Call call("lstat", {ENOMEM, EACCES});
  if (call.refused()) return call.refusal();
  const auto there = kernel->names.find(path);
  if (there == kernel->names.end()) return fails(ENOENT);
  *status = {};
  status->st_mode = S_IFSOCK;
  status->st_ino = reinterpret_cast<ino_t>(there->second.lock().get());
  return 0;
}
int unlink(const char* path) {
  if (!is_path(path)) return OFFLOAD_LIBC(unlink)(path);
  const Call call("unlink", {EACCES, EROFS});
  if (call.refused()) return call.refusal();
  return kernel->names.erase(path) != 0 ? 0 : fails(ENOENT);
}
int fchmod(int fd, mode_t mode) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(fchmod)(fd, mode);
  const Call call("fchmod", {EPERM, EIO});
  return call.refused() ? call.refusal() : 0;
}
int memfd_create(const char* name, unsigned flags) {
  if (!inside()) return OFFLOAD_LIBC(memfd_create)(name, flags);
  const Call call("memfd_create", {EMFILE, ENFILE, ENOMEM});
  if (call.refused()) return call.refusal();
  const int real = OFFLOAD_LIBC(memfd_create)(name, flags);
  return real < 0 ? real : self().add(std::make_shared<RealFile>(real));
}
int fstat(int fd, struct stat* status) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(fstat)(fd, status);
  const Call call("fstat", {ENOMEM});
  if (call.refused()) return call.refusal();
  const auto file = self().get<RealFile>(fd);
  *status = {};
  if (is_pipe(fd)) status->st_mode = S_IFIFO;
  return file ? OFFLOAD_LIBC(fstat)(file->real, status) : 0;
}
int ftruncate(int fd, off_t size) {
  if (!is_ours(fd)) return OFFLOAD_LIBC(ftruncate)(fd, size);
  const Call call("ftruncate", {ENOSPC, EINTR});
  if (call.refused()) return call.refusal();
  const auto file = self().get<RealFile>(fd);
  return file ? OFFLOAD_LIBC(ftruncate)(file->real, size) : fails(EINVAL);
}
int fcntl(int fd, int command, ...) {
  va_list rest;
  va_start(rest, command);
  const auto argument = va_arg(rest, long);
  va_end(rest);
  if (!is_ours(fd)) return OFFLOAD_LIBC(fcntl)(fd, command, argument);
  const Call call("fcntl", command == F_DUPFD_CLOEXEC ? kDuplicateErrors
                           : command == F_ADD_SEALS   ? kSealErrors
                                                      : kNoErrors);
  if (call.refused()) return call.refusal();
  if (command == F_DUPFD_CLOEXEC) return self().add(self().get<Object>(fd));
  const auto file = self().get<RealFile>(fd);
  if (file) return OFFLOAD_LIBC(fcntl)(file->real, command, argument);
  // The access mode of a doorbell's end; all do not block.
  return command != F_GETFL           ? 0
         : self().get<PipeWriter>(fd) ? O_WRONLY | O_NONBLOCK
         : self().get<PipeReader>(fd) ? O_RDONLY | O_NONBLOCK
                                      : O_RDWR | O_NONBLOCK;
}
void* mmap(void* at, size_t size, int protection, int flags, int fd, off_t offset) {
  if (!inside()) return OFFLOAD_LIBC(mmap)(at, size, protection, flags, fd, offset);
  const Call call("mmap", {ENOMEM, EAGAIN, ENFILE});
  if (call.refused()) return reinterpret_cast<void*>(call.refusal());
  const auto file = is_ours(fd) ? self().get<RealFile>(fd) : nullptr;
  void* const made =
      OFFLOAD_LIBC(mmap)(at, size, protection, flags, file ? file->real : fd, offset);
  if (file && made != MAP_FAILED && (protection & PROT_WRITE) != 0) note_mapping(made, size);
  if (file && kernel->watches_requests && self().name.starts_with("worker") &&
      (protection & PROT_WRITE) == 0) {
    // Another view, which stays when the worker unmaps its own.
    void* const view = OFFLOAD_LIBC(mmap)(nullptr, size, PROT_READ, MAP_SHARED, file->real, offset);
    if (view != MAP_FAILED) self().requests.push_back({static_cast<const char*>(view), size});
  }
  return made;
}
int getrlimit(__rlimit_resource_t resource, rlimit* limit) {
  if (!inside() || resource != RLIMIT_NOFILE) return OFFLOAD_LIBC(getrlimit)(resource, limit);
  limit->rlim_cur = limit->rlim_max = kFirstFd + self().most_fds;
  return 0;
}
int setrlimit(__rlimit_resource_t resource, const rlimit* limit) {
  if (!inside()) return OFFLOAD_LIBC(setrlimit)(resource, limit);
  const Call call("setrlimit", {EPERM});
  return call.refused() ? call.refusal() : 0;
}
ssize_t getrandom(void* data, size_t size, unsigned flags) {
  if (!inside()) return OFFLOAD_LIBC(getrandom)(data, size, flags);
  const Call call("getrandom", {ENOSYS});
  if (call.refused()) return call.refusal();
  for (size_t i = 0; i < size; ++i) {
    static_cast<unsigned char*>(data)[i] = static_cast<unsigned char>(kernel->random.next());
  }
  return static_cast<ssize_t>(size);
}

// ---- Time, threads, processes

int clock_gettime(clockid_t clock, timespec* time) {
  if (!inside()) return OFFLOAD_LIBC(clock_gettime)(clock, time);
  const Call call("clock");
  kernel->now += 50;
  time->tv_sec = kernel->now / kSecond;
  time->tv_nsec = kernel->now % kSecond;
  if (kernel->on_step) kernel->on_step();
  kernel->yield();
  return 0;
}
int sched_yield() {
  if (!inside()) return OFFLOAD_LIBC(sched_yield)();
  const Call call("sched_yield");
  kernel->now += 2000;
  kernel->yield();
  return 0;
}
pid_t getpid() {
  return inside() ? self().pid : OFFLOAD_LIBC(getpid)();
}
void _exit(int status) {
  if (!inside()) OFFLOAD_LIBC(_exit)(status);
  const Call call("_exit");
  self().status = status;
  kernel->kill(self());
  kernel->end_fiber();
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) {
  if (!inside()) return OFFLOAD_LIBC(pthread_create)(thread, attributes, run, argument);
  const Call call("pthread_create", {EAGAIN});
  if (call.refused()) return call.error();
  *thread = kernel->add_fiber(self(), "thread", [run, argument] { run(argument); }).id;
  step("pthread_create");
  return 0;
}
int pthread_join(pthread_t thread, void** result) {
  if (!inside()) return OFFLOAD_LIBC(pthread_join)(thread, result);
  const Call call("pthread_join");
  kernel->wait([thread] { return kernel->fibers[thread - 1]->done; });
  return 0;
}
int pthread_detach(pthread_t thread) {
  return inside() ? 0 : OFFLOAD_LIBC(pthread_detach)(thread);
}
pthread_t pthread_self() {
  return inside() ? kernel->current->id : OFFLOAD_LIBC(pthread_self)();
}
int pthread_setname_np(pthread_t thread, const char* name) {
  if (!inside()) return OFFLOAD_LIBC(pthread_setname_np)(thread, name);
  const Call call("pthread_setname");
  kernel->current->name = name;
  return 0;
}
int pthread_sigmask(int how, const sigset_t* set, sigset_t* former) {
  return inside() ? 0 : OFFLOAD_LIBC(pthread_sigmask)(how, set, former);
}
__sighandler_t signal(int number, __sighandler_t handler) {
  return inside() ? SIG_DFL : OFFLOAD_LIBC(signal)(number, handler);
}
int pthread_mutex_lock(pthread_mutex_t* mutex) {
  if (!inside()) return OFFLOAD_LIBC(pthread_mutex_lock)(mutex);
  const Call call("pthread_mutex_lock");
  kernel->yield();
  while (::pthread_mutex_trylock(mutex) == EBUSY) kernel->sleep(1000);
  ++kernel->current->locks;
  return 0;
}
int pthread_mutex_unlock(pthread_mutex_t* mutex) {
  if (inside()) --kernel->current->locks;
  return OFFLOAD_LIBC(pthread_mutex_unlock)(mutex);
}
/// A condition may wake up without a reason: it does so every millisecond.
int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  if (!inside()) return OFFLOAD_LIBC(pthread_cond_wait)(condition, mutex);
  const Call call("pthread_cond_wait");
  pthread_mutex_unlock(mutex);
  kernel->sleep(kMillisecond);
  return pthread_mutex_lock(mutex);
}
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* time) {
  if (!inside()) return OFFLOAD_LIBC(pthread_cond_clockwait)(condition, mutex, clock, time);
  const Call call("pthread_cond_wait");
  if (time_of(*time) <= kernel->now) return ETIMEDOUT;
  return pthread_cond_wait(condition, mutex);
}
/// libstdc++ waits for promises and latches by futexes.
long syscall(long number, ...) {
  va_list rest;
  va_start(rest, number);
  std::array<long, 6> arguments{};
  for (long& argument : arguments) argument = va_arg(rest, long);
  va_end(rest);
  if (inside() && number == SYS_futex) {
    const Call call("futex");
    const auto* const word = reinterpret_cast<const std::uint32_t*>(arguments[0]);
    const bool waits = (arguments[1] & 0xf) == 0 || (arguments[1] & 0xf) == 9;
    if (!waits) return 0;  // a waiting thread reads the word itself
    const auto seen = static_cast<std::uint32_t>(arguments[2]);
    kernel->wait([word, seen] { return __atomic_load_n(word, __ATOMIC_ACQUIRE) != seen; },
                 arguments[3] != 0 ? kernel->now + kMillisecond : kNever);
    return 0;
  }
  return OFFLOAD_LIBC(syscall)(number, arguments[0], arguments[1], arguments[2], arguments[3],
                               arguments[4], arguments[5]);
}

}  // extern "C"
#pragma GCC visibility pop
