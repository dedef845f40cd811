// `lockstep template`: converts a conversation to the text that the model reads.
#include <fmt/core.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "chat/normalise.h"
#include "chat/template_file.h"
#include "cli/commands/commands.h"
#include "cli/flags/group_flags.h"
#include "cli/text/output.h"

namespace lockstep {
namespace {

constexpr size_t kTemplateInputBytesMax = size_t{256} << 20;

struct TemplateFlags {
  std::string model;
  bool raw = false;
  bool batch = false;
  bool json = false;
};

struct Template {
  ModelTemplate model;
  std::optional<TemplateNeeds> needs;  // none with --raw
};

bool is_list_of_objects(const Json& json) {
  const JsonArray* list = json.if_array();
  return list != nullptr &&
         std::all_of(list->begin(), list->end(), [](const Json& item) { return item.is_object(); });
}

// {"messages", "tools", "extra"}: extra sets variables of the template, and "now" its clock.
Result<Json> answer_template_case(const Template& loaded, std::string_view text) {
  const Json value = TRY(parse_json(text));
  const Json* messages = find(value, "messages");
  if (!messages) return Error{ErrorCode::kInvalidArgument, "the case has no \"messages\""};
  if (!is_list_of_objects(*messages)) {
    return Error{ErrorCode::kInvalidArgument, "\"messages\" must be a list of objects"};
  }
  const Json normalised =
      loaded.needs ? normalised_messages(*messages, *loaded.needs) : Json(*messages);
  JsonObject model_variables = loaded.model.tokens;
  JsonObject request_variables;
  ChatTemplateInput input;
  input.now = local_time_now();
  if (const Json* extra = find(value, "extra"); extra && extra->is_object()) {
    for (const auto& entry : extra->get_object()) {
      const std::string_view key(entry.key().data(), entry.key().size());
      (key.ends_with("_token") ? model_variables : request_variables)[key] = entry.value();
    }
    request_variables.erase("now");
    if (const auto now = TRY(get_string(*extra, "now"))) input.now = TRY(parse_time(*now));
  }
  input.messages = &normalised;
  const Json* given_tools = find(value, "tools");
  const Json tools = loaded.needs ? normalised_tools(given_tools, *loaded.needs) : Json();
  input.tools = loaded.needs ? &tools : given_tools;
  input.model_variables = &model_variables;
  input.request_variables = &request_variables;
  const std::string prompt = prompt_text(TRY(loaded.model.chat_template.render(input)));
  return Json(JsonObject{{"prompt", prompt}});
}

int run_template_batch(const Template& loaded) {
  std::string line;
  while (std::getline(std::cin, line)) {
    if (line.empty()) continue;
    auto result = answer_template_case(loaded, line);
    print_json(result.ok() ? result.value() : Json(JsonObject{{"error", result.error().message}}));
  }
  return 0;
}

int run_template_command(const TemplateFlags& flags) {
  const auto path = find_model(flags.model);
  if (!path.ok()) return fail(path.error());
  auto model = load_model_template(path.value());
  if (!model.ok()) return fail(model.error());
  Template loaded{std::move(model.value()), std::nullopt};
  if (!flags.raw) {
    const auto needs = probe_template(loaded.model.chat_template);
    if (!needs.ok()) return fail(needs.error());
    loaded.needs = needs.value();
  }
  if (flags.batch) return run_template_batch(loaded);
  auto text = read_stdin(kTemplateInputBytesMax);
  if (!text.ok()) return fail(text.error());
  auto result = answer_template_case(loaded, text.value());
  if (!result.ok()) return fail(result.error());
  print_json(result.value());
  return 0;
}

}  // namespace

void add_template_command(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<TemplateFlags>();
  CLI::App* command =
      app.add_subcommand("template", "turn a conversation into the model's prompt, as JSON");
  command
      ->add_option("MODEL", flags->model,
                   "a model folder, a pulled model (org/name), or a .gguf or .jinja file")
      ->required();
  command->add_flag("--raw", flags->raw, "render exactly what is given");
  command->add_flag("--batch", flags->batch, "stdin holds a JSON case on each line");
  command->add_flag("--json", flags->json, "one JSON value (always)");
  command->callback(
      [flags, &chosen] { chosen = [flags] { return run_template_command(*flags); }; });
}

}  // namespace lockstep
