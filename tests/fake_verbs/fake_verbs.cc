// The entry points of libibverbs that lockstep uses.
#include "fake_verbs/fake_verbs.h"

#include <infiniband/verbs.h>
#undef ibv_query_port
#undef ibv_reg_mr

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "fake_verbs/fake_wire.h"

using namespace lockstep;

namespace {

constexpr int kDevicesMax = 16;
constexpr int kLoopbackDevicesMax = 2;
constexpr uint32_t kPageBytes = 4096;
constexpr int kErrorUnsupportedApple = 102;
constexpr int kAllAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;

// The port of a device.
struct Port {
  std::string address;  // IPv4
  bool is_down = false;
};

// LOCKSTEP_FAKE_VERBS_ADDRESSES: the ports of this process's machine, "10.9.0.1,!10.9.1.1"; one
// with an exclamation mark is down. Empty: the controls decide.
const std::vector<Port>& told_ports() {
  static const std::vector<Port> ports = [] {
    std::vector<Port> found;
    const char* const told = std::getenv("LOCKSTEP_FAKE_VERBS_ADDRESSES");
    std::stringstream list(told == nullptr ? "" : told);
    for (std::string one; std::getline(list, one, ',') && found.size() < kDevicesMax;) {
      const bool is_down = one.starts_with('!');
      found.push_back({one.substr(is_down ? 1 : 0), is_down});
    }
    return found;
  }();
  return ports;
}

struct Receive {
  uint64_t id;
  std::byte* bytes;
  uint32_t length;
};

struct QueuePair;

struct Completions : ibv_cq {
  std::mutex mutex;
  std::deque<ibv_wc> done;
  QueuePair* queue_pair = nullptr;
};

struct QueuePair : ibv_qp {
  FakeQueuePairSlot* slot = nullptr;
  std::deque<Receive> receives;
  uint32_t pages_max = 0;  // for RECVs, in mode kApple
  uint64_t sent = 0;
};

struct Context : ibv_context {
  int index = 0;
  uint32_t port = 0;  // its number among all that were opened
  // In mode kApple: what the caller's own Mac would have handed out.
  std::atomic<int> regions{0}, queue_pairs{0};
};

ibv_device the_devices[kDevicesMax];

Context& context_of(const ibv_pd& domain) {
  return static_cast<Context&>(*domain.context);
}
FakeVerbs& controls() {
  return fake_wire().controls;
}
FakeMode mode() {
  return static_cast<FakeMode>(controls().mode.load());
}
uint32_t pages(uint64_t bytes) {
  return static_cast<uint32_t>((bytes + kPageBytes - 1) / kPageBytes);
}

bool fails(FakeCall call) {
  if (controls().failing_call != static_cast<int>(call)) return false;
  return controls().succeeding_calls.fetch_sub(1) <= 0;
}

// As a Mac's driver that has been opened too often.
bool is_worn() {
  return mode() == FakeMode::kApple && controls().opens_left.fetch_sub(1) <= 0;
}

void check_equal_buffer(uint64_t bytes) {
  const bool is_equal = bytes >= kPageBytes && std::has_single_bit(bytes);
  if (mode() == FakeMode::kApple && !is_equal) ++controls().unequal_buffers;
}

template <class T>
T* refuse(int error_number) {
  errno = error_number;
  return nullptr;
}

// Puts the message into the inbox of the connected queue pair, if there is one.
void transmit(QueuePair& queue_pair, const ibv_sge& piece) {
  ++controls().messages;
  ++queue_pair.sent;
  const int drop_every = controls().drop_every;
  if (drop_every > 0 && queue_pair.sent % static_cast<uint64_t>(drop_every) == 0) return;
  if (piece.length > controls().message_bytes_max || controls().is_alone != 0) return;
  if (controls().mute_port == queue_pair.slot->port) return;
  FakeQueuePairSlot* const to = fake_queue_pair(queue_pair.slot->destination);
  if (to == nullptr) return;
  const FakeLock lock(*to);
  if (to->owner == 0 || !to->can_receive || to->destination != queue_pair.qp_num) return;
  if (mode() != FakeMode::kReliable && to->count >= to->receives) {
    ++controls().early_messages;
    return;
  }
  bool is_held = controls().held_port == to->port;
  if (is_held && controls().passing_messages > 0) {
    --controls().passing_messages;
    is_held = false;
  }
  if (mode() == FakeMode::kApple && !has_ring_room(to->port, piece.length)) {
    ++controls().overflows;
  } else {
    deliver(*to, reinterpret_cast<const void*>(piece.addr), piece.length, is_held);
  }
  const bool may_end = is_held && controls().holding_messages > 0;
  if (may_end && --controls().holding_messages == 0) controls().held_port = 0;
}

int post_send(ibv_qp* base, ibv_send_wr* request, ibv_send_wr** bad) {
  auto& queue_pair = static_cast<QueuePair&>(*base);
  *bad = request;
  if (fails(FakeCall::kPostSend)) return ENOMEM;
  if (queue_pair.state != IBV_QPS_RTS || request->opcode != IBV_WR_SEND) return EINVAL;
  const ibv_sge& piece = *request->sg_list;
  if (request->num_sge != 1 || piece.length > kFakeMessageBytes) return EINVAL;
  if ((request->send_flags & IBV_SEND_INLINE) != 0) return EINVAL;  // no queue pair has room for it
  check_equal_buffer(piece.length);
  transmit(queue_pair, piece);
  ibv_wc completion{};
  completion.wr_id = request->wr_id;
  completion.qp_num = queue_pair.qp_num;
  completion.status = fails(FakeCall::kSent) ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS;
  completion.opcode = IBV_WC_SEND;
  auto& completions = static_cast<Completions&>(*queue_pair.send_cq);
  const std::lock_guard lock(completions.mutex);
  completions.done.push_back(completion);
  return 0;
}

int post_recv(ibv_qp* base, ibv_recv_wr* request, ibv_recv_wr** bad) {
  auto& queue_pair = static_cast<QueuePair&>(*base);
  *bad = request;
  if (fails(FakeCall::kPostRecv)) return ENOMEM;
  const bool is_apple = mode() == FakeMode::kApple;
  if (queue_pair.state == IBV_QPS_RESET || (is_apple && queue_pair.state != IBV_QPS_RTS)) {
    return EINVAL;
  }
  uint32_t posted = pages(request->sg_list->length);
  for (const Receive& receive : queue_pair.receives) posted += pages(receive.length);
  if (is_apple && posted > queue_pair.pages_max) return ENOMEM;
  check_equal_buffer(request->sg_list->length);
  queue_pair.receives.push_back({request->wr_id,
                                 reinterpret_cast<std::byte*>(request->sg_list->addr),
                                 request->sg_list->length});
  const FakeLock lock(*queue_pair.slot);
  ++queue_pair.slot->receives;
  return 0;
}

// The RECV for a message that has arrived.
ibv_wc receive(QueuePair& queue_pair, const FakeMessage& message) {
  const Receive into = queue_pair.receives.front();
  queue_pair.receives.pop_front();
  ibv_wc completion{};
  completion.wr_id = into.id;
  completion.qp_num = queue_pair.qp_num;
  completion.opcode = IBV_WC_RECV;
  completion.byte_len = message.bytes;
  const bool fits = mode() == FakeMode::kApple ? pages(message.bytes) == pages(into.length)
                                               : message.bytes <= into.length;
  if (!fits) {
    completion.status = IBV_WC_LOC_LEN_ERR;
  } else if (fails(FakeCall::kReceived)) {
    completion.status = IBV_WC_WR_FLUSH_ERR;
  } else {
    std::memcpy(into.bytes, message.data, message.bytes);
  }
  return completion;
}

bool is_held(const FakeQueuePairSlot& slot) {
  return slot.inbox[slot.first].is_held && controls().held_port == slot.port;
}

int poll_cq(ibv_cq* base, int count, ibv_wc* found) {
  auto& completions = static_cast<Completions&>(*base);
  if (fails(FakeCall::kPollCq)) return -1;
  const std::lock_guard lock(completions.mutex);
  if (completions.queue_pair != nullptr) {
    QueuePair& queue_pair = *completions.queue_pair;
    FakeQueuePairSlot& slot = *queue_pair.slot;
    const FakeLock slot_lock(slot);
    while (slot.count > 0 && !queue_pair.receives.empty() && !is_held(slot)) {
      completions.done.push_back(receive(queue_pair, slot.inbox[slot.first]));
      remove_first(slot);
    }
  }
  int taken = 0;
  while (taken < count && !completions.done.empty()) {
    found[taken++] = completions.done.front();
    completions.done.pop_front();
  }
  return taken;
}

std::string address_of(const Context& context) {
  if (told_ports().empty()) return "127.0.0." + std::to_string(context.index + 1);
  return told_ports()[static_cast<size_t>(context.index)].address;
}

// The cable of a told port leads to addresses with the same first 24 bits only.
bool is_reached(const Context& context, const ibv_gid& there) {
  std::array<uint8_t, 4> own{};
  ::inet_pton(AF_INET, address_of(context).c_str(), own.data());
  return told_ports().empty() || std::equal(own.begin(), own.begin() + 3, &there.raw[12]);
}

bool is_allowed(const QueuePair& queue_pair, ibv_qp_state to) {
  switch (to) {
    case IBV_QPS_INIT:
      return queue_pair.state == IBV_QPS_RESET;
    case IBV_QPS_RTR:
      return queue_pair.state == IBV_QPS_INIT;
    case IBV_QPS_RTS:
      return queue_pair.state == IBV_QPS_RTR;
    default:
      return to == IBV_QPS_RESET;
  }
}

// An index of the GID table: a link-local address, then the IPv4 address; for RoCE v1 and for v2,
// except as on macOS.
int usable_gid() {
  return mode() == FakeMode::kApple ? 1 : 2;
}

// Whether all attributes that the specification requires for this transition are given.
bool has_all_attributes(const QueuePair& queue_pair, ibv_qp_state to, const ibv_qp_attr& attributes,
                        int mask) {
  const bool is_rc = queue_pair.qp_type == IBV_QPT_RC;
  int wanted = IBV_QP_STATE;
  if (to == IBV_QPS_INIT) wanted |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
  if (to == IBV_QPS_RTR) {
    wanted |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (is_rc) wanted |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    if (attributes.ah_attr.grh.sgid_index != usable_gid()) return false;
  }
  if (to == IBV_QPS_RTS) {
    wanted |= IBV_QP_SQ_PSN;
    if (is_rc) {
      wanted |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    }
  }
  return mask == wanted;
}

FakeCall call_of(ibv_qp_state to) {
  switch (to) {
    case IBV_QPS_INIT:
      return FakeCall::kToInit;
    case IBV_QPS_RTR:
      return FakeCall::kToRtr;
    case IBV_QPS_RTS:
      return FakeCall::kToRts;
    default:
      return FakeCall::kToReset;
  }
}

}  // namespace

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  if (fails(FakeCall::kGetDeviceList)) return refuse<ibv_device*>(ENOSYS);
  *count = told_ports().empty() ? std::clamp(controls().device_count.load(), 0, kLoopbackDevicesMax)
                                : static_cast<int>(told_ports().size());
  auto* const list = new ibv_device*[kDevicesMax + 1]();
  for (int i = 0; i < *count; ++i) {
    std::strcpy(the_devices[i].name, ("fake" + std::to_string(i)).c_str());
    const int transport = mode() == FakeMode::kApple ? kFakeAppleTransport : IBV_TRANSPORT_IB;
    std::memcpy(&the_devices[i].transport_type, &transport, sizeof(transport));
    list[i] = &the_devices[i];
  }
  return list;
}

