#include "cli/talk/talk_text.h"

#include <fmt/core.h>

#include "cli/client/node_client.h"
#include "cli/client/served_model.h"
#include "cli/text/output.h"
#include "cli/text/terminal_text.h"
#include "cli/text/transfer_text.h"

namespace lockstep {
namespace {

std::string ordinal(int64_t number) {
  const int64_t tens = number % 100;
  const bool is_teen = tens >= 11 && tens <= 13;
  const char* ending = is_teen            ? "th"
                       : number % 10 == 1 ? "st"
                       : number % 10 == 2 ? "nd"
                       : number % 10 == 3 ? "rd"
                                          : "th";
  return fmt::format("{}{}", number, ending);
}

// The newest is the last in the list.
const Json* own_request(const Json& requests, std::string_view model) {
  const Json* own = nullptr;
  for (const Json& request : list_in(requests, "requests")) {
    if (flag_in(request, "own") && text_in(request, "model") == model) own = &request;
  }
  return own;
}

std::string reading_text(const Json& request) {
  const int64_t whole = number_in(request, "prompt_tokens");
  const int64_t done = number_in(request, "prompt_done");
  const double age_s = real_in(request, "age_s");
  std::string text =
      fmt::format("reading {} of {} tokens", grouped_text(done), grouped_text(whole));
  if (done > 0 && whole > done && age_s > 1) {
    const double left_s = age_s * static_cast<double>(whole - done) / static_cast<double>(done);
    text += fmt::format(", {} left", duration_text(left_s));
  }
  return text;
}

}  // namespace

std::string token_count_text(int64_t tokens) {
  if (tokens < 1000) return std::to_string(tokens);
  const double thousands = static_cast<double>(tokens) / 1000;
  const std::string text = fmt::format("{:.{}f}", thousands, tokens < 10'000 ? 1 : 0);
  return (text.ends_with(".0") ? text.substr(0, text.size() - 2) : text) + "k";
}

std::string grouped_text(int64_t number) {
  std::string digits = std::to_string(number);
  for (size_t at = digits.size(); at > 3;) {
    at -= 3;
    if (digits[at - 1] != '-') digits.insert(at, ",");
  }
  return digits;
}

std::string talk_prompt(std::string_view model, int64_t used, int64_t context) {
  if (context <= 0) return fmt::format("{} > ", model);
  return fmt::format("{} {}/{} > ", model, token_count_text(used), token_count_text(context));
}

std::string figures_line(const TalkFigures& figures) {
  if (figures.new_tokens < 0) return "";
  std::string line = counted(static_cast<uint64_t>(figures.new_tokens), "token");
  if (figures.tokens_s > 0) line += fmt::format(", {:.1f} tok/s", figures.tokens_s);
  if (figures.first_s >= 0) line += fmt::format(", first {:.2f} s", figures.first_s);
  if (figures.prompt_tokens >= 0 && figures.cached_tokens >= 0) {
    line += fmt::format(", {} reused + {} new", grouped_text(figures.cached_tokens),
                        grouped_text(figures.prompt_tokens - figures.cached_tokens));
  } else if (figures.prompt_tokens >= 0) {
    line += fmt::format(", prompt {}", grouped_text(figures.prompt_tokens));
  }
  return line;
}

std::string waiting_text(const Json& requests, const Json& status, std::string_view model,
                         double waited_s) {
  const Json* served = model_named(status, model);
  if (served != nullptr && !is_model_ready(*served)) return model_progress(*served);
  const Json* own = own_request(requests, model);
  if (own != nullptr) {
    const std::string phase = text_in(*own, "phase");
    if (phase == "paused") {
      return fmt::format("{} is formed again; the answer goes on then ({})", harmless_line(model),
                         duration_text(waited_s));
    }
    if (number_in(*own, "prompt_done") > 0) return reading_text(*own);
    if (const int64_t place = number_in(*own, "place"); place > 1) {
      return fmt::format("{} in the queue", ordinal(place));
    }
  }
  return fmt::format("waiting, {}", duration_text(waited_s));
}

std::string thinking_text(int64_t tokens, double seconds, bool is_over) {
  if (!is_over) return fmt::format("thinking, {} tokens", grouped_text(tokens));
  return fmt::format("thought for {:.0f} s, {} tokens", seconds, grouped_text(tokens));
}

}  // namespace lockstep
