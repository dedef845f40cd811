#version 450
#extension GL_GOOGLE_include_directive : require
#ifdef HAS_DOT
#extension GL_EXT_spirv_intrinsics : require
#endif
// Products that end with what follows them (matmul.glsl).
#include "common.glsl"

layout(local_size_x_id = 17) in;
layout(constant_id = 15) const uint kEnd = kEndsActivated;
layout(constant_id = 16) const uint kForm = kPlainInput;  // of the blocks that are made of the result
PARAMETERS(MatmulParams)
#define MATMUL PARAMS
#define ENDS
#include "matmul.glsl"

void main() { multiply(gl_WorkGroupID.xy); }
