#version 450
#extension GL_GOOGLE_include_directive : require
// ChoosePositions: device/cpu/choice.cc. A workgroup has one token: digit by digit it finds the order
// of the last chosen score, then it writes the words of the mask in ascending order. With pools the
// scores are theirs, and a pool has several bits of the mask, or several words.
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

// Bits of some positions: the first `count` of a word.
uint first_bits(uint count) { return count >= 32u ? ~0u : (1u << count) - 1u; }

// The bits of the positions of a word, whose first pool is bit `bit` of these pools.
uint spread_word(uint pools, uint bit) {
  const uint pool = PARAMS.pool, all = first_bits(pool);
  if (pool == 1u) return pools;
  uint spread = 0u;
  [[unroll]] for (uint i = 0u; i < 16u; ++i) {
    if (i * pool < 32u && ((pools >> (bit + i)) & 1u) != 0u) spread |= all << (i * pool);
  }
  return spread;
}

// Writes the words of the mask of kLanes pools from `begin` on, of which chosen ones are in `above`.
void write_words(uint lane, Words mask, uint begin, uint count, uint position) {
  const uint pool = PARAMS.pool, first = begin * pool / 32u;
  const uint words = (position / kPositionsOfPage + 1u) * (kPositionsOfPage / 32u);
  for (uint i = lane; i < kWords * pool; i += kLanes) {
    const uint word = first + i, place = word * 32u, number = i * 32u / pool;
    if (word >= words) break;
    uint bits = spread_word(above[number / 32u], number % 32u);
    const uint end = count * pool;  // those after the last complete pool are chosen
    if (position + 1u > end && place + 32u > end) {
      const uint after = end > place ? end - place : 0u;
      const uint until = position + 1u > place ? position + 1u - place : 0u;
      bits |= first_bits(until) & ~first_bits(after);
    }
    mask.at[word] = bits;
  }
}

void main() {
  const uint lane = gl_LocalInvocationIndex, token = gl_WorkGroupID.x;
  const uint position = uint(Ints(PARAMS.positions).at[token]);
  const uint count = (position + 1u) / PARAMS.pool;  // complete pools
  if (count <= PARAMS.chosen) return;
  Floats scores = Floats(advance(PARAMS.scores, token, PARAMS.stride * 4u));
  Words mask = Words(advance(PARAMS.mask, token, PARAMS.mask_words * 4u));
  find_threshold(lane, scores, count);
  const uint threshold = shared_order;
  uint left = shared_equals;  // to be chosen among equals
  for (uint begin = 0u; begin * PARAMS.pool <= position; begin += kLanes) {
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
    if (lane < kWords) {
      const uint own = before < left ? left - before : 0u;
      uint bits = equal[lane];
      while (uint(bitCount(bits)) > own) bits &= ~(1u << uint(findMSB(bits)));
      above[lane] |= bits;
    }
    left = all < left ? left - all : 0u;
    barrier();
    write_words(lane, mask, begin, count, position);
    barrier();
  }
}
