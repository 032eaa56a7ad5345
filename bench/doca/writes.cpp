#include <doca_buf.h>
#include <doca_rdma.h>
#include <infiniband/verbs.h>

#include <memory>
#include <string>
#include <vector>

#include "bench/doca/calls.hpp"
#include "bench/doca/way.hpp"
#include "progress/task_pool.hpp"
#include "rdma_tasks/connection.hpp"
#include "tasks/memory/inventory.hpp"

namespace offload::bench {
namespace {

/// Returns the name of the first RDMA device, which the calls use, too. Throws Error.
std::string first_device() {
  const std::unique_ptr<ibv_device*[], void (*)(ibv_device**)> list(ibv_get_device_list(nullptr),
                                                                    ibv_free_device_list);
  if (!list || list[0] == nullptr) {
    throw core::Error(core::ErrorCode::not_found, "there is no RDMA device");
  }
  return ibv_get_device_name(list[0]);
}

/// Writes by tasks of a connection to itself. Those in flight have one doorbell.
class WritesByObjects final : public Way {
 public:
  explicit WritesByObjects(const Load& load) {
    region_.add_range(memory::allocate_range(2 * load.size));
    region_.add_registrar(registrar_);
    region_.start();
    inventory_.start();
    std::byte* const begin = region_.ranges()[0].address;
    source_ = inventory_.take_by_data(region_, {begin, load.size}).buffer;

    rdma::ConnectionOptions options;
    options.queues.max_send_wr = load.in_flight;
    options.queues.max_sge = 4;  // as doca_rdma has
    connection_.emplace(rdma::SharedObjects{device_, domain_, registrar_, completions_}, options);
    connection_->connect(engine_);
    pool_.emplace(*connection_, load.in_flight,
                  progress::TaskPool<rdma::WriteTask>::Callbacks{ended, failed, this});
    connection_->start();
    connection_->connect_to(connection_->descriptor());
    const memory::RemoteRange to{reinterpret_cast<std::uint64_t>(begin), 2 * load.size,
                                 region_.key(registrar_, 0)->remote};
    for (rdma::WriteTask& task : pool_->tasks()) {
      static_cast<void>(pool_->allocate());
      task.source = source_.get();
      task.to = {to, load.size};
    }
  }
  ~WritesByObjects() override { connection_->stop(); }

  void carry(std::uint64_t count) override {
    count_.begin(count);
    while (!count_.is_done(count)) {
      for (rdma::WriteTask& task : pool_->tasks()) {
        if (count_.left == 0) break;
        --count_.left;
        check(connection_->submit_unflushed(task), "cannot submit a write");
      }
      check(connection_->flush(), "cannot post the writes");
      while (count_.ended != count - count_.left) engine_.progress();
      count_.received = count_.ended;
    }
  }

 private:
  static void ended(rdma::WriteTask&, void* self) {
    ++static_cast<WritesByObjects*>(self)->count_.ended;
  }
  static void failed(rdma::WriteTask&, void* self) {
    static_cast<WritesByObjects*>(self)->count_.has_failed = true;
  }