void ibv_free_device_list(ibv_device** list) {
  delete[] list;
}

const char* ibv_get_device_name(ibv_device* device) {
  return device->name;
}

ibv_context* ibv_open_device(ibv_device* device) {
  if (fails(FakeCall::kOpenDevice)) return refuse<ibv_context>(EACCES);
  if (is_worn()) return refuse<ibv_context>(ENOMEM);
  auto* const context = new Context();
  context->device = device;
  context->index = static_cast<int>(device - the_devices);
  context->port = ++controls().ports;
  context->ops.post_send = post_send;
  context->ops.post_recv = post_recv;
  context->ops.poll_cq = poll_cq;
  count_objects(&FakeObjects::contexts, 1);
  return context;
}

int ibv_close_device(ibv_context* context) {
  count_objects(&FakeObjects::contexts, -1);
  delete static_cast<Context*>(context);
  return 0;
}

int ibv_query_device(ibv_context*, ibv_device_attr* attributes) {
  if (fails(FakeCall::kQueryDevice)) return EIO;
  *attributes = {};
  attributes->phys_port_cnt = 1;
  attributes->max_qp_wr = 4096;
  attributes->max_cqe = 8192;
  return 0;
}

int ibv_query_port(ibv_context* context, uint8_t port, struct _compat_ibv_port_attr* compat) {
  if (fails(FakeCall::kQueryPort) || port != 1) return EINVAL;
  auto* const attributes = reinterpret_cast<ibv_port_attr*>(compat);
  const int index = static_cast<Context*>(context)->index;
  const bool is_down = controls().is_port_down != 0 ||
                       (!told_ports().empty() && told_ports()[static_cast<size_t>(index)].is_down);
  attributes->state = is_down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
  attributes->active_mtu = IBV_MTU_4096;
  attributes->gid_tbl_len = 4;
  return 0;
}

