// Which architectures of GGUF files lockstep knows, and which of their tensors is which of Hugging
// Face's. Pure functions over names. Facts from llama.cpp: conversion/*.py,
// gguf-py/gguf/constants.py and tensor_mapping.py.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "weights/gguf.h"

namespace lockstep {

struct GgufArchitecture {
  std::string_view name;          // general.architecture
  std::string_view hugging_face;  // in "architectures" of config.json
  // llama.cpp rotates neighbouring elements in these models, Hugging Face an element of the first
  // half of a head with one of the second: query and key heads are stored with interleaved halves.
  bool interleaves_heads = false;
};

// By general.architecture; kUnsupported names it and all that are known.
Result<const GgufArchitecture*> gguf_architecture(const GgufFile& metadata);

struct GgufPlace {
  std::string tensor;
  int stack_index = -1;  // in the tensor's last dimension; -1: it is no stack
};

// Where the tensor that Hugging Face calls `name` may be, the likeliest first; empty for a name
// that no file would have. `stack_index`: see MatrixRequest.
std::vector<GgufPlace> gguf_places(std::string_view name, int stack_index);

}  // namespace lockstep
