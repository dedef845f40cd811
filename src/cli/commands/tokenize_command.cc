// `lockstep tokenize`: text to token ids and back.
#include <iostream>
#include <memory>
#include <string>

#include "cli/commands/commands.h"
#include "cli/flags/group_flags.h"
#include "cli/text/output.h"
#include "tokenizer/tokenizer.h"

namespace lockstep {
namespace {

constexpr size_t kTextBytesMax = size_t{256} << 20;

struct TokenizeFlags {
  std::string model;
  std::string text;
  bool has_text = false;
  std::string ids;
  std::string pre;
  bool decode = false;
  bool bos = false;
  bool special = false;
  bool batch = false;
  bool json = false;
};

Result<Json> encode(const Tokenizer& tokenizer, const TokenizeFlags& flags, std::string_view text) {
  const auto ids = tokenizer.encode(text, {.add_bos = flags.bos, .parse_special = flags.special});
  return Json(JsonObject{{"ids", JsonArray(ids.begin(), ids.end())}});
}

Result<Json> decode(const Tokenizer& tokenizer, const Json* ids) {
  const Error bad{ErrorCode::kInvalidArgument, "\"ids\" must be an array of token ids"};
  if (!ids || !ids->is_array()) return bad;
  std::vector<int32_t> values;
  for (const Json& id : ids->get_array()) {
    if (!id.is_int64() || id.get_int64() != static_cast<int32_t>(id.get_int64())) return bad;
    values.push_back(static_cast<int32_t>(id.get_int64()));
  }
  const std::string text = TRY(tokenizer.decode(values));
  return Json(JsonObject{{"text", text}});
}

// A case of --batch: {"text"} or, with --decode, {"ids"}.
Result<Json> answer_tokenize_case(const Tokenizer& tokenizer, const TokenizeFlags& flags,
                                  std::string_view line) {
  const Json value = TRY(parse_json(line));
  if (flags.decode) return decode(tokenizer, find(value, "ids"));
  const auto text = TRY(get_string(value, "text"));
  if (!text) return Error{ErrorCode::kInvalidArgument, "the case has no \"text\""};
  return encode(tokenizer, flags, *text);
}

Result<Json> tokenize_one(const Tokenizer& tokenizer, const TokenizeFlags& flags) {
  if (flags.decode) {
    const std::string ids = flags.ids.empty() ? TRY(read_stdin(kTextBytesMax)) : flags.ids;
    auto value = parse_json(ids.find('[') == std::string::npos ? "[" + ids + "]" : ids);
    if (!value.ok()) {
      return Error{ErrorCode::kInvalidArgument, "write token ids like 1,2,3 or [1,2,3]"};
    }
    const Json* inner = find(value.value(), "ids");
    return decode(tokenizer, inner ? inner : &value.value());
  }
  return encode(tokenizer, flags, flags.has_text ? flags.text : TRY(read_stdin(kTextBytesMax)));
}

int run_tokenize_batch(const Tokenizer& tokenizer, const TokenizeFlags& flags) {
  std::string line;
  while (std::getline(std::cin, line)) {
    if (line.empty()) continue;
    auto result = answer_tokenize_case(tokenizer, flags, line);
    print_json(result.ok() ? result.value() : Json(JsonObject{{"error", result.error().message}}));
  }
  return 0;
}

int run_tokenize_command(const TokenizeFlags& flags) {
  const auto model = find_model(flags.model);
  if (!model.ok()) return fail(model.error());
  auto tokenizer = Tokenizer::load(model.value(), flags.pre);
  if (!tokenizer.ok()) return fail(tokenizer.error());
  if (flags.batch) return run_tokenize_batch(*tokenizer.value(), flags);
  auto result = tokenize_one(*tokenizer.value(), flags);
  if (!result.ok()) return fail(result.error());
  print_json(result.value());
  return 0;
}

}  // namespace

void add_tokenize_command(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<TokenizeFlags>();
  CLI::App* command = app.add_subcommand("tokenize", "turn text into token ids, or back, as JSON");
  command
      ->add_option("MODEL", flags->model,
                   "a model folder, a pulled model (org/name), or a tokenizer.json, tekken.json, "
                   ".model or .gguf file")
      ->required();
  auto* text = command->add_option("--text", flags->text, "the text (default: stdin)");
  command->add_option("--ids", flags->ids, "token ids for --decode (default: stdin)");
  command->add_flag("--decode", flags->decode, "turn ids into text");
  command->add_flag("--bos", flags->bos, "begin with the beginning-of-sequence token");
  command->add_flag("--special", flags->special, "special tokens in the text are special");
  command->add_option("--pre", flags->pre,
                      "use this pre-tokenizer instead of the model's (GGUF and tiktoken files)");
  command->add_flag("--batch", flags->batch, "stdin holds a JSON case on each line");
  command->add_flag("--json", flags->json, "one JSON value (always)");
  command->callback([flags, text, &chosen] {
    flags->has_text = text->count() > 0;
    chosen = [flags] { return run_tokenize_command(*flags); };
  });
}

}  // namespace lockstep
