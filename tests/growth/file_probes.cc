// Untrusted files: headers of weights, configs, a hub's list of files, a desired state.
#include <fmt/format.h>

#include <map>

#include "cluster/state/desired_json.h"
#include "gguf/gguf.h"
#include "growth/probe.h"
#include "hub/files/choose_files.h"
#include "hub/files/model_files.h"
#include "hub/files/model_id.h"
#include "hub/files/piece_plan.h"
#include "model/config/config.h"
#include "support/gguf_writer.h"
#include "support/memory_safetensors.h"
#include "support/text.h"
#include "weights/safetensors/safetensors.h"

namespace lockstep {
namespace {

bool reads_gguf(const std::string& file) {
  return GgufFile::parse(bytes_of(file)).ok();
}
bool reads_safetensors(const std::string& file) {
  return read_safetensors_header(bytes_of(file)).ok();
}

Probes weights() {
  const auto tensors = [](bool is_backwards) {
    return [is_backwards](size_t n) {
      GgufWriter writer;
      writer.string("general.architecture", "llama");
      for (size_t i = 0; i < n; ++i) {
        writer.tensor(fmt::format("t{}", i), {8}, 0, 32 * (is_backwards ? n - 1 - i : i));
      }
      return writer.file(32 * n);
    };
  };
  return {
      text_probe("gguf: tensors", 800, tensors(false), reads_gguf),
      text_probe("gguf: tensors backwards", 800, tensors(true), reads_gguf),
      text_probe(
          "gguf: metadata", 800,
          [](size_t n) {
            GgufWriter writer;
            for (size_t i = 0; i < n; ++i) writer.integer(fmt::format("k{}", i), 1);
            return writer.file();
          },
          reads_gguf),
      text_probe(
          "gguf: an array of strings", 3000,
          [](size_t n) {
            return GgufWriter().strings("a", std::vector<std::string>(n, "word")).file();
          },
          reads_gguf),
      text_probe(
          "gguf: arrays in arrays", 2000,
          [](size_t n) {
            const std::string inner =
                GgufWriter::raw(GgufWriter::kUint8) + GgufWriter::raw<uint64_t>(1) + "a";
            return GgufWriter().array("a", GgufWriter::kArray, n, repeated(inner, n)).file();
          },
          reads_gguf),
      text_probe(
          "safetensors: tensors", 800,
          [](size_t n) {
            MemorySafetensors writer;
            for (size_t i = 0; i < n; ++i) writer.filled(fmt::format("t{}", i), "F32", {2}, 1.0f);
            return writer.file();
          },
          reads_safetensors),
      text_probe(
          "safetensors: tensors of no type", 800,
          [](size_t n) {
            MemorySafetensors writer;
            for (size_t i = 0; i < n; ++i) {
              writer.tensor(fmt::format("t{}", i), "F99", {1}, std::string(4, 'a'));
            }
            return writer.file();
          },
          reads_safetensors),
      text_probe(
          "safetensors: long shapes", 1000,
          [](size_t n) {
            return MemorySafetensors()
                .tensor("t", "F32", std::vector<int64_t>(n, 1), std::string(4, 'a'))
                .file();
          },
          reads_safetensors),
  };
}

Probes configs() {
  const std::string known = source_file("models/stories260K/config.json");
  const std::string begin = known.substr(0, known.rfind('}'));
  const auto reads = [](const std::string& text) { return parse_config(text).ok(); };
  return {
      text_probe(
          "config: unknown fields", 2000,
          [begin](size_t n) {
            return begin + "," +
                   listed(n, ",", [](size_t i) { return fmt::format("\"x{}\":1", i); }) + "}";
          },
          reads),
      text_probe(
          "config: kinds of layers", 2000,
          [begin](size_t n) {
            return begin + ",\"layer_types\":[" + repeated("\"full_attention\",", n) +
                   "\"full_attention\"]}";
          },
          reads),
  };
}

std::string hub_list(size_t count, const char* name) {
  return fmt::format("{{\"sha\":\"{:040x}\",\"siblings\":[", 1) +
         listed(count, ",",
                [name](size_t i) {
                  return fmt::format(R"({{"rfilename":"{}","size":9,"blobId":"{:040x}"}})",
                                     fmt::format(fmt::runtime(name), i), i);
                }) +
         "]}";
}

Probes hub() {
  const auto reads = [](const std::string& text) {
    const auto files = parse_model_files(text);
    if (!files.ok()) return false;
    (void)choose_files(files.value(), {.repository = "org/name"}, {});
    return !dump_model_files(files.value()).empty();
  };
  return {
      text_probe(
          "hub: files", 500, [](size_t n) { return hub_list(n, "model-{}.safetensors"); }, reads),
      text_probe(
          "hub: several GGUF files", 500, [](size_t n) { return hub_list(n, "m-{}.gguf"); }, reads),
      text_probe(
          "hub: files in folders", 500, [](size_t n) { return hub_list(n, "a/b{}/c.json"); },
          reads),
      text_probe(
          "hub: a folder in a folder", 500,
          [](size_t n) { return hub_list(n, "a/a/a/a/a/a/a/a/a/a/a{}.json"); }, reads),
      text_probe(
          "hub: a pattern of stars", 300, [](size_t n) { return repeated("a", n); },
          [](const std::string& name) { return !matches("*a*a*a*a*b", name + name); }),
      {"hub: pieces and who keeps them", 500,
       [](size_t n) -> Reading {
         std::vector<PieceHolder> holders;
         for (int i = 0; i < 8; ++i) {
           holders.push_back({i, std::vector<bool>(n, i % 2 == 0), {}, uint64_t{1} << 40, true});
         }
         return [holders, n] {
           const PieceCut cut{.size = n << 20, .piece_bytes = size_t{1} << 20};
           return !copies_of(fmt::format("{:064x}", 1), cut, holders).empty();
         };
       }},
      {"desired: entries", 100,
       [](size_t n) -> Reading {
         JsonArray entries;
         for (size_t i = 0; i < n; ++i) {
           DesiredEntry entry;
           entry.name = fmt::format("m{}", i);
           entry.path = "org/model";
           entries.push_back(entry_json(entry));
         }
         return [list = Json(std::move(entries))] { return desired_of(list).ok(); };
       }},
  };
}

}  // namespace

Probes file_probes() {
  Probes all;
  for (const auto& part : {weights(), configs(), hub()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace lockstep
