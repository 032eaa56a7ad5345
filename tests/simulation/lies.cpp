#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>
#include <functional>

#include "kernels/channel_layout.hpp"
#include "tests/simulation/kernel/files.hpp"
#include "tests/simulation/trials.hpp"

/// A worker of this machine that changes its answers: in the memory that it shares with the
/// server, while the server's thread stands at any of its system calls.
namespace offload::simulation {
namespace {

using kernels::ChannelLayout;
using kernels::Packet;

/// The content of a response, as it lies there: in packets or plain.
class Content {
 public:
  Content(std::uint8_t* slot) : packets_(reinterpret_cast<Packet*>(slot)) {}

  [[nodiscard]] Packet& header() { return packets_[0]; }
  [[nodiscard]] std::uint32_t length() const { return packets_[0].data[0]; }
  [[nodiscard]] std::uint32_t word(std::uint32_t at) {
    std::uint32_t value = 0;
    for (std::uint32_t i = 0; i < 4; ++i) value = value << 8U | byte(at + i);
    return value;
  }
  void set_word(std::uint32_t at, std::uint32_t value) {
    for (std::uint32_t i = 4; i-- != 0; value >>= 8U)
      byte(at + i) = static_cast<std::uint8_t>(value);
  }

 private:
  std::uint8_t& byte(std::uint32_t i) {
    auto* const bytes = reinterpret_cast<std::uint8_t*>(packets_);
    if (length() > kernels::kMaxPacketPayload)
      return bytes[kernels::kMaxPackets * sizeof(Packet) + i];
    return bytes[(1 + i / kernels::kPacketData) * sizeof(Packet) + i % kernels::kPacketData];
  }
  Packet* packets_;
};

void lie_in(Content content, Random& random) {
  const std::uint32_t length = content.length();
  const std::uint32_t count = content.header().data[2];
  if (count == 0 || length > kernels::kMaxBatchContent || random.one_in(4)) {
    std::uint32_t& word = content.header().data[random.below(3)];
    word = random.one_in(2) ? word + static_cast<std::uint32_t>(random.below(3)) - 1
                            : static_cast<std::uint32_t>(random.below(6000));
    return;
  }
  // One of its frames: its size, two of them as one, or any word.
  std::uint32_t at = 0;
  for (std::uint64_t skip = random.below(count); skip != 0; --skip) {
    const std::uint32_t next = at + content.word(at);
    if (next <= at || next > length || length - next < 24) break;  // a lie from before
    at = next;
  }
  const std::uint32_t size = content.word(at);
  const std::uint32_t next = at + size;
  const auto set_size = [&](std::uint32_t bytes) {
    content.set_word(at, bytes);
    content.set_word(at + 8, bytes - 12);
  };
  if (random.one_in(3) && next > at && next <= length && length - next >= 12) {
    set_size(size + content.word(next));
  } else if (random.one_in(2)) {
    set_size(size + static_cast<std::uint32_t>(random.below(random.one_in(2) ? 60 : 100'000)));
  } else if (length > 4) {
    const auto word =
        static_cast<std::uint32_t>(random.next());  // drawn before its place, by each compiler
    content.set_word(static_cast<std::uint32_t>(random.below(length - 4)), word);
  }
}

/// The answers of each of its channels.
void visit(Process& worker, const ChannelLayout& layout, const std::function<void(Content)>& see) {
  for (const auto& [fd, file] : worker.fds) {
    const auto memory = std::dynamic_pointer_cast<RealFile>(file);
    if (!memory || (::fcntl(memory->real, F_GETFL) & O_ACCMODE) != O_RDWR) continue;
    struct stat status {};
    if (::fstat(memory->real, &status) != 0 ||
        static_cast<std::uint64_t>(status.st_size) != layout.response_bytes) {
      continue;
    }
    void* const at =
        ::mmap(nullptr, layout.response_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory->real, 0);
    if (at == MAP_FAILED) continue;
    auto* const slots = static_cast<std::uint8_t*>(at) + sizeof(kernels::ResponseHeader);
    for (std::uint32_t i = 0; i < layout.depth; ++i) {
      Content content(slots + i * layout.slot_stride);
      see(content);
    }
    ::munmap(at, layout.response_bytes);
  }
}

ChannelLayout layout_of(const Scene& s) {
  return kernels::make_layout(s.server.max_concurrent_messages, s.server.max_message_length);
}

bool is_local(const Scene& s) {
  return s.server.comch.starts_with("unix:");
}

}  // namespace

void worker_lies(Scene& s) {
  if (!is_local(s)) return;
  const Fleet::Worker& worker = s.one_worker();
  const auto layout = layout_of(s);
  Random random(s.kernel.random.next());
  Peer peer(s.clients);
  s.kernel.on_step = [&] {
    const Fiber& at = *s.kernel.current;
    if (at.process != s.process || !at.name.starts_with("io-") || !random.one_in(10)) return;
    visit(*worker.process, layout, [&](Content content) {
      if (content.length() <= layout.max_content && random.one_in(2)) lie_in(content, random);
    });
  };
  for (int i = 0; i < 30; ++i) {
    const std::uint64_t length = s.length();  // drawn before the count, by each compiler
    peer.ask(1 + s.kernel.random.below(40), length);
    while (peer.owed() != 0) {
      // An answer that never becomes whole makes a worker stuck.
      const auto frame = peer.receive(6 * kSecond);
      if (!frame) return s.fail("beside a worker that lies a client is not answered");
      const std::size_t most = std::max<std::size_t>(peer.oldest().size(), kernels::kLongestDigest);
      if (frame->id == protocol::MessageId::error) {
        if (!frame->refuses(protocol::Refusal::worker_failed) &&
            !frame->refuses(protocol::Refusal::worker_unavailable)) {
          return s.fail("a worker that lies has a client refused for something else");
        }
      } else if (frame->id != protocol::MessageId::client_response ||
                 frame->payload.size() > most) {
        return s.fail("a worker that lies has a client get more than its request allows");
      }
      peer.forget_oldest();
    }
  }
  s.kernel.on_step = {};
  s.one_worker();
  if (!s.answers(kSecond)) s.fail("after its worker has lied a client is not answered");
}

/// It says of each batch that it has another number of answers, or fewer bytes than they have.
void worker_miscounts(Scene& s) {
  if (!is_local(s)) return;
  Fleet::Worker& worker = s.one_worker();
  const auto layout = layout_of(s);
  std::vector<std::uint32_t> before;
  s.fleet.hang(worker, true);
  visit(*worker.process, layout, [&](Content content) { before.push_back(content.header().flag); });
  Peer peer(s.clients);
  const std::uint64_t size = s.length();  // drawn before the count, by each compiler
  peer.ask(2 + s.kernel.random.below(30), size);
  s.kernel.sleep(100 * kMillisecond);
  freeze_threads(*s.process, "io-", true);
  s.fleet.hang(worker, false);
  s.kernel.sleep(50 * kMillisecond);
  const bool of_length = s.kernel.random.one_in(2);
  const auto more = static_cast<std::uint32_t>(1 + s.kernel.random.below(8));
  std::uint64_t lies = 0;
  std::size_t slot = 0;
  visit(*worker.process, layout, [&](Content content) {
    std::uint32_t& count = content.header().data[2];
    if (before[slot++] == content.header().flag || count < 2) return;
    if (content.length() > layout.max_content) return;
    if (of_length) {
      std::uint32_t& length = content.header().data[0];
      const bool is_plain = length > kernels::kMaxPacketPayload;
      if (length <= more || (length - more > kernels::kMaxPacketPayload) != is_plain) return;
      length -= more;
      ++lies;
    } else {
      lies += count;
      count += s.kernel.random.one_in(2) ? 1U : ~0U;
    }
  });
  freeze_threads(*s.process, "io-", false);
  std::uint64_t refused = 0;
  while (peer.owed() != 0) {
    const auto frame = peer.receive(kSecond);
    if (!frame) return s.fail("beside a worker that miscounts a client is not answered");
    refused += frame->refuses(protocol::Refusal::worker_failed) ? 1U : 0U;
    peer.forget_oldest();
  }
  if (refused < lies) s.fail("a batch with a wrong count or length is taken for one");
}

}  // namespace offload::simulation
