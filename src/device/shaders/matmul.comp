#version 450
#extension GL_GOOGLE_include_directive : require
#ifdef HAS_DOT
#extension GL_EXT_spirv_intrinsics : require
#endif
// Products of packed matrices and inputs (matmul.glsl).
#include "common.glsl"

layout(local_size_x = 128) in;
const uint kEnd = kEndsStored;
PARAMETERS(MatmulParams)
#define MATMUL PARAMS
#include "matmul.glsl"

void main() { multiply(gl_WorkGroupID.xy); }
