// links: weights
// All that SafetensorsSource returns lies inside the file, as large as its format says. The input
// is text, so that the fuzzer gets past the sizes of safetensors: a line of config.json, then lines
//   t NAME DTYPE FILL SIZES...         a tensor whose bytes are all FILL
//   m NAME ROWS COLUMNS STACK_INDEX    a request for the matrix NAME + ".weight"
//   v NAME SIZE STACK_INDEX            a request for a vector
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "json/json.h"
#include "weights/source/safetensors_source.h"

using namespace lockstep;

namespace {

constexpr size_t kDataBytesMax = 1 << 20;
constexpr size_t kLinesMax = 64;
constexpr int kSizeMax = 1 << 20;

struct File {
  std::string header;
  std::string data;
};

size_t bytes_of(std::string_view dtype) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3, DType::kF8E8M0,
                           DType::kU8, DType::kI8, DType::kU32, DType::kI32, DType::kI64}) {
    if (dtype_name(type) == dtype) return dtype_bytes(type);
  }
  return 1;
}

void add_tensor(std::istringstream& line, File& file) {
  std::string name, dtype, shape;
  int fill = 0;
  line >> name >> dtype >> fill;
  size_t bytes = bytes_of(dtype);
  for (size_t size; line >> size;) {
    if (size > kDataBytesMax) return;
    shape += (shape.empty() ? "" : ",") + std::to_string(size);
    bytes *= size;
    if (bytes > kDataBytesMax) return;
  }
  if (file.data.size() + bytes > kDataBytesMax) return;
  if (!file.header.empty()) file.header += ",";
  append_json_string(file.header, name);
  file.header += ":{\"dtype\":";
  append_json_string(file.header, dtype);
  file.header +=
      ",\"shape\":[" + shape + "],\"data_offsets\":[" + std::to_string(file.data.size()) + ",";
  file.data.append(bytes, static_cast<char>(fill));
  file.header += std::to_string(file.data.size()) + "]}";
}

std::string assemble(const File& file) {
  const std::string header = "{" + file.header + "}";
  std::string whole;
  for (int i = 0; i < 8; ++i) whole += static_cast<char>(header.size() >> 8 * i);
  return whole += header + file.data;
}

size_t rounded_up(size_t size, size_t step) {
  return (size + step - 1) / step;
}

// This holds for every part except a scale that a source makes up.
bool is_inside(std::span<const std::byte> part, std::span<const std::byte> file) {
  return part.empty() ||
         (part.data() >= file.data() && part.data() + part.size() <= file.data() + file.size());
}

void check_groups(const StoredMatrix& matrix, size_t columns, size_t groups) {
  if (matrix.groups.empty()) return;
  LOCKSTEP_CHECK(matrix.groups.size() == 4 * columns);
  for (size_t column = 0; column < columns; ++column) {
    int32_t group;
    std::memcpy(&group, matrix.groups.data() + 4 * column, 4);
    LOCKSTEP_CHECK(group >= 0 && static_cast<size_t>(group) < groups);
  }
}

void check_codes(const StoredMatrix& matrix, size_t rows, size_t columns, size_t groups) {
  const auto bits = static_cast<size_t>(matrix.bits);
  if (matrix.format == StoredFormat::kGptq || matrix.format == StoredFormat::kAwq) {
    LOCKSTEP_CHECK(matrix.codes.size() == rows * columns * bits / 8);
    LOCKSTEP_CHECK(matrix.zeros.size() == groups * rows * bits / 8);
    check_groups(matrix, columns, groups);
    return;
  }
  LOCKSTEP_CHECK(matrix.row_bytes * 8 >= columns * bits);
  const size_t stored_rows = matrix.codes.size() / matrix.row_bytes;
  LOCKSTEP_CHECK(matrix.codes.size() == stored_rows * matrix.row_bytes);
  LOCKSTEP_CHECK(matrix.row_map.empty() ? stored_rows == rows : matrix.row_map.size() == rows);
  for (const int32_t row : matrix.row_map) {
    LOCKSTEP_CHECK(row >= 0 && static_cast<size_t>(row) < stored_rows);
  }
  if (matrix.format == StoredFormat::kPackedInt && !matrix.zeros.empty()) {
    LOCKSTEP_CHECK(matrix.zeros.size() == 4 * rounded_up(rows, 32 / bits) * groups);
  }
}

