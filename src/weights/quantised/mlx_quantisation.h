// MLX's quantisation as described by config.json: "quantization": {"bits", "group_size", "mode"}
// for all modules, and the same by name for some. The tensors also show it and are what is read;
// this detects a checkpoint whose config and tensors do not match. For SafetensorsSource.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "json/json.h"
#include "tensor/stored_matrix.h"

namespace lockstep {

class MlxQuantisation {
 public:
  // `quantisation` is the value of "quantization". kUnsupported names bits, groups and modes that
  // do not exist, kCorrupt a field of another type.
  static Result<MlxQuantisation> read(const Json& quantisation);

  // kCorrupt if the module is described differently from how it is stored.
  Status check(std::string_view module, const StoredMatrix& stored) const;

 private:
  struct Entry {
    std::optional<int64_t> bits;
    std::optional<int64_t> group;
    std::optional<std::string> mode;
  };

  static Result<Entry> read_entry(std::string_view module, const Json& json);
  const Entry& entry_for(std::string_view module) const;

  Entry all_;
  std::map<std::string, Entry, std::less<>> modules_;
};

}  // namespace lockstep
