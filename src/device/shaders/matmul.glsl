// Products of packed matrices and inputs: kernels/generic/matmul.inl, blocks.inl and columns.inl.
// A leaf is a chain over terms, which are the blocks (or halves of them) of a quantised matrix and
// the runs of one by column. Either a workgroup takes 16 rows of one item: all invocations compute
// terms, then one for each row adds them in order; or it takes 16 rows of several items and each
// invocation computes the whole chain of its row and item.
// The includer defines MATMUL, the MatmulParams, and kEnd, and says how many invocations a workgroup
// has: kLanesOfMatmul for each row. If sums may be more than stored it defines ENDS and kForm; without
// that code, drivers compile a kernel in less time.
#include "matrix.glsl"

layout(constant_id = 12) const uint kParts = kOneMatrix;
layout(constant_id = 13) const uint kSharesTerms = 1u;
layout(constant_id = 14) const uint kInput = kAnyFormat;

uint input_of(MatrixInfo m) { return kInput == kAnyFormat ? m.input_form : kInput; }
// A block with halves has two terms.
const bool kMayHaveHalves = kScales >= kE4M3Halves && kScales != kSuper && kScales != kSuperMin;
const uint kTermsOfBlock = kMayHaveHalves ? 2u : 1u;
const uint kBlocksMax = 64u / kTermsOfBlock;  // or runs, at a time
const uint kLanes = kLanesOfMatmul;
const uint kRowsOfBlock = kTilesOfBlock * kTileRows;
// Rows and invocations of a workgroup.
const uint kRows = kEnd == kEndsStored ? kTileRows : kEnd == kEndsPrepared ? kRowsOfBlock : 2u * kRowsOfBlock;
const uint kSize = kLanes * kRows;
const uint kTreeDepth = 7u;
const bool kSharesTable = kCodes == kTable4;

shared float terms[kBlocksMax * kTermsOfBlock * kRows];
shared float input_scales[kBlocksMax];
// By the two codes in a byte: the lower one's entry, and the upper one's 16 bits higher.
shared uint table_pairs[kSharesTable ? 256u : 1u];

struct Part {
  MatrixInfo matrix;
  RowPlace place;
  Words x;
};

uint part_count() {
  if (kParts != kAllExperts) return 1u;
  return MATMUL.slots + (is_none(MATMUL.shared_matrix) ? 0u : 1u);
}
// `is_expert`: the product is one of a chosen expert.
Part part_of(Product product, bool is_expert, uint item, uint index, uint tile, uint row) {
  uvec2 matrix = product.matrix, x = product.x;
  uint x_row = item, stride = product.x_stride;
  const uint slots = MATMUL.slots;
  if (is_expert) {
    matrix = Addresses(product.matrix).at[Ints(MATMUL.chosen).at[item]];
    x_row = item / slots;
  } else if (kParts == kOneHead) {
    matrix = Addresses(product.matrix).at[item % slots];
  } else if (kParts == kAllExperts && index < slots) {
    matrix = Addresses(product.matrix).at[Ints(MATMUL.chosen).at[item * slots + index]];
    x_row = item * slots + index;
  } else if (kParts == kAllExperts) {
    matrix = MATMUL.shared_matrix;
    x = MATMUL.shared_x;
    stride = MATMUL.shared_stride;
  }
  Part part;
  part.matrix = Matrices(matrix).at;
  part.place = place_of_row(part.matrix, tile, row);
  part.x = Words(advance(x, x_row, stride * 4u));
  return part;
}

// Fills table_pairs. Matrices that are multiplied at one time have one table.
void place_table(MatrixInfo m) {
  barrier();
  for (uint i = gl_LocalInvocationIndex; i < 256u; i += kSize) {
    table_pairs[i] = table_at(m, i & 15u) | table_at(m, i >> 4) << 16;
  }
  barrier();
}
uint shared_look_up(uint word, uint k) {
  const uint low = table_pairs[word & 255u] | table_pairs[(word >> 8) & 255u] << 8;
  const uint high = table_pairs[(word >> 16) & 255u] | table_pairs[word >> 24] << 8;
  return k % 2u == 0u ? (low & 0xffffu) | high << 16 : low >> 16 | (high & 0xffff0000u);
}
uint look_up(MatrixInfo m, uint quad) {
  return table_at(m, quad & 15u) | table_at(m, (quad >> 8) & 15u) << 8 |
         table_at(m, (quad >> 16) & 15u) << 16 | table_at(m, quad >> 24) << 24;
}
// The codes of four columns.
uint quad_at(MatrixInfo m, Words words, uint k) {
  const uint codes = codes_of(m);
  if (kSharesTable) return shared_look_up(words.at[kTileRows * (k / 2u)], k);
  const uint quad = quad_of(codes, words, k);
  return codes == kTable4 ? look_up(m, quad) : quad;
}

