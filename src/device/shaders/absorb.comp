#version 450
#extension GL_GOOGLE_include_directive : require
// The product of each head of latent attention, and in further workgroups what latent.glsl does,
// which needs the same products before it.
#include "common.glsl"

layout(local_size_x = 128) in;
const uint kEnd = kEndsStored;
PARAMETERS(AbsorbParams)
#define MATMUL PARAMS.matmul
#include "matmul.glsl"
#define LATENT PARAMS.latent
#define KIND_CONSTANT 15
#define INVOCATIONS 128u
#include "latent.glsl"

void main() {
  const uint tiles = MATMUL.products[0].tile_end;
  if (gl_WorkGroupID.x < tiles) {
    multiply(gl_WorkGroupID.xy);
    return;
  }
  const uint number = (gl_WorkGroupID.x - tiles) * gl_NumWorkGroups.y + gl_WorkGroupID.y;
  const uint of_token = LATENT.heads + 1u, tokens = MATMUL.items / MATMUL.slots;
  if (number < of_token * tokens) {
    store_latent(gl_LocalInvocationIndex, number % of_token, number / of_token);
  }
}