int ibv_query_gid(ibv_context* context, uint8_t, int index, ibv_gid* gid) {
  *gid = {};
  if (index == 0) {
    gid->raw[0] = 0xfe, gid->raw[1] = 0x80, gid->raw[15] = 1;
  } else if (index <= usable_gid()) {
    gid->raw[10] = gid->raw[11] = 0xff;
    const std::string address = address_of(*static_cast<Context*>(context));
    ::inet_pton(AF_INET, address.c_str(), &gid->raw[12]);
  }
  return index < 4 ? 0 : -1;
}

int _ibv_query_gid_ex(ibv_context*, uint32_t, uint32_t index, ibv_gid_entry* entry, uint32_t,
                      size_t) {
  entry->gid_type =
      static_cast<int>(index) == usable_gid() ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1;
  return 0;
}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  if (fails(FakeCall::kAllocPd) || is_worn()) return refuse<ibv_pd>(ENOMEM);
  count_objects(&FakeObjects::domains, 1);
  auto* const domain = new ibv_pd();
  domain->context = context;
  return domain;
}

int ibv_dealloc_pd(ibv_pd* domain) {
  count_objects(&FakeObjects::domains, -1);
  delete domain;
  return 0;
}

ibv_mr* ibv_reg_mr(ibv_pd* domain, void* address, size_t bytes, int access) {
  if (fails(FakeCall::kRegMr)) return refuse<ibv_mr>(ENOMEM);
  if (mode() == FakeMode::kApple) {
    if (access != kAllAccess) return refuse<ibv_mr>(EINVAL);
    if (context_of(*domain).regions >= kFakeAppleRegions) return refuse<ibv_mr>(ENOMEM);
  }
  ++context_of(*domain).regions;
  count_objects(&FakeObjects::regions, 1);
  auto* const region = new ibv_mr();
  region->pd = domain;
  region->addr = address;
  region->length = bytes;
  region->lkey = region->rkey = 77;
  return region;
}