  Count count_;
  progress::Engine engine_;
  rdma::DeviceContext device_{first_device()};
  rdma::ProtectionDomain domain_{device_};
  rdma::RdmaRegistrar registrar_{domain_};
  rdma::CompletionLoop completions_{device_, engine_, 4096};
  memory::MemoryRegion region_{{"messages", memory::kLocalAccess | memory::kRemoteAccess}};
  memory::BufferInventory inventory_{1};
  memory::BufferRef source_;
  std::optional<rdma::Connection> connection_;
  std::optional<progress::TaskPool<rdma::WriteTask>> pool_;
};

/// The same by calls. A write goes behind the data of its destination, so the program resets that.
class WritesByCalls final : public Way {
 public:
  explicit WritesByCalls(const Load& load)
      : memory_(dev_, 2 * load.size, kPermissions, load.in_flight + 1) {
    check(doca_rdma_create(dev_, &rdma_), "cannot make a context");
    party_.connect(doca_rdma_as_ctx(rdma_), this);
    check(doca_rdma_set_permissions(rdma_, kPermissions), "cannot set permissions");
    check(doca_rdma_set_send_queue_size(rdma_, load.in_flight), "cannot set the queue");
    check(doca_rdma_task_write_set_conf(rdma_, ended, failed, load.in_flight), "cannot configure");
    party_.start();
    const void* details = nullptr;
    std::size_t size = 0;
    doca_rdma_connection* connection = nullptr;
    check(doca_rdma_export(rdma_, &details, &size, &connection), "cannot make a connection");
    check(doca_rdma_connect(rdma_, details, size, connection), "cannot connect");
    check(doca_mmap_export_rdma(memory_.mmap, dev_, &details, &size), "cannot export memory");
    check(doca_mmap_create_from_export(nullptr, details, size, dev_, &remote_), "cannot import");
    doca_buf* const source = memory_.take_full(0, load.size);
    void* begin = nullptr;
    check(doca_mmap_get_memrange(remote_, &begin, &size), "no memory");
    for (std::uint32_t i = 0; i < load.in_flight; ++i) {
      doca_buf* const to = memory_.take(remote_, static_cast<char*>(begin) + load.size, load.size);
      doca_rdma_task_write* task = nullptr;
      check(doca_rdma_task_write_allocate_init(rdma_, connection, source, to, {}, &task),
            "no task");
      tasks_.push_back({doca_rdma_task_write_as_task(task), to});
    }
  }
  ~WritesByCalls() override {
    for (const Write& each : tasks_) doca_task_free(each.task);
    doca_ctx_stop(party_.ctx);
    turn_until([&] { return party_.state() == DOCA_CTX_STATE_IDLE; }, [&] { party_.turn(); });
    doca_rdma_destroy(rdma_);
  }

  void carry(std::uint64_t count) override {
    count_.begin(count);
    while (!count_.is_done(count)) {
      for (const Write& each : tasks_) {
        if (count_.left == 0) break;
        --count_.left;
        doca_buf_reset_data_len(each.to);
        const bool is_last = &each == &tasks_.back() || count_.left == 0;
        const std::uint32_t flush = DOCA_TASK_SUBMIT_FLAG_FLUSH;
        check(doca_task_submit_ex(each.task, is_last ? flush : 0), "cannot submit a write");
      }
      while (count_.ended != count - count_.left) party_.turn();
      count_.received = count_.ended;
    }
  }

 private:
  static constexpr std::uint32_t kPermissions =
      DOCA_ACCESS_FLAG_LOCAL_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_READ | DOCA_ACCESS_FLAG_RDMA_WRITE;
  struct Write {
    doca_task* task;
    doca_buf* to;
  };

  static bool is_rdma(doca_devinfo* info) {
    return doca_rdma_cap_task_write_is_supported(info) == DOCA_SUCCESS;
  }
  static void ended(doca_rdma_task_write*, doca_data, doca_data self) {
    ++static_cast<WritesByCalls*>(self.ptr)->count_.ended;
  }
  static void failed(doca_rdma_task_write*, doca_data, doca_data self) {
    static_cast<WritesByCalls*>(self.ptr)->count_.has_failed = true;
  }

  Count count_;
  doca_dev* dev_ = open_device(is_rdma);
  MappedMemory memory_;
  doca_mmap* remote_ = nullptr;
  Party party_;
  doca_rdma* rdma_ = nullptr;
  std::vector<Write> tasks_;
};

}  // namespace

std::unique_ptr<Way> writes_by_objects(const Load& load) {
  return std::make_unique<WritesByObjects>(load);
}

std::unique_ptr<Way> writes_by_calls(const Load& load) {
  return std::make_unique<WritesByCalls>(load);
}

}  // namespace offload::bench
