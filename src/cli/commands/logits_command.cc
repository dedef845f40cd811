// `lockstep logits`: a model's logits, number for number.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <span>

#include "cli/client/generate.h"
#include "cli/commands/commands.h"
#include "cli/flags/group_flags.h"
#include "cli/text/output.h"
#include "model/load/open_model.h"

namespace lockstep {
namespace {

// The draft layer continues the last token given with the one chosen after it, in the step that
// chooses another.
constexpr int kTokensToDraft = 2;

struct LogitsFlags {
  GroupFlags group;
  std::string ids;
  int chunk = 0;
  int greedy = 0;
  bool has_draft = false;
  bool json = false;
};

Result<std::vector<int32_t>> parse_ids(const std::string& text) {
  std::vector<int32_t> ids;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    int32_t id = 0;
    const auto parsed = std::from_chars(at, end, id);
    if (parsed.ec != std::errc() || (parsed.ptr != end && *parsed.ptr != ',')) {
      return Error{ErrorCode::kInvalidArgument,
                   "--ids must be token ids with commas between, like 1,2,3"};
    }
    ids.push_back(id);
    at = parsed.ptr == end ? end : parsed.ptr + 1;
  }
  if (ids.empty()) return Error{ErrorCode::kInvalidArgument, "--ids names no tokens"};
  return ids;
}

// Every `stride`-th row.
void append_rows(std::span<const std::vector<float>> rows, std::string& text, size_t stride = 1) {
  text += '[';
  for (size_t row = 0; row < rows.size(); row += stride) {
    text += row == 0 ? "[" : ",[";
    for (size_t i = 0; i < rows[row].size(); ++i) {
      if (i > 0) text += ',';
      append_json_float(text, rows[row][i]);
    }
    text += ']';
  }
  text += ']';
}

// The draft layer's logits after each token: of one guess, or of a block of guesses, whose first
// ones stand under "mtp" too.
void append_drafted(std::span<const std::vector<float>> rows, size_t tokens, size_t block,
                    std::string& text) {
  const size_t of_token = std::max<size_t>(1, block);
  tokens = std::min(tokens, rows.size() / of_token);
  text += ",\"mtp\":";
  append_rows(rows.first(tokens * of_token), text, of_token);
  if (block == 0) return;
  text += ",\"dspark\":[";
  for (size_t i = 0; i < tokens; ++i) {
    if (i > 0) text += ',';
    append_rows(rows.subspan(i * block, block), text);
  }
  text += ']';
}

// `block`: guesses that the draft layer makes at once; 0: one after the other.
std::string answer_text(const LogitsFlags& flags, const Generated& generation, size_t block,
                        const ModelStatus& status) {
  std::string text = "{\"logits\":";
  append_rows(generation.logits, text);
  if (flags.has_draft) {
    append_drafted(generation.draft_logits, generation.logits.size(), block, text);
  }
  const auto end =
      generation.tokens.begin() + std::min<ptrdiff_t>(flags.greedy, std::ssize(generation.tokens));
  text += ",\"greedy\":" + dump_json(JsonArray(generation.tokens.begin(), end));
  JsonArray ranks;
  for (const RankStatus& rank : status.ranks) {
    ranks.push_back(JsonObject{
        {"pid", rank.pid}, {"weight_bytes", rank.weight_bytes}, {"read_bytes", rank.read_bytes}});
  }
  return text + ",\"ranks\":" + dump_json(ranks) + "}";
}

Result<int> block_of(const std::string& model) {
  const ModelConfig config = TRY(read_model_config(model));
  return config.draft_block ? config.draft_block->size : 0;
}

Result<std::string> logits_answer(const LogitsFlags& flags) {
  GenerateRequest request{
      .prompt = TRY(parse_ids(flags.ids)),
      .max_tokens = flags.has_draft ? std::max(flags.greedy, kTokensToDraft) : flags.greedy,
      .prompt_logits = true,
      .draft_logits = flags.has_draft,
      .chunk = flags.chunk};
  GroupSupervisorOptions options = TRY(group_options(flags.group));
  options.spec.draft_layer = flags.has_draft;
  options.restarts = false;  // an answer is lost with its group
  int& batch = options.spec.batch_tokens_max;
  batch = std::max(batch, std::min(flags.chunk, 8192));
  const auto group = TRY(start_group(options));
  print_quantisation(flags.group, group->status());
  TRY(check_context(request.prompt.size(), group->status()));
  const int block = flags.has_draft ? TRY(block_of(options.spec.model.string())) : 0;
  const Generated generation = TRY(generate_and_wait(*group, std::move(request)));
  return answer_text(flags, generation, static_cast<size_t>(block), group->status());
}

}  // namespace

void add_logits_command(CLI::App& app, Command& chosen) {
  auto flags = std::make_shared<LogitsFlags>();
  CLI::App* command =
      app.add_subcommand("logits", "print the logits after each of the given tokens, as JSON");
  command
      ->add_option("MODEL", flags->group.model,
                   "a model folder, a .gguf file or a pulled model (org/name)")
      ->required();
  command->add_option("--ids", flags->ids, "token ids, e.g. 1,2,3")->required();
  command->add_option("--greedy", flags->greedy, "then choose this many tokens greedily")
      ->check(at_least(0));
  command->add_option("--chunk", flags->chunk, "feed the tokens in chunks of at most this many")
      ->check(at_least(1));
  command->add_flag("--mtp", flags->has_draft,
                    "also the draft layer's logits of the token after the next");
  command->add_flag("--json", flags->json, "one JSON value (always)");
  add_group_flags(*command, flags->group);
  add_bits_flag(*command, flags->group);
  command->callback([flags, &chosen] {
    chosen = [flags] {
      auto text = logits_answer(*flags);
      if (!text.ok()) return fail(text.error());
      print_line(text.value());
      return 0;
    };
  });
}

}  // namespace lockstep
