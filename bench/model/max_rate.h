#pragma once

#include <optional>
#include <vector>

#include "bench/model/postal.h"

namespace brant::bench::model {

/// What each of `pairs` messages took that went at the same time, all of as many bytes.
struct PairsPoint {
  int pairs = 1;
  double bytes = 0;
  double us = 0;
};

/// Rates in 1e9 bytes a second.
struct Rates {
  Figure first;                ///< R_Cb: of one pair alone.
  std::optional<Figure> more;  ///< R_Ci: what each further one adds; none if there was one pair.
  std::optional<Figure> node;  ///< R_N: what all together do not exceed; none if that was not reached.
};

/// Max-rate (Gropp et al. 2016): T = alpha + k n / min(R_N, R_Cb + (k - 1) R_Ci).
struct MaxRate {
  double alpha_us = 0;
  Rates rates;
  double residual = 0;  ///< Root mean square of the relative errors of the rates.

  /// `pairs` need not be whole: the K-model puts its kappa there. Throws Error invalid_argument below 1 message for
  /// more than one pair where only one was measured.
  [[nodiscard]] double us(double pairs, double bytes) const;
};

/// The K-model's kappa: of the `pairs` processes of a node, those whose messages leave it.
double kappa(double pairs, double messages_off_node, double messages);

/// The highest rate of one pair alone; 0 if there is no point of one, or none of sense.
double best_rate(const std::vector<PairsPoint>& points);

/// From times of one size and of 1, 2, ... pairs, and alpha of the path. Throws Error as fit_postal: no point, one of
/// no sense, no point of one pair; a residual above 15 %.
MaxRate fit_max_rate(const std::vector<PairsPoint>& points, double alpha_us);

}  // namespace brant::bench::model