int ibv_dereg_mr(ibv_mr* region) {
  --context_of(*region->pd).regions;
  count_objects(&FakeObjects::regions, -1);
  delete region;
  return 0;
}

ibv_cq* ibv_create_cq(ibv_context* context, int count, void*, ibv_comp_channel*, int) {
  if (fails(FakeCall::kCreateCq)) return refuse<ibv_cq>(ENOMEM);
  count_objects(&FakeObjects::completion_queues, 1);
  auto* const completions = new Completions();
  completions->context = context;
  completions->cqe = count;
  return completions;
}

int ibv_destroy_cq(ibv_cq* completions) {
  count_objects(&FakeObjects::completion_queues, -1);
  delete static_cast<Completions*>(completions);
  return 0;
}

ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* wanted) {
  if (fails(FakeCall::kCreateQp)) return refuse<ibv_qp>(ENOMEM);
  if (wanted->qp_type != IBV_QPT_UC && mode() != FakeMode::kReliable) {
    return refuse<ibv_qp>(kErrorUnsupportedApple);
  }
  if (mode() == FakeMode::kApple && wanted->cap.max_inline_data > 0) return refuse<ibv_qp>(EINVAL);
  if (mode() == FakeMode::kApple && context_of(*domain).queue_pairs >= kFakeAppleQueuePairs) {
    return refuse<ibv_qp>(EBUSY);
  }
  for (uint32_t index = 0; index < kFakeQueuePairs; ++index) {
    FakeQueuePairSlot& slot = fake_wire().queue_pairs[index];
    const FakeLock lock(slot);
    if (slot.owner != 0 && is_alive(slot.owner)) continue;
    slot.owner = ::getpid();
    slot.can_receive = false;
    slot.port = context_of(*domain).port;
    empty_inbox(slot);
    auto* const queue_pair = new QueuePair();
    queue_pair->context = domain->context;
    queue_pair->pd = domain;
    queue_pair->send_cq = wanted->send_cq;
    queue_pair->recv_cq = wanted->recv_cq;
    queue_pair->qp_num = FakeQueuePairSlot::kFirstNumber + index;
    queue_pair->qp_type = wanted->qp_type;
    queue_pair->state = IBV_QPS_RESET;
    queue_pair->slot = &slot;
    queue_pair->pages_max = wanted->cap.max_recv_wr;
    static_cast<Completions*>(wanted->recv_cq)->queue_pair = queue_pair;
    ++context_of(*domain).queue_pairs;
    count_objects(&FakeObjects::queue_pairs, 1);
    return queue_pair;
  }
  return refuse<ibv_qp>(ENOMEM);
}

