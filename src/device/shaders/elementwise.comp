#version 450
#extension GL_GOOGLE_include_directive : require
// Sums, scalings and copies of rows; params.h says what each kind does.
#include "common.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 12) const uint kKind = kAdd;
PARAMETERS(ElementwiseParams)

// CpuDevice::run(const Cap&).
float capped(float value, float cap) {
  const float scaled = exact_mul(value, exact_div(2.0, cap));
  if (scaled < 0.00048828125 && scaled > -0.00048828125) return value;
  const float factor = exact_div(exact_mul(2.0, cap), scaled);
  return exact_sub(exact_mul(exact_mul(scaled, exact_sigmoid(scaled)), factor), cap);
}

void main() {
  const uint column = gl_GlobalInvocationID.x, row = gl_WorkGroupID.y, columns = PARAMS.columns;
  if (column >= columns) return;
  Floats y = Floats(advance(PARAMS.y, row, (kKind == kCopyColumns ? PARAMS.y_stride : columns) * 4u));
  Floats x = Floats(PARAMS.x);
  Floats own = Floats(advance(PARAMS.x, row, (kKind == kCopyColumns ? PARAMS.x_stride : columns) * 4u));
  switch (kKind) {
    case kAdd: y.at[column] = exact_add(y.at[column], own.at[column]); break;
    case kAddBias: y.at[column] = exact_add(y.at[column], x.at[column]); break;
    case kScaleRows: y.at[column] = exact_mul(y.at[column], x.at[row]); break;
    case kScale: y.at[column] = exact_mul(y.at[column], x.at[0]); break;
    case kCap: y.at[column] = capped(y.at[column], PARAMS.cap); break;
    case kCopyRows: {
      const uint from = uint(Ints(PARAMS.rows).at[row]);
      y.at[column] = Floats(advance(PARAMS.x, from, PARAMS.x_stride * 4u)).at[column];
      break;
    }
    case kCopyColumns: y.at[column] = own.at[column]; break;
    case kSigmoid: y.at[column] = exact_sigmoid(y.at[column]); break;
    case kSilu: y.at[column] = exact_mul(y.at[column], exact_sigmoid(y.at[column])); break;
    case kDecay: {
      const float softplus = exact_softplus(exact_add(y.at[column], x.at[column]));
      y.at[column] = exact_exp(exact_sub(0.0, exact_mul(Floats(PARAMS.weights).at[column], softplus)));
      break;
    }
    case kBoundedDecay: {
      const float sum = exact_add(y.at[column], x.at[column]);
      const float opened = exact_sigmoid(exact_mul(Floats(PARAMS.weights).at[column], sum));
      y.at[column] = exact_exp(exact_mul(PARAMS.cap, opened));
      break;
    }
    case kAddExpertBias: {
      float sum = 0.0;
      for (uint i = row * PARAMS.slots; i < (row + 1u) * PARAMS.slots; ++i) {
        const uint expert = uint(Ints(PARAMS.rows).at[i]);
        const float bias = Floats(advance(PARAMS.x, expert, columns * 4u)).at[column];
        sum = exact_add(sum, exact_mul(Floats(PARAMS.weights).at[i], bias));
      }
      y.at[column] = exact_add(y.at[column], sum);
      break;
    }
  }
}
