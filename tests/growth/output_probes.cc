// Model output in every format of calls, through the output parser: long texts, many calls,
// near-markers, each also byte by byte.
#include <fmt/format.h>

#include <memory>

#include "chat/calls/output_parser.h"
#include "growth/probe.h"
#include "json/json_file.h"
#include "server/generation/stop_matcher.h"

namespace lockstep {
namespace {

std::shared_ptr<const ToolSet> tools() {
  static const auto made = std::make_shared<const ToolSet>(
      parse_json(source_file("tests/data/tool_calls/tools.json")).value());
  return made;
}

bool reads(const ToolFormat& format, const std::string& text, size_t piece, bool is_reasoning) {
  OutputParser parser({.format = &format, .tools = tools(), .reasoning_is_open = is_reasoning});
  size_t deltas = 0;
  for (size_t at = 0; at < text.size(); at += piece) {
    deltas += parser.push(std::string_view(text).substr(at, piece)).size();
  }
  // An output parser refuses nothing, and may produce no deltas.
  return deltas + parser.finish(false).size() < SIZE_MAX;
}

Probe output(const ToolFormat& format, const std::string& shape, size_t items,
             std::function<std::string(size_t)> text, size_t piece = 1) {
  return text_probe(
      fmt::format("output {}: {}", format.name, shape), items, std::move(text),
      [&format, piece](const std::string& raw) { return reads(format, raw, piece, false); });
}

// The recorded output with the most calls, which other formats than "generic" have.
std::string recorded_call(const ToolFormat& format) {
  if (format.name == "generic") return R"({"name":"get_weather","arguments":{"city":"Paris"}})";
  const Json all =
      parse_json(source_file(fmt::format("tests/data/tool_calls/{}.json", format.name))).value();
  return std::string(all.get_array()[0].at("raw").get_string());
}

// The beginnings of all markers, concatenated.
std::string near_markers(const ToolFormat& format) {
  std::string text;
  for (const std::string_view marker : format.markers()) {
    text += std::string(marker.substr(0, marker.size() - 1)) + " ";
  }
  return text.empty() ? "<tool" : text;
}

Probe stop(std::string shape, size_t items, std::vector<std::string> stops, std::string_view text) {
  return {"stop strings: " + std::move(shape), items,
          [stops = std::move(stops), text = std::string(text)](size_t n) -> Reading {
            return [stops, all = repeated(text, n)] {
              StopMatcher matcher(stops);
              size_t told = 0;
              for (const char byte : all) told += matcher.push(std::string_view(&byte, 1)).size();
              return told + matcher.finish().size() > 0;
            };
          }};
}

// Values of calls with bare keys that are held until their end, which does not come.
void add_bare_values(Probes& probes) {
  struct Shape {
    const char* name;
    const char* begin;
    const char* part;
  };
  constexpr Shape kShapes[] = {{"a text without its beginning", "path:", "a, b} c:"},
                               {"a text in quotes", "path:\"", "a\" \\b, "},
                               {"a text for a number", "days:<|\"|>", "1, days: }] "},
                               {"a key in markers", "<|\"|>", "a: <| "},
                               {"a key in quotes", "'", "a' b, "},
                               {"quotes without ends", "", "days:\"b,"},
                               {"open brackets", "", "a:[{"},
                               {"commas", "", ", ,\n"}};
  const ToolFormat& format = *find_tool_format("gemma4");
  for (const Shape& shape : kShapes) {
    probes.push_back(output(format, shape.name, 2000, [shape](size_t n) {
      return std::string("<|tool_call>call:get_weather{") + shape.begin + repeated(shape.part, n);
    }));
  }
}

}  // namespace

Probes output_probes() {
  Probes probes;
  for (const ToolFormat& format : tool_formats()) {
    const auto calls = [&format](size_t n) { return repeated(recorded_call(format) + "\n", n); };
    const std::string near = near_markers(format);
    const std::string_view begin =
        format.section_begin.empty()
            ? (format.call_begin.empty() ? std::string_view() : format.call_begin[0])
            : format.section_begin[0];
    probes.push_back(output(format, "text", 3000, [](size_t n) { return repeated("a text ", n); }));
    probes.push_back(output(format, "many calls", 30, calls));
    probes.push_back(output(format, "many calls at once", 30, calls, size_t{1} << 30));
    probes.push_back(
        output(format, "near markers", 60, [near](size_t n) { return repeated(near, n); }));
    probes.push_back(output(format, "a call that does not end", 2000, [&format, begin](size_t n) {
      const std::string call = recorded_call(format);
      return std::string(begin) + call.substr(begin.size(), call.size() / 2) +
             repeated("\"<{[ \\", n);
    }));
    probes.push_back(output(format, "begins of sections", 300, [begin](size_t n) {
      return repeated(begin.empty() ? "{" : begin, n);
    }));
    probes.push_back(output(format, "blanks after a begin", 4000,
                            [begin](size_t n) { return std::string(begin) + repeated(" \n", n); }));
  }
  add_bare_values(probes);
  probes.push_back(text_probe(
      "output hermes: reasoning", 3000, [](size_t n) { return repeated("</thin thought ", n); },
      [](const std::string& raw) { return reads(*find_tool_format("hermes"), raw, 1, true); }));
  const std::string long_stop = repeated("a", 200) + "b";
  probes.push_back(stop("near matches", 2000, {long_stop, repeated("a", 100) + "c"}, "aaaa"));
  std::vector<std::string> many;
  for (int i = 0; i < 16; ++i) many.push_back(fmt::format("stop{}!", i));
  probes.push_back(stop("many of them", 1000, many, "stop1 stop2"));
  return probes;
}

}  // namespace lockstep
