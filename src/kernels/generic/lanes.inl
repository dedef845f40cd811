// Some lanes of memory, of which only the first `count` exist.
LANES_INLINE F32x16 load_lanes(const float* from, int count) {
  return count >= kLanes ? F32x16::load(from) : F32x16::load_partial(from, count);
}
LANES_INLINE void store_lanes(float* to, F32x16 x, int count) {
  count >= kLanes ? store(to, x) : store_partial(to, x, count);
}
