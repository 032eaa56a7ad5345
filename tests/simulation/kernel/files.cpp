#include "tests/simulation/kernel/files.hpp"

#include <dlfcn.h>
#include <sys/socket.h>

#include <cstring>

namespace offload::simulation {

RealFile::~RealFile() {
  static auto* const real_close = reinterpret_cast<int (*)(int)>(::dlsym(RTLD_NEXT, "close"));
  real_close(real);
}

PipeWriter::~PipeWriter() {
  if (const auto end = reader.lock()) {
    end->ended = true;
    ++end->in_wakes;
  }
}

// ---- Sockets

void Socket::join(const std::shared_ptr<Socket>& a, const std::shared_ptr<Socket>& b) {
  a->peer = b;
  b->peer = a;
  b->connected = true;
  b->is_local = a->is_local;
}

Socket::~Socket() {
  if (cut) {
    // The kernel sends unacknowledged bytes again, for this long.
    if (under_way == 0) return;
    ++kernel->orphans;
    if (user_timeout != 0) kernel->at(kernel->now + user_timeout, [] { --kernel->orphans; });
    return;
  }
  const auto other = peer.lock();
  if (!other) return;
  if (!input.empty() || !packets.empty()) {
    other->reset(ECONNRESET);
  } else if (!output_ended && !broken) {
    end_sending();
  }
}

std::uint32_t Socket::poll() const {
  if (!connected) return connecting ? 0U : EPOLLOUT | EPOLLHUP;
  std::uint32_t mask = 0;
  if (!input.empty() || !packets.empty() || input_ended || error != 0) mask |= EPOLLIN;
  if (input_ended) mask |= EPOLLRDHUP;
  if (error != 0) mask |= EPOLLERR;
  if (broken || (input_ended && output_ended)) mask |= EPOLLHUP | EPOLLRDHUP | EPOLLIN;
  if (broken || (!wants_room && under_way < kernel->socket_room)) mask |= EPOLLOUT;
  return mask;
}

ssize_t Socket::send(std::span<const iovec> pieces, std::vector<File> files) {
  std::string bytes;
  for (const iovec& piece : pieces) {
    bytes.append(static_cast<const char*>(piece.iov_base), piece.iov_len);
  }
  const auto other = peer.lock();
  if (error != 0) {
    errno = std::exchange(error, 0);
    return -1;
  }
  if (broken || output_ended || !connected || (is_local && !other)) {
    errno = EPIPE;
    return -1;
  }
  const std::size_t room = kernel->socket_room - std::min(under_way, kernel->socket_room);
  if (room == 0 || (is_local && room < bytes.size())) {
    wants_room = true;
    errno = EAGAIN;
    return -1;
  }
  if (is_local) {
    under_way += bytes.size();
    const auto size = static_cast<ssize_t>(bytes.size());
    other->packets.push_back({std::move(bytes), std::move(files)});
    ++other->in_wakes;
    return size;
  }
  std::size_t taken = std::min(room, bytes.size());
  const bool may_split = kernel->split_one_in != 0;
  // A socket with room takes a whole short control message, and the programs rely on that.
  const bool of_a_client = port == kernel->clients_port || peer_port == kernel->clients_port;
  if (may_split && taken > (of_a_client ? 1U : 4096U) &&
      kernel->random.one_in(kernel->split_one_in)) {
    taken = 1 + kernel->random.below(taken);
  }
  if (taken < bytes.size() && !wants_room) fill_for_a_moment();
  if (cut && under_way == 0 && user_timeout != 0) {
    kernel->at(kernel->now + user_timeout, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->reset(ETIMEDOUT);
    });
  }
  under_way += taken;
  sent += taken;
  if (cut) return static_cast<ssize_t>(taken);
  for (std::size_t at = 0; at < taken;) {
    std::size_t size = taken - at;
    if (may_split && kernel->random.one_in(kernel->split_one_in)) {
      size = 1 + kernel->random.below(size);
    }
    last_arrival =
        std::max(last_arrival + 1, kernel->now + 1000 +
                                       static_cast<Time>(kernel->random.below(
                                           static_cast<std::uint64_t>(kernel->longest_delay))));
    kernel->at(last_arrival, [weak = peer, self = weak_from_this(), part = bytes.substr(at, size)] {
      if (const auto to = weak.lock()) return to->arrive(part);
      if (const auto from = self.lock()) from->reset(ECONNRESET);
    });
    at += size;
  }
  return static_cast<ssize_t>(taken);
}

