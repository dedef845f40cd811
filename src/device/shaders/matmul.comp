#version 450
#extension GL_GOOGLE_include_directive : require
#ifdef HAS_DOT
#extension GL_EXT_spirv_intrinsics : require
#endif
// Products of packed matrices and inputs (matmul.glsl).
#include "common.glsl"

layout(local_size_x_id = 17) in;
layout(constant_id = 15) const uint kEnd = kEndsStored;
layout(constant_id = 16) const uint kForm = kPlainInput;  // of the blocks that are made of the result
PARAMETERS(MatmulParams)
#define MATMUL PARAMS
#include "matmul.glsl"

void main() { multiply(gl_WorkGroupID.xy); }