#ifdef HAS_DOT
// OpSDotKHR of the signed bytes of two words (format 0), for which glslang 12 has no name.
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019], id = 4450)
int signed_dot(int a, int b, spirv_literal int format);

// Codes of eight bits become signed by the loss of 128.
uint signs_of(uint codes) { return codes == kBits8 || codes == kTable4 ? 0x80808080u : 0u; }
int dot_of_four(uint codes, int x) { return signed_dot(int(codes), x, 0); }
#else
uint signs_of(uint codes) { return 0u; }
// Codes are unsigned bytes, x signed ones.
int dot_of_four(uint codes, int x) {
  return int(codes & 255u) * bitfieldExtract(x, 0, 8) +
         int((codes >> 8) & 255u) * bitfieldExtract(x, 8, 8) +
         int((codes >> 16) & 255u) * bitfieldExtract(x, 16, 8) +
         int(codes >> 24) * bitfieldExtract(x, 24, 8);
}
#endif

// A block's part of a chain: terms, each multiplied by `by` where the input is integers.
struct Terms {
  float first;
  float second;
  float by;
};

float term_of(RowScale by, uint formula, float dot, float sum) {
  switch (formula) {
    case kByScale: return exact_mul(by.scale, dot);
    case kByBias: return exact_fma(by.bias, sum, exact_mul(by.scale, dot));
    default: return exact_mul(by.scale, exact_fma(by.bias, sum, dot));
  }
}

// The dot products of the quads from `first` on with inputs.
float integer_dot(MatrixInfo m, Words words, Inputs8 x, uint first, uint quads, int sum) {
  const uint signs = signs_of(codes_of(m));
  int dot = -(m.code_offset - int(signs & 128u)) * sum;
  for (uint i = 0u; i < quads; ++i) {
    dot += dot_of_four(quad_at(m, words, first + i) ^ signs, x.at.codes[first + i]);
  }
  return float(dot);
}
float float_dot(MatrixInfo m, Words words, InputsF x, uint first, uint quads) {
  const bool is_fp8 = codes_of(m) == kFp8;
  float dot = 0.0;
  for (uint i = 0u; i < quads; ++i) {
    const uint quad = quad_at(m, words, first + i);
    [[unroll]] for (uint k = 0u; k < 4u; ++k) {
      const uint code = (quad >> (8u * k)) & 255u;
      const float weight = is_fp8 ? of_fp8(code) : float(int(code) - m.code_offset);
      dot = exact_fma(weight, x.at.values[4u * (first + i) + k], dot);
    }
  }
  return is_fp8 ? exact_mul(dot, 256.0) : dot;
}

// The term of the `half_index`th part of a block, of which it has one or two.
float term_of_part(MatrixInfo m, RowScale by, Words words, uvec2 x, uint half_index, uint parts) {
  const uint formula = formula_of(scales_of(m)), quads = 8u / parts, first = half_index * quads;
  if (input_of(m) == kIntegerInput) {
    Inputs8 input_ = Inputs8(x);
    const int sum = parts == 1u ? input_.at.sum : input_.at.sums[half_index];
    return term_of(by, formula, integer_dot(m, words, input_, first, quads, sum), float(sum));
  }
  InputsF input_ = InputsF(x);
  const float sum = parts == 1u ? input_.at.sum : input_.at.sums[half_index];
  return term_of(by, formula, float_dot(m, words, input_, first, quads), sum);
}

Terms terms_of_block(Part part, uint block) {
  const MatrixInfo m = part.matrix;
  const BlockInfo info = Blocks(m.blocks).at[block];
  Words words = codes_of_block(m, part.place, block);
  const bool is_integer = input_of(m) == kIntegerInput;
  const uint words_of_input = is_integer ? kWordsOfBlock8 : kWordsOfBlockF;
  const uvec2 x = advance(uvec2(part.x), block, 4u * words_of_input);
  const uint parts = has_halves(scales_of(m)) ? 2u : 1u;
  Terms terms;
  terms.second = 0.0;
  terms.by = is_integer ? Inputs8(x).at.scale : 1.0;
  [[unroll]] for (uint i = 0u; i < parts; ++i) {
    const RowScale by = scale_of(m, part.place, info, block, i);
    const float term = term_of_part(m, by, words, x, i, parts);
    if (i == 0u) {
      terms.first = term;
    } else {
      terms.second = term;
    }
  }
  return terms;
}

