// `lockstep schema`: whether decoding under a JSON schema could produce a text.
#include <iostream>
#include <memory>
#include <string>

#include "cli/commands/commands.h"
#include "cli/text/output.h"
#include "grammar/automaton/matcher.h"
#include "grammar/schema/json_schema.h"
#include "json/json_file.h"

namespace lockstep {
namespace {

constexpr size_t kSchemaInputBytesMax = size_t{64} << 20;

struct SchemaFlags {
  std::string schema;
  std::string instance;
  bool has_instance = false;
  bool compact = false;
  bool lenient = false;
  bool batch = false;
  bool json = false;
};

Result<Json> schema_answer(const SchemaFlags& flags, const Json& schema,
                           std::string_view instance) {
  Grammar grammar;
  const JsonSchemaOptions options{
      .is_strict = !flags.lenient,
      .space = flags.compact ? JsonSpace::kCompact : JsonSpace::kBounded,
  };
  const JsonSchemaGrammar built = TRY(add_json_schema(grammar, schema, options));
  JsonObject result;
  auto compiled = compile_grammar(grammar, built.expression);
  // A schema that nothing satisfies accepts no instance: that is a result.
  const bool is_empty = !compiled.ok() && compiled.error().code == ErrorCode::kInvalidArgument;
  if (!compiled.ok() && !is_empty) return compiled.error();
  bool is_accepted = false;
  if (!is_empty) {
    Matcher matcher(compiled.value());
    is_accepted = matcher.accept_bytes(instance) && matcher.may_end();
  }
  result["accepted"] = is_accepted;
  if (!built.warnings.empty()) {
    result["warnings"] = JsonArray(built.warnings.begin(), built.warnings.end());
  }
  return Json(std::move(result));
}

// A case of --batch: {"schema", "instance"}.
Result<Json> answer_schema_case(const SchemaFlags& flags, std::string_view line) {
  const Json value = TRY(parse_json(line));
  const Json* schema = find(value, "schema");
  if (!schema) return Error{ErrorCode::kInvalidArgument, "the case has no \"schema\""};
  const auto instance = TRY(get_string(value, "instance"));
  if (!instance) {
    return Error{ErrorCode::kInvalidArgument,
                 "the case has no \"instance\", a string that holds JSON"};
  }
  return schema_answer(flags, *schema, *instance);
}

Result<Json> answer_flags(const SchemaFlags& flags) {
  if (flags.schema.empty()) return answer_schema_case(flags, TRY(read_stdin(kSchemaInputBytesMax)));
  const Json schema = TRY(read_json_file(flags.schema));
  return schema_answer(flags, schema,
                       flags.has_instance ? flags.instance : TRY(read_stdin(kSchemaInputBytesMax)));
}

int run_schema_command(const SchemaFlags& flags) {
  if (!flags.batch) {
    auto result = answer_flags(flags);
    if (!result.ok()) return fail(result.error());
    print_json(result.value());
    return 0;
  }
  std::string line;
  while (std::getline(std::cin, line)) {
    if (line.empty()) continue;
    auto result = answer_schema_case(flags, line);
    print_json(result.ok() ? result.value() : Json(JsonObject{{"error", result.error().message}}));
  }
  return 0;
}

}  // namespace

void add_schema_command(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<SchemaFlags>();
  CLI::App* command = app.add_subcommand(
      "schema", "say whether decoding with a JSON schema can produce a text, as JSON");
  command->add_option("SCHEMA", flags->schema,
                      "a file with a JSON schema (default: {\"schema\", \"instance\"} on stdin)");
  auto* instance =
      command->add_option("--instance", flags->instance, "the JSON text (default: stdin)");
  command->add_flag("--compact", flags->compact, "allow no white space between values");
  command->add_flag("--lenient", flags->lenient,
                    "leave out what cannot be enforced, with a warning");
  command->add_flag("--batch", flags->batch, "stdin holds a JSON case on each line");
  command->add_flag("--json", flags->json, "one JSON value (always)");
  command->callback([flags, instance, &chosen] {
    flags->has_instance = instance->count() > 0;
    chosen = [flags] { return run_schema_command(*flags); };
  });
}

}  // namespace lockstep
