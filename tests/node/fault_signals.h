// What the worker of the fault matrix can be told, as signals above SIGRTMIN.
#pragma once

namespace lockstep {

enum FaultSignal {
  kArmCorrupt = 1,   // the next frame that it sends has a header that cannot be
  kArmOldEpoch = 2,  // the next frame that it sends is one of the epoch before
  kBeSlow = 3,       // every frame is sent kSlowFrameUs later
  kBeQuick = 4,
  kSpeakOtherVersion = 5,  // its greetings are those of another version of the protocol
  kSpeakOwnVersion = 6,
};

// A frame of a small model's decode takes some 10 us on its way.
inline constexpr int kSlowFrameUs = 100;

}  // namespace lockstep