// The chain of a run of columns.
float run_of(Part part, StepInfo leaf, uint index) {
  const uint codes = codes_of(part.matrix), row = part.place.row;
  const uint begin = leaf.column_begin + index * kColumnsOfRun;
  const uint count = min(leaf.column_begin + leaf.columns - begin, kColumnsOfRun);
  uvec2 x = advance(uvec2(part.x), 4u * begin), w = place_of_column(part.matrix, part.place, begin);
  const uint bytes = 4u * column_words(codes);
  float run = 0.0;
  uint column = 0u;
  for (; column + 8u <= count; column += 8u) {
    [[unroll]] for (uint i = 0u; i < 8u; ++i) {
      run = exact_fma(weight_at(codes, w, i, row), Floats(x).at[i], run);
    }
    w = advance(w, 8u * bytes);
    x = advance(x, 32u);
  }
  for (; column < count; ++column) {
    run = exact_fma(weight_at(codes, w, 0u, row), Floats(x).at[0], run);
    w = advance(w, bytes);
    x = advance(x, 4u);
  }
  return run;
}

Terms terms_at(Part part, StepInfo leaf, uint index) {
  if (!is_by_column(codes_of(part.matrix))) return terms_of_block(part, leaf.block_begin + index);
  Terms terms;
  terms.first = run_of(part, leaf, index);
  terms.second = 0.0;
  terms.by = 1.0;
  return terms;
}
uint count_of(Part part, StepInfo leaf) {  // blocks, or runs
  if (is_by_column(codes_of(part.matrix))) return (leaf.columns + kColumnsOfRun - 1u) / kColumnsOfRun;
  return leaf.block_count;
}
float add_terms(Part part, Terms terms, float chain) {
  const bool is_integer = input_of(part.matrix) == kIntegerInput;
  chain = is_integer ? exact_fma(terms.first, terms.by, chain) : exact_add(chain, terms.first);
  if (!has_halves(scales_of(part.matrix))) return chain;
  return is_integer ? exact_fma(terms.second, terms.by, chain) : exact_add(chain, terms.second);
}

void share(Terms made, uint i, uint row) {
  terms[i * kTermsOfBlock * kRows + row] = made.first;
  if (kMayHaveHalves) terms[(i * kTermsOfBlock + 1u) * kRows + row] = made.second;
  if (row == 0u) input_scales[i] = made.by;
}
Terms shared_terms(uint i, uint row) {
  Terms made;
  made.first = terms[i * kTermsOfBlock * kRows + row];
  made.second = kMayHaveHalves ? terms[(i * kTermsOfBlock + 1u) * kRows + row] : 0.0;
  made.by = input_scales[i];
  return made;
}

// Adds a leaf of a part, its terms shared by the workgroup. Only lane 0's chain is used.
float add_shared(Part part, StepInfo leaf, uint lane, uint row, float chain) {
  const uint count = count_of(part, leaf);
  for (uint begin = 0u; begin < count; begin += kBlocksMax) {
    const uint some = min(count - begin, kBlocksMax);
    for (uint i = lane; i < some; i += kLanes) share(terms_at(part, leaf, begin + i), i, row);
    barrier();
    if (lane == 0u) {
      uint i = 0u;
      for (; i + 8u <= some; i += 8u) {  // so that reads overlap
        Terms eight[8];
        [[unroll]] for (uint k = 0u; k < 8u; ++k) eight[k] = shared_terms(i + k, row);
        [[unroll]] for (uint k = 0u; k < 8u; ++k) chain = add_terms(part, eight[k], chain);
      }
      for (; i < some; ++i) chain = add_terms(part, shared_terms(i, row), chain);
    }
    barrier();
  }
  return chain;
}
float add_alone(Part part, StepInfo leaf, float chain) {
  const uint count = count_of(part, leaf);
  for (uint i = 0u; i < count; ++i) chain = add_terms(part, terms_at(part, leaf, i), chain);
  return chain;
}

#ifdef ENDS
// The sums of a workgroup's items.
shared float results[kItemsOfGroup * kRows];
const uint kStagedBlocks = kItemsOfGroup;
#include "prepare.glsl"
#include "activate.glsl"

