#include "node/wire/worker_setup.h"

#include <utility>

#include "node/wire/message_fields.h"
#include "weights/quantised/quantise.h"

namespace lockstep {
namespace {

// The JSON of a field, by its type.
Json field_json(bool value) {
  return value;
}
Json field_json(int value) {
  return value;
}
Json field_json(uint64_t value) {
  return as_signed(value);
}
Json field_json(double value) {
  return value;
}
Json field_json(const std::string& value) {
  return Json(value);
}
Json field_json(const std::filesystem::path& value) {
  return Json(value.string());
}
Json field_json(const std::vector<double>& value) {
  return json_array(value);
}
Json field_json(LinkKind value) {
  return Json(link_kind_name(value));
}
Json field_json(Topology value) {
  return Json(topology_name(value));
}
Json field_json(Wire value) {
  return Json(wire_name(value));
}
Json field_json(std::optional<KvKind> value) {
  return value ? Json(kv_kind_name(*value)) : Json();
}
Json field_json(SumAlgorithm value) {
  return Json(sum_algorithm_name(value));
}
Json field_json(const LinkOptions& link) {
  JsonObject object;
  for_each_link_field(
      link, [&](std::string_view name, const auto& field) { object[name] = field_json(field); });
  return object;
}

// Reads the member `name` of `json` into a field, by its type.
Status read_field(const Json& json, std::string_view name, bool& field) {
  const auto value = TRY(get_bool(json, name));
  if (!value) return corrupt_message(name);
  field = *value;
  return Ok{};
}
Status read_field(const Json& json, std::string_view name, int& field) {
  field = TRY(need_int32(json, name));
  return Ok{};
}
Status read_field(const Json& json, std::string_view name, uint64_t& field) {
  field = TRY(need_uint64(json, name));
  return Ok{};
}
Status read_field(const Json& json, std::string_view name, double& field) {
  field = TRY(need_double(json, name));
  return Ok{};
}
Status read_field(const Json& json, std::string_view name, std::string& field) {
  field = TRY(need_string(json, name));
  return Ok{};
}
Status read_field(const Json& json, std::string_view name, std::filesystem::path& field) {
  field = TRY(need_string(json, name));
  return Ok{};
}
Status read_field(const Json& json, std::string_view name, std::vector<double>& field) {
  field = TRY(get_numbers<double>(json, name));
  return Ok{};
}
Status read_field(const Json& json, std::string_view name, LinkKind& field) {
  field = TRY(parse_link_kind(TRY(need_string(json, name))));
  return Ok{};
}
Status read_field(const Json& json, std::string_view name, Topology& field) {
  field = TRY(parse_topology(TRY(need_string(json, name))));
  return Ok{};
}
Status read_field(const Json& json, std::string_view name, Wire& field) {
  field = TRY(parse_wire(TRY(need_string(json, name))));
  return Ok{};
}
Status read_field(const Json& json, std::string_view name, std::optional<KvKind>& field) {
  const Json* const value = find(json, name);
  if (value == nullptr) return corrupt_message(name);
  field.reset();
  if (!value->is_null()) field = TRY(parse_kv_kind(TRY(need_string(json, name))));
  return Ok{};
}
Status read_field(const Json& json, std::string_view name, SumAlgorithm& field) {
  field = TRY(parse_sum_algorithm(TRY(need_string(json, name))));
  return Ok{};
}
Status read_field(const Json& json, std::string_view name, LinkOptions& link) {
  const Json* object = find(json, name);
  if (!object || !object->is_object()) return corrupt_message(name);
  Status status = Ok{};
  for_each_link_field(link, [&](std::string_view each, auto& field) {
    if (status.ok()) status = read_field(*object, each, field);
  });
  return status;
}

}  // namespace

std::string encode_setup(const WorkerSetup& setup) {
  JsonObject object;
  for_each_setup_field(
      setup, [&](std::string_view name, const auto& field) { object[name] = field_json(field); });
  return dump_json(object);
}

Result<WorkerSetup> decode_setup(std::string_view payload) {
  const Json json = TRY(parse_json(payload));
  WorkerSetup setup;
  Status status = Ok{};
  for_each_setup_field(setup, [&](std::string_view name, auto& field) {
    if (status.ok()) status = read_field(json, name, field);
  });
  TRY(std::move(status));
  const GroupSpec& spec = setup.spec;
  if (spec.bits != 0 && !is_affine_bits(spec.bits)) return corrupt_message("bits");
  if (spec.threads < 0) return corrupt_message("threads");
  if (setup.rank < 0 || setup.rank >= setup.size()) return corrupt_message("rank");
  if (spec.link.stages < 1 || setup.size() % spec.link.stages != 0)
    return corrupt_message("stages");
  return setup;
}

}  // namespace lockstep