void Socket::fill_for_a_moment() {
  wants_room = true;
  kernel->at(kernel->now + static_cast<Time>(kernel->random.below(100'000)),
             [weak = weak_from_this()] {
               const auto self = weak.lock();
               if (!self || self->under_way >= kernel->socket_room) return;
               self->wants_room = false;
               ++self->out_wakes;
             });
}

void Socket::arrive(const std::string& bytes) {
  if (broken || cut) return;
  input += bytes;
  ++in_wakes;
}

void Socket::arrive_end() {
  input_ended = true;
  ++in_wakes;
}

ssize_t Socket::receive(std::span<const iovec> room) {
  if (const auto from = peer.lock(); from && from->floods && input.empty())
    input.assign(16384, 'x');
  if (input.empty()) {
    if (error != 0) {
      errno = std::exchange(error, 0);
      return -1;
    }
    if (input_ended || broken) return 0;
    errno = EAGAIN;
    return -1;
  }
  std::size_t done = 0;
  for (const iovec& piece : room) {
    const std::size_t part = std::min(piece.iov_len, input.size() - done);
    std::memcpy(piece.iov_base, input.data() + done, part);
    done += part;
  }
  input.erase(0, done);
  if (const auto from = peer.lock()) {
    from->under_way -= std::min(from->under_way, done);
    if (from->wants_room && from->under_way <= kernel->socket_room / 2) {
      from->wants_room = false;
      ++from->out_wakes;
    }
  }
  return static_cast<ssize_t>(done);
}

void Socket::reset(int why) {
  if (broken) return;
  broken = true;
  error = why;
  ++in_wakes;
  ++out_wakes;
}

void Socket::end_sending() {
  if (output_ended) return;
  output_ended = true;
  const auto other = peer.lock();
  if (!other || cut) return;
  if (is_local) return other->arrive_end();
  last_arrival = std::max(last_arrival + 1, kernel->now + 1000);
  kernel->at(last_arrival, [weak = peer] {
    if (const auto to = weak.lock()) to->arrive_end();
  });
}

// ---- epoll

std::uint32_t Epoll::ready(const Item& item, const Object& object) {
  const std::uint32_t mask = object.poll() & (item.event.events | EPOLLERR | EPOLLHUP);
  if ((item.event.events & EPOLLET) == 0 || mask == 0) return mask;
  const bool in =
      object.arrivals() != item.in_seen && (item.event.events & (EPOLLIN | EPOLLRDHUP)) != 0;
  const bool out = object.out_wakes != item.out_seen && (item.event.events & EPOLLOUT) != 0;
  return in || out ? mask : 0;
}

std::uint64_t Epoll::arrivals() const {
  std::uint64_t count = 0;
  for (const auto& [fd, item] : items) {
    if (const auto object = item.object.lock()) count += object->arrivals();
  }
  return count;
}

std::uint32_t Epoll::poll() const {
  for (const auto& [fd, item] : items) {
    const auto object = item.object.lock();
    if (object && ready(item, *object) != 0) return EPOLLIN;
  }
  return 0;
}

int Epoll::take(epoll_event* events, int most) {
  int count = 0;
  for (auto entry = items.begin(); entry != items.end() && count < most;) {
    const auto object = entry->second.object.lock();
    if (!object) {
      entry = items.erase(entry);
      continue;
    }
    if (const std::uint32_t mask = ready(entry->second, *object); mask != 0) {
      events[count].events = mask;
      events[count++].data = entry->second.event.data;
      entry->second.in_seen = object->arrivals();
      entry->second.out_seen = object->out_wakes;
    }
    ++entry;
  }
  return count;
}

}  // namespace offload::simulation
