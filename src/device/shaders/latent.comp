#version 450
#extension GL_GOOGLE_include_directive : require
// latent.glsl alone: a workgroup takes one head of one token, or its latent.
#include "common.glsl"

layout(local_size_x = 64) in;
PARAMETERS(LatentParams)
#define LATENT PARAMS
#include "latent.glsl"

void main() { store_latent(gl_LocalInvocationIndex, gl_WorkGroupID.x, gl_WorkGroupID.y); }