// The end of block `number` of the results of some items, whose sums are in `results`.
void end_block(ProductEnd end, uint number, uint first_item, uint items) {
  const uint columns = end.join.columns;
  barrier();
  for (uint i = gl_LocalInvocationIndex; i < items * kRowsOfBlock; i += kSize) {
    const uint of_item = i / kRowsOfBlock, column = i % kRowsOfBlock, item = first_item + of_item;
    const uint out_column = number * kRowsOfBlock + column;
    float value = results[of_item * kRows + column];
    if (kEnd == kEndsActivated) {
      const float up = results[of_item * kRows + kRowsOfBlock + column];
      value = activated(end.join, MATMUL.chosen, item, out_column, value, up);
    }
    Floats(advance(end.outputs, item, columns * 4u)).at[out_column] = value;
    if (kForm != kPlainInput) staged[staged_at(i)] = value;
  }
  if (kForm == kPlainInput || is_none(end.blocks)) return;
  barrier();
  const uint lane = gl_LocalInvocationIndex;
  if (lane >= items) return;
  prepare_staged(kForm, lane * kRowsOfBlock, kRowsOfBlock, end.blocks,
                 (first_item + lane) * (columns / kRowsOfBlock) + number);
}
#endif

// Of a workgroup's place in the dispatch.
void multiply(uvec2 group) {
  const uint row_of_group = gl_LocalInvocationIndex % kRows, lane = gl_LocalInvocationIndex / kRows;
  const uint row = row_of_group % kTileRows, ended = kEnd == kEndsActivated ? 2u : 1u;
  uint tile = group.x, first_product = 0u;
  while (tile >= MATMUL.products[first_product].tile_end) first_product += ended;
  if (first_product > 0u) tile -= MATMUL.products[first_product - ended].tile_end;
  const uint block = tile;
  uint which = first_product;
  if (kEnd != kEndsStored) tile = kTilesOfBlock * block + row_of_group / kTileRows % kTilesOfBlock;
  if (kEnd == kEndsActivated) which += row_of_group / kRowsOfBlock;
  const Product product = MATMUL.products[which];
  const bool is_expert = kParts == kOneExpert || (kParts == kExpertsAndShared && first_product == 0u);
  const uint items = kParts == kExpertsAndShared && !is_expert ? MATMUL.items / MATMUL.slots : MATMUL.items;
  // The shared expert of few tokens has fewer items than the experts.
  const bool are_few = kParts == kExpertsAndShared && !is_expert && items < kItemsOfGroup &&
                       items <= gl_NumWorkGroups.y;
  const bool shares = kSharesTerms == 1u || are_few;
  const uint first_item = shares ? group.y : group.y * kItemsOfGroup;
  if (kParts == kExpertsAndShared && first_item >= items) return;
  // All invocations meet at the barriers, with work or without.
  const uint item = shares ? first_item : min(first_item + lane, items - 1u);
  const uint used_lanes = shares ? 1u : min(items - first_item, kItemsOfGroup);
  const uint parts = part_count();
  Part part = part_of(product, is_expert, item, 0u, tile, row);
  const uint rows = part.matrix.rows, steps = part.matrix.step_count;
  const uint output_row = tile * kTileRows + row;
  const bool stores = lane < used_lanes && output_row < rows;
  if (kSharesTable) place_table(part.matrix);
  Floats outputs = Floats(advance(product.outputs, item, product.item_stride * 4u));
  float stack[kTreeDepth];
  uint depth = 0u, subtree = 0u;
  for (uint step = 0u; step < steps; ++step) {
    float chain = 0.0;
    StepInfo leaf;
    for (uint i = 0u; i < parts; ++i) {
      if (parts > 1u) {
        part = part_of(product, is_expert, item, i, tile, row);
        if (kSharesTable) place_table(part.matrix);
      }
      leaf = Steps(part.matrix.steps).at[step];
      chain = shares ? add_shared(part, leaf, lane, row_of_group, chain)
                     : add_alone(part, leaf, chain);
    }
    for (uint merge = 0u; merge < leaf.merges; ++merge) {
      --depth;
      chain = exact_add(stack[depth], chain);
    }
    if (leaf.ends_subtree == 0u) {
      stack[depth] = chain;
      ++depth;
      continue;
    }
#ifdef ENDS
    if (stores) results[lane * kRows + row_of_group] = chain;
#else
    if (stores) outputs.at[subtree * product.subtree_stride + output_row] = chain;
#endif
    ++subtree;
  }
#ifdef ENDS
  end_block(MATMUL.ends[first_product / 2u], block, first_item, used_lanes);
#endif
}
