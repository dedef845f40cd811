#version 450
#extension GL_GOOGLE_include_directive : require
// ChoosePositions: device/cpu/choice.cc. A workgroup has one token: digit by digit it finds the order
// of the last chosen score, then it writes the words of the mask in ascending order.
#include "common.glsl"

const uint kLanes = 256u, kDigits = 256u, kDigitBits = 8u;
const uint kWords = kLanes / 32u;

layout(local_size_x = 256) in;
PARAMETERS(ChoosePositionsParams)

shared uint found[kDigits];
shared uint shared_order;
shared uint shared_equals;
shared uint above[kWords];
shared uint equal[kWords];

// The number that orders scores: order_of() in device/cpu/choice.cc.
uint order_of(float score) {
  const uint bits = bits_of(score), magnitude = bits & ~kSignBit;
  if (magnitude > kInfinityBits) return 0u;
  if (magnitude < 0x00800000u) return kSignBit;
  return bits == magnitude ? bits | kSignBit : ~bits;
}

// Leaves in shared_order the order of the last chosen score, and in shared_equals how many of those
// with this order are chosen.
void find_threshold(uint lane, Floats scores, uint count) {
  if (lane == 0u) {
    shared_order = 0u;
    shared_equals = PARAMS.chosen;
  }
  for (uint done = kDigitBits; done <= 32u; done += kDigitBits) {
    const uint shift = 32u - done;
    const uint before = done > kDigitBits ? ~0u << (shift + kDigitBits) : 0u;
    found[lane] = 0u;
    barrier();
    for (uint i = lane; i < count; i += kLanes) {
      const uint order = order_of(scores.at[i]);
      if ((order & before) == shared_order) {
        atomicAdd(found[(order >> shift) & (kDigits - 1u)], 1u);
      }
    }
    barrier();
    if (lane == 0u) {
      uint digit = kDigits - 1u, equals = shared_equals;
      for (; found[digit] < equals; --digit) equals -= found[digit];
      shared_order |= digit << shift;
      shared_equals = equals;
    }
    barrier();
  }
}

void main() {
  const uint lane = gl_LocalInvocationIndex, token = gl_WorkGroupID.x;
  const uint position = uint(Ints(PARAMS.positions).at[token]);
  if (position < PARAMS.chosen) return;
  const uint count = position + 1u;
  Floats scores = Floats(advance(PARAMS.scores, token, PARAMS.stride * 4u));
  Words mask = Words(advance(PARAMS.mask, token, PARAMS.mask_words * 4u));
  find_threshold(lane, scores, count);
  const uint threshold = shared_order;
  uint left = shared_equals;  // to be chosen among equals
  const uint words = (position / kPositionsOfPage + 1u) * (kPositionsOfPage / 32u);
  for (uint begin = 0u; begin < count; begin += kLanes) {
    if (lane < kWords) above[lane] = equal[lane] = 0u;
    barrier();
    const uint place = begin + lane;
    const uint order = place < count ? order_of(scores.at[place]) : 0u;
    if (place < count && order > threshold) atomicOr(above[lane / 32u], 1u << (lane % 32u));
    if (place < count && order == threshold) atomicOr(equal[lane / 32u], 1u << (lane % 32u));
    barrier();
    uint before = 0u, all = 0u;
    for (uint word = 0u; word < kWords; ++word) {
      const uint equals = uint(bitCount(equal[word]));
      if (word < lane) before += equals;
      all += equals;
    }
    if (lane < kWords && begin / 32u + lane < words) {
      const uint own = before < left ? left - before : 0u;
      uint bits = equal[lane];
      while (uint(bitCount(bits)) > own) bits &= ~(1u << uint(findMSB(bits)));
      mask.at[begin / 32u + lane] = above[lane] | bits;
    }
    left = all < left ? left - all : 0u;
    barrier();
  }
}
