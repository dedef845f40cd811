// The pre-tokenizers that GGUF files name in tokenizer.ggml.pre. The names are llama.cpp's
// (convert_hf_to_gguf_update.py), the patterns come from the models' own tokenizer.json files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace lockstep {

struct NamedPreTokenizer {
  std::vector<std::string> patterns;  // in sequence, matches isolated
  bool ignores_merges = false;        // a piece that is a token becomes that token
  bool adds_bos = false;              // if the file does not say
  bool has_nfc = false;               // the model's tokenizer.json has an NFC normalizer
};

// kUnsupported with the known names.
Result<NamedPreTokenizer> named_pre_tokenizer(std::string_view name);

}  // namespace lockstep