int ibv_modify_qp(ibv_qp* base, ibv_qp_attr* attributes, int mask) {
  auto& queue_pair = static_cast<QueuePair&>(*base);
  const ibv_qp_state to = attributes->qp_state;
  if (fails(call_of(to))) return EIO;
  if (!is_allowed(queue_pair, to) || !has_all_attributes(queue_pair, to, *attributes, mask)) {
    return EINVAL;
  }
  if (to == IBV_QPS_RTR &&
      !is_reached(static_cast<Context&>(*queue_pair.context), attributes->ah_attr.grh.dgid)) {
    return ETIMEDOUT;
  }
  if (to == IBV_QPS_INIT) {
    if (mode() == FakeMode::kApple && attributes->qp_access_flags != kAllAccess) return EINVAL;
    controls().access |= attributes->qp_access_flags;
  }
  const FakeLock lock(*queue_pair.slot);
  queue_pair.state = to;
  queue_pair.slot->can_receive = to == IBV_QPS_RTR || to == IBV_QPS_RTS;
  if (to == IBV_QPS_RTR) queue_pair.slot->destination = attributes->dest_qp_num;
  if (to == IBV_QPS_RESET) {
    queue_pair.receives.clear();
    empty_inbox(*queue_pair.slot);
  }
  return 0;
}

int ibv_destroy_qp(ibv_qp* base) {
  auto* const queue_pair = static_cast<QueuePair*>(base);
  auto& completions = static_cast<Completions&>(*queue_pair->recv_cq);
  {
    const std::lock_guard lock(completions.mutex);
    completions.queue_pair = nullptr;
  }
  const FakeLock lock(*queue_pair->slot);
  --context_of(*queue_pair->pd).queue_pairs;
  queue_pair->slot->owner = 0;
  queue_pair->slot->can_receive = false;
  empty_inbox(*queue_pair->slot);
  count_objects(&FakeObjects::queue_pairs, -1);
  delete queue_pair;
  return 0;
}
}
