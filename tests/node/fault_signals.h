// Commands to the worker of the fault matrix, as signals above SIGRTMIN.
#pragma once

namespace lockstep {

enum FaultSignal {
  kArmCorrupt = 1,   // the next frame that it sends has an invalid header
  kArmOldEpoch = 2,  // the next frame that it sends has the previous epoch
  kBeSlow = 3,       // every frame is delayed by kSlowFrameUs
  kBeQuick = 4,
  kSpeakOtherVersion = 5,  // its greetings have another protocol version
  kSpeakOwnVersion = 6,
};

// A frame of a small model's decode takes about 10 us to arrive.
inline constexpr int kSlowFrameUs = 100;

}  // namespace lockstep