void check_matrix(const StoredMatrix& matrix, const MatrixRequest& request,
                  std::span<const std::byte> file) {
  LOCKSTEP_CHECK(matrix.rows == request.rows && matrix.columns == request.columns);
  LOCKSTEP_CHECK(is_inside(matrix.codes, file) && is_inside(matrix.biases, file));
  LOCKSTEP_CHECK(is_inside(matrix.zeros, file) && is_inside(matrix.groups, file));
  const auto rows = static_cast<size_t>(matrix.rows), columns = static_cast<size_t>(matrix.columns);
  const size_t group = matrix.group == 0 ? columns : static_cast<size_t>(matrix.group);
  const size_t groups = rounded_up(columns, group);
  check_codes(matrix, rows, columns, groups);
  if (matrix.format == StoredFormat::kPlain) {
    LOCKSTEP_CHECK(matrix.row_bytes == columns * dtype_bytes(matrix.scale_type));
    return;
  }
  const size_t stored_rows = matrix.row_map.empty() ? rows : matrix.codes.size() / matrix.row_bytes;
  const size_t scale_rows =
      matrix.row_group == 0 ? 1 : rounded_up(stored_rows, static_cast<size_t>(matrix.row_group));
  LOCKSTEP_CHECK(matrix.scales.size() == scale_rows * groups * dtype_bytes(matrix.scale_type));
  LOCKSTEP_CHECK(is_inside(matrix.scales, file) || matrix.format == StoredFormat::kFp8);
  if (matrix.format == StoredFormat::kAffine) {
    LOCKSTEP_CHECK(matrix.biases.size() == matrix.scales.size());
  }
}

void ask_matrix(const WeightSource& source, std::istringstream& line,
                std::span<const std::byte> file) {
  std::string name;
  MatrixRequest request;
  line >> name >> request.rows >> request.columns >> request.stack_index;
  if (request.rows <= 0 || request.columns <= 0 || request.stack_index < -1) return;
  if (request.rows > kSizeMax || request.columns > kSizeMax) return;
  name += ".weight";
  request.name = name;
  const auto matrix = source.matrix(request);
  const bool is_there = source.has(name, request.stack_index);
  if (matrix.ok()) {
    check_matrix(matrix.value(), request, file);
    LOCKSTEP_CHECK(is_there);
  } else {
    LOCKSTEP_CHECK(is_there == (matrix.error().code != ErrorCode::kNotFound));
  }
}

void ask_vector(const WeightSource& source, std::istringstream& line) {
  std::string name;
  int size = 0, stack_index = -1;
  line >> name >> size >> stack_index;
  if (size <= 0 || stack_index < -1) return;
  const auto vector = source.vector(name, stack_index, size);
  if (!vector.ok()) return;
  const StoredVector& stored = vector.value();
  const bool is_integer = stored.dtype == DType::kI32 || stored.dtype == DType::kI64;
  LOCKSTEP_CHECK(is_float(stored.dtype) || (is_integer && name.ends_with(".tid2eid")));
  LOCKSTEP_CHECK(source.has(name, stack_index));
  LOCKSTEP_CHECK(stored.bytes.size() == static_cast<size_t>(size) * dtype_bytes(stored.dtype));
  // Split biases are outside the file: let a sanitiser check both ends.
  volatile std::byte ends[] = {stored.bytes.front(), stored.bytes.back()};
  (void)ends[0];
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::istringstream input(std::string(reinterpret_cast<const char*>(data), size));
  std::string config_line;
  std::getline(input, config_line);
  File file;
  std::vector<std::istringstream> questions;
  std::string text;
  for (size_t lines = 0; lines < kLinesMax && std::getline(input, text); ++lines) {
    std::istringstream line(text);
    std::string kind;
    line >> kind;
    if (kind == "t") add_tensor(line, file);
    if (kind == "m" || kind == "v") questions.push_back(std::istringstream(text));
  }
  const std::string whole = assemble(file);
  const auto bytes = std::as_bytes(std::span(whole));
  const auto checkpoint = Checkpoint::view(bytes);
  const auto config = parse_json(config_line);
  if (!checkpoint.ok() || !config.ok()) return 0;
  const auto source = SafetensorsSource::over(checkpoint.value(), config.value());
  if (!source.ok()) return 0;
  for (std::istringstream& question : questions) {
    std::string kind;
    question >> kind;
    if (kind == "m") ask_matrix(*source.value(), question, bytes);
    if (kind == "v") ask_vector(*source.value(), question);
  }
  return 0;
}
