#include "planner/check.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace lockstep {
namespace {

constexpr size_t kConstants = 3;
using Vector = std::array<double, kConstants>;
using Matrix = std::array<Vector, kConstants>;

// The time of a token is a sum over these terms, times (1 / efficiency, kernel_us, exchange_us).
Vector terms_of(const PublishedPoint& point, double bandwidth) {
  return {point.bytes / bandwidth, point.kernels, point.exchanges};
}

double dot(const Vector& a, const Vector& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

double own_us(const PublishedPoint& point, double rate, double kernel_us, double exchange_us) {
  const double whole_us = point.own_latent_bytes / rate;
  const double cut_us = point.own_latent_exchanges * exchange_us;
  return point.own_bytes / rate + point.kernels * kernel_us + point.own_exchanges * exchange_us +
         std::min(whole_us, cut_us);
}

// Gaussian elimination with pivots; false if the matrix is (nearly) singular.
bool solve(Matrix matrix, Vector& x) {
  constexpr double kTiny = 1e-9;  // the matrix is scaled: its diagonal is near 1
  for (size_t column = 0; column < kConstants; ++column) {
    size_t pivot = column;
    for (size_t row = column + 1; row < kConstants; ++row) {
      if (std::abs(matrix[row][column]) > std::abs(matrix[pivot][column])) pivot = row;
    }
    if (std::abs(matrix[pivot][column]) < kTiny) return false;
    std::swap(matrix[pivot], matrix[column]);
    std::swap(x[pivot], x[column]);
    for (size_t row = 0; row < kConstants; ++row) {
      if (row == column) continue;
      const double times = matrix[row][column] / matrix[column][column];
      for (size_t k = column; k < kConstants; ++k) matrix[row][k] -= times * matrix[column][k];
      x[row] -= times * x[column];
    }
  }
  for (size_t i = 0; i < kConstants; ++i) x[i] /= matrix[i][i];
  return true;
}

struct Normal {
  Matrix matrix{};
  Vector right{};
  double squares = 0;
};

// For the logarithms' errors as functions of the constants' logarithms, which keeps them positive.
Normal normal_equations(const PublishedData& data, const Vector& constants) {
  Normal normal;
  for (const PublishedPoint& point : data.points) {
    const Vector terms = terms_of(point, data.bandwidth_bytes_per_us);
    const double time = dot(terms, constants);
    const double error = std::log(time * point.measured_tok_s / 1e6);
    Vector slopes{};
    for (size_t i = 0; i < kConstants; ++i) slopes[i] = terms[i] * constants[i] / time;
    for (size_t i = 0; i < kConstants; ++i) {
      for (size_t k = 0; k < kConstants; ++k) normal.matrix[i][k] += slopes[i] * slopes[k];
      normal.right[i] -= slopes[i] * error;
    }
    normal.squares += error * error;
  }
  return normal;
}

}  // namespace

CheckResult check_published(const PublishedData& data, const PublishedConstants& constants) {
  CheckResult result{.constants = constants};
  const double rate = data.bandwidth_bytes_per_us * constants.efficiency;
  double squares = 0;
  for (const PublishedPoint& point : data.points) {
    const double time = dot(terms_of(point, data.bandwidth_bytes_per_us),
                            {1 / constants.efficiency, constants.kernel_us, constants.exchange_us});
    CheckedPoint& checked = result.points.emplace_back();
    checked.point = point;
    checked.predicted_tok_s = 1e6 / time;
    checked.own_cut_tok_s = 1e6 / own_us(point, rate, constants.kernel_us, constants.exchange_us);
    checked.own_tok_s =
        1e6 / own_us(point, rate, constants.kernel_us * kOwnKernelPart, kOwnExchangeUs);
    squares += checked.error() * checked.error();
    result.worst = std::max(result.worst, std::abs(checked.error()));
  }
  result.rms = std::sqrt(squares / static_cast<double>(data.points.size()));
  return result;
}

// Gauss-Newton, damped as in Levenberg-Marquardt.
Result<PublishedConstants> fit_published(const PublishedData& data,
                                         const PublishedConstants& start) {
  constexpr int kRoundsMax = 200;
  const Error unclear{ErrorCode::kInvalidArgument,
                      "the points do not determine the three constants; several models are needed, "
                      "on one machine and on more"};
  Vector constants{1 / start.efficiency, start.kernel_us, start.exchange_us};
  Normal normal = normal_equations(data, constants);
  double damping = 1e-3;
  for (int round = 0; round < kRoundsMax; ++round) {
    Matrix damped = normal.matrix;
    for (size_t i = 0; i < kConstants; ++i) {
      if (!(normal.matrix[i][i] > 0)) return unclear;
      damped[i][i] *= 1 + damping;
    }
    Vector step = normal.right;
    if (!solve(damped, step)) return unclear;
    Vector next = constants;
    for (size_t i = 0; i < kConstants; ++i) next[i] *= std::exp(std::clamp(step[i], -1.0, 1.0));
    Normal tried = normal_equations(data, next);
    if (tried.squares > normal.squares) {
      damping *= 4;
      continue;
    }
    constants = next;
    normal = tried;
    damping /= 4;
  }
  for (const double constant : constants) {
    // A constant that runs to zero or infinity is not determined.
    if (!(constant > 1e-6 && constant < 1e6)) return unclear;
  }
  return PublishedConstants{
      .efficiency = 1 / constants[0], .kernel_us = constants[1], .exchange_us = constants[2]};
}

}  // namespace lockstep
