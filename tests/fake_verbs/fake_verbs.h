// The controls of libfakeverbs.so: an RDMA library without devices, which tests load instead of
// libibverbs. Queue pairs exchange messages through memory that threads and forked processes share;
// other processes share it if the environment variable LOCKSTEP_FAKE_VERBS_FILE names one file for
// all of them. LOCKSTEP_FAKE_VERBS_MODE (rc, apple or lossy) sets the initial mode,
// LOCKSTEP_FAKE_VERBS_ADDRESSES the devices of a process (fake_verbs.cc), one for each cable.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lockstep {

enum class FakeMode : int {
  kReliable,  // RC and UC; a message without a RECV waits for one
  // As the published reports describe macOS 26 (docs/internals/links.md has the sources): transport
  // Thunderbolt, UC only, nothing inline, SENDs and RECVs of equal pages, few objects, no notice
  // when a peer exits; lost are messages without a RECV and those that overflow a port's ring.
  kApple,
  kLossy,  // UC only; messages without a RECV are lost, and now and then another one
};

// A function that can be made to fail. kSent and kReceived are completions with an error.
enum class FakeCall : int {
  kNone,
  kGetDeviceList,
  kOpenDevice,
  kQueryDevice,
  kQueryPort,
  kAllocPd,
  kRegMr,
  kCreateCq,
  kCreateQp,
  kToReset,
  kToInit,
  kToRtr,
  kToRts,
  kPostSend,
  kPostRecv,
  kPollCq,
  kSent,
  kReceived,
  kCount,
};

inline constexpr uint32_t kFakeQueuePairs = 128;    // in all processes together
inline constexpr int kFakeOwners = 64;              // processes at one time
inline constexpr uint32_t kFakeInboxMessages = 24;  // per queue pair
inline constexpr uint32_t kFakeMessageBytes = 65'536;
// Limits per opener of the device, so that one machine can play several Macs.
inline constexpr int kFakeAppleRegions = 100;
inline constexpr int kFakeAppleQueuePairs = 10;
inline constexpr int kFakeAppleTransport = 100;
// In mode kApple: what may have reached a port and not yet its RECVs, in bytes.
inline constexpr uint64_t kFakeApplePortBytes = uint64_t{4} << 20;

// Numbers of existing objects. The totals include those of processes that were killed.
struct FakeObjects {
  std::atomic<int> contexts, domains, regions, completion_queues, queue_pairs;
};

// All may be read and set at any time from any thread; the values order no other memory.
struct FakeVerbs : FakeObjects {
  std::atomic<int> mode;
  std::atomic<int> device_count;  // 1 or 2: 127.0.0.1 and 127.0.0.2
  std::atomic<int> is_port_down;
  std::atomic<int> failing_call;            // a FakeCall
  std::atomic<int> succeeding_calls;        // this many more of these calls succeed; then all fail
  std::atomic<uint32_t> message_bytes_max;  // longer ones are lost silently
  std::atomic<int> drop_every;              // the n-th message of each queue pair is lost; 0: none
  std::atomic<uint64_t> early_messages;     // arrived without a RECV: credits were overrun
  std::atomic<uint64_t> messages;
  std::atomic<uint64_t> overflows;        // messages lost because a port's ring was full
  std::atomic<uint64_t> unequal_buffers;  // kApple: SENDs and RECVs that are not 4096 * 2^k bytes
  std::atomic<uint32_t> ports;            // opened contexts so far; each plays a machine's port
  std::atomic<uint32_t> held_port;        // what is sent to it fills no RECV; 0: none
  std::atomic<int> passing_messages;      // this many more to the held port fill theirs
  std::atomic<int> holding_messages;      // then the hold ends with this many more; 0: it stays
  std::atomic<uint32_t> mute_port;        // the number of the port that sends in vain; 0: none
  std::atomic<int> is_alone;              // ports are up, but no cable leads to the other
  std::atomic<int> opens_left;            // kApple: contexts and domains until the driver is worn
  std::atomic<uint32_t> access;           // all flags of the queue pairs that became INIT
};

// Found with dlsym().
using FakeVerbsControls = FakeVerbs* (*)();  // "fake_verbs_controls"
// Puts a message into the inbox of a queue pair; false if there is none. "fake_verbs_inject"
using FakeVerbsInject = bool (*)(uint32_t queue_pair, const void* bytes, size_t size);
// The objects of one process, null if it never had any. "fake_verbs_objects_of"
using FakeVerbsObjectsOf = FakeObjects* (*)(int pid);

}  // namespace lockstep
