// All kernels over the lanes that the including file has chosen, as a table.

// Each file needs the ones before it, and blank lines keep clang-format from sorting them.
#include "kernels/generic/math.inl"

#include "kernels/generic/matmul.inl"

#include "kernels/generic/attention.inl"

#include "kernels/generic/layers.inl"

constexpr KernelTable kernel_table(const char* name) {
  return {
      .name = name,
      .matmul_f32 = matmul<float>,
      .matmul_f16 = matmul<F16>,
      .matmul_bf16 = matmul<BF16>,
      .embed_f32 = embed<float>,
      .embed_f16 = embed<F16>,
      .embed_bf16 = embed<BF16>,
      .rms_norm = rms_norm,
      .rope = rope,
      .store_kv = store_kv,
      .attention = attention,
      .silu_mul = silu_mul,
      .clamped_swiglu = clamped_swiglu,
      .add = add_to,
  };
}
