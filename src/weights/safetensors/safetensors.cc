#include "weights/safetensors/safetensors.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "json/json.h"

namespace lockstep {
namespace {

constexpr size_t kLengthBytes = 8;

// The bits of one element for every dtype of the format, so that the sizes of unsupported tensors
// are checked too.
struct StoredType {
  std::string_view name;
  uint64_t bits;
};
constexpr StoredType kStoredTypes[] = {
    {"BOOL", 8}, {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
    {"I8", 8},   {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"I16", 16},
    {"U16", 16}, {"F16", 16},    {"BF16", 16},   {"I32", 32},    {"U32", 32},
    {"F32", 32}, {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64},
};

std::optional<uint64_t> stored_bits(std::string_view dtype) {
  for (const StoredType& type : kStoredTypes) {
    if (type.name == dtype) return type.bits;
  }
  return std::nullopt;
}

std::optional<DType> known_dtype(std::string_view name) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3, DType::kF8E8M0,
                           DType::kU8, DType::kI8, DType::kU32, DType::kI32, DType::kI64}) {
    if (dtype_name(type) == name) return type;
  }
  return std::nullopt;
}

struct Entry {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  uint64_t begin;  // in the data after the header
  uint64_t end;
};

Error corrupt_safetensors(std::string message) {
  return {ErrorCode::kCorrupt, std::move(message)};
}

Error bad_tensor(std::string_view name, std::string_view what) {
  return corrupt_safetensors("tensor \"" + std::string(name) + "\" " + std::string(what));
}

uint64_t read_little_endian(std::span<const std::byte, kLengthBytes> bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) value |= std::to_integer<uint64_t>(bytes[i]) << 8 * i;
  return value;
}

// Nullopt for a fractional or negative number, or one beyond int64.
std::optional<int64_t> as_size(const Json& value) {
  const int64_t* number = value.if_int64();
  return number != nullptr && *number >= 0 ? std::optional(*number) : std::nullopt;
}

Result<std::vector<int64_t>> read_shape(std::string_view name, const Json& tensor) {
  const Json* shape = find(tensor, "shape");
  const JsonArray* array = shape == nullptr ? nullptr : shape->if_array();
  if (array == nullptr) return bad_tensor(name, "has no shape");
  std::vector<int64_t> sizes;
  for (const Json& element : *array) {
    const auto size = as_size(element);
    if (!size) return bad_tensor(name, "has an invalid dimension: " + dump_json(element));
    sizes.push_back(*size);
  }
  return sizes;
}

Result<Entry> read_entry(std::string_view name, const Json& tensor) {
  if (!tensor.is_object()) return bad_tensor(name, "is not described by an object");
  const auto dtype = get_string(tensor, "dtype");
  if (!dtype.ok() || !dtype.value()) return bad_tensor(name, "has no dtype");
  auto shape = TRY(read_shape(name, tensor));
  const Json* offsets = find(tensor, "data_offsets");
  const JsonArray* pair = offsets == nullptr ? nullptr : offsets->if_array();
  if (pair == nullptr || pair->size() != 2) return bad_tensor(name, "has no pair of data_offsets");
  const auto begin = as_size((*pair)[0]);
  const auto end = as_size((*pair)[1]);
  if (!begin || !end || *begin > *end) {
    return bad_tensor(name, "has data_offsets that are not a range: " + dump_json(*offsets));
  }
  return Entry{std::string(name), *dtype.value(), std::move(shape), static_cast<uint64_t>(*begin),
               static_cast<uint64_t>(*end)};
}

// Nullopt if the size in bytes exceeds 64 bits, or the shape ends inside a byte.
std::optional<uint64_t> elements_bytes(const std::vector<int64_t>& shape, uint64_t element_bits) {
  uint64_t bits = element_bits;
  for (const int64_t size : shape) {
    if (__builtin_mul_overflow(bits, static_cast<uint64_t>(size), &bits)) return std::nullopt;
  }
  return bits % 8 == 0 ? std::optional(bits / 8) : std::nullopt;
}

Status check_size(const Entry& entry) {
  const auto bits = stored_bits(entry.dtype);
  if (!bits) return Ok{};  // a dtype newer than this table; requesting the tensor is an error
  const auto bytes = elements_bytes(entry.shape, *bits);
  if (!bytes) return bad_tensor(entry.name, "has a shape that is too large");
  if (*bytes == entry.end - entry.begin) return Ok{};
  return bad_tensor(entry.name, "needs " + std::to_string(*bytes) +
                                    " bytes for its shape but has " +
                                    std::to_string(entry.end - entry.begin));
}

