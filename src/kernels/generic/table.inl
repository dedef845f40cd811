// All kernels over the lanes of the including file, as a table.

// Each file needs the ones before it; blank lines keep clang-format from sorting them.
#include "kernels/generic/math.inl"

#include "kernels/generic/lanes.inl"

#include "kernels/generic/codes.inl"

#include "kernels/generic/scales.inl"

#include "kernels/generic/columns.inl"

#include "kernels/generic/part_cursor.inl"

#include "kernels/generic/blocks.inl"

#include "kernels/generic/matmul.inl"

#include "kernels/generic/matmul_runs.inl"

#include "kernels/generic/prepare.inl"

#include "kernels/generic/embed.inl"

#include "kernels/generic/stored_kv.inl"

#include "kernels/generic/attention.inl"

#include "kernels/generic/chosen.inl"

#include "kernels/generic/compressed.inl"

#include "kernels/generic/layers.inl"

#include "kernels/generic/recurrent.inl"

#include "kernels/generic/streams.inl"

constexpr KernelTable kernel_table(const char* name) {
  return {
      .name = name,
      .matmul = matmul,
      .matmul_runs = matmul_runs,
      .prepare_integers = prepare<InputBlock8>,
      .prepare_floats = prepare<InputBlockF>,
      .embed = embed,
      .rms_norm = rms_norm,
      .rope = rope,
      .store_kv = store_kv,
      .attention = attention,
      .attention_chosen = attention_chosen,
      .compressed_attention = compressed_attention,
      .compress = compress,
      .pool_key = pool_key,
      .index_scores = index_scores,
      .silu_mul = silu_mul,
      .clamped_swiglu = clamped_swiglu,
      .add = add_to,
      .sigmoid = sigmoid,
      .silu = silu,
      .decay = decay,
      .bounded_decay = bounded_decay,
      .collapse_streams = collapse_streams,
      .update_streams = update_streams,
      .inject_streams = inject_streams,
      .match_stream = match_stream,
      .convolve = convolve,
      .delta_rule = delta_rule,
  };
}