// `entries` must be contiguous from 0 to `data_bytes`.
Status check_layout(const std::vector<Entry>& entries, uint64_t data_bytes) {
  uint64_t position = 0;
  for (const Entry& entry : entries) {
    if (entry.end > data_bytes) {
      return bad_tensor(entry.name, "ends at byte " + std::to_string(entry.end) +
                                        " of the data, which has " + std::to_string(data_bytes));
    }
    if (entry.begin < position) return bad_tensor(entry.name, "overlaps another tensor");
    if (entry.begin > position) return bad_tensor(entry.name, "leaves a hole before its data");
    position = entry.end;
  }
  if (position == data_bytes) return Ok{};
  return corrupt_safetensors("the file has " + std::to_string(data_bytes - position) +
                             " bytes that belong to no tensor");
}

// The writer's name for its library. Other metadata, and metadata of a wrong kind, say nothing.
std::string format_of(const Json& metadata) {
  const Json* format = metadata.is_object() ? find(metadata, "format") : nullptr;
  const auto* text = format == nullptr ? nullptr : format->if_string();
  return text == nullptr ? "" : std::string(text->data(), text->size());
}

struct Entries {
  std::vector<Entry> tensors;
  std::string format;
};

Result<Entries> read_entries(std::string_view header) {
  if (!header.starts_with('{')) return corrupt_safetensors("the header is not a JSON object");
  const Result<Json> parsed = parse_large_json(header, DuplicateKeys::kRefuse);
  if (!parsed.ok()) return Error{parsed.error().code, "the header is " + parsed.error().message};
  Entries result;
  std::vector<Entry>& entries = result.tensors;
  for (const auto& member : parsed.value().get_object()) {
    const std::string_view name(member.key().data(), member.key().size());
    if (name == "__metadata__") {
      result.format = format_of(member.value());
      continue;
    }
    entries.push_back(TRY(read_entry(name, member.value())));
    TRY(check_size(entries.back()));
  }
  // Empty tensors have the same offset as the next one; the end sorts them before it.
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  return result;
}

// The file that `git clone` leaves in place of a large one if Git LFS is not installed.
bool is_lfs_pointer(std::span<const std::byte> file) {
  constexpr std::string_view kPointer = "version https://git-lfs";
  return std::string_view(reinterpret_cast<const char*>(file.data()), file.size())
      .starts_with(kPointer);
}

}  // namespace

size_t safetensors_head_bytes(std::span<const std::byte> file) {
  if (file.size() < kLengthBytes) return file.size();
  const uint64_t header_bytes = read_little_endian(file.first<kLengthBytes>());
  return kLengthBytes + std::min<uint64_t>(header_bytes, file.size() - kLengthBytes);
}

Result<SafetensorsHeader> read_safetensors_header(std::span<const std::byte> file) {
  if (file.size() < kLengthBytes) {
    return corrupt_safetensors("the file has " + std::to_string(file.size()) +
                               " bytes, too few for a safetensors header");
  }
  if (is_lfs_pointer(file)) {
    return corrupt_safetensors(
        "it is a Git LFS pointer, not the weights themselves: `git lfs pull` fetches them");
  }
  const uint64_t header_bytes = read_little_endian(file.first<kLengthBytes>());
  if (header_bytes > kSafetensorsHeaderBytesMax) {
    return corrupt_safetensors("the header claims " + std::to_string(header_bytes) +
                               " bytes, more than " + std::to_string(kSafetensorsHeaderBytesMax));
  }
  if (header_bytes > file.size() - kLengthBytes) {
    return corrupt_safetensors("the header claims " + std::to_string(header_bytes) +
                               " bytes but the file has " +
                               std::to_string(file.size() - kLengthBytes));
  }
  const auto header = file.subspan(kLengthBytes, header_bytes);
  const auto data = file.subspan(kLengthBytes + header_bytes);
  auto entries = TRY(read_entries({reinterpret_cast<const char*>(header.data()), header.size()}));
  TRY(check_layout(entries.tensors, data.size()));

  SafetensorsHeader result;
  result.format = std::move(entries.format);
  for (Entry& entry : entries.tensors) {
    if (const auto dtype = known_dtype(entry.dtype)) {
      result.tensors.push_back({std::move(entry.name), *dtype, std::move(entry.shape),
                                data.subspan(entry.begin, entry.end - entry.begin),
                                /*is_here=*/true});
    } else {
      result.unsupported.push_back({std::move(entry.name), std::move(entry.dtype)});
    }
  }
  return result;
}

Result<std::vector<TensorView>> parse_safetensors(std::span<const std::byte> file) {
  return TRY(read_safetensors_header(file)).tensors;
}

}  // namespace lockstep
