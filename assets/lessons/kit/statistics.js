// Means of a few runs, and how far chance alone moves them.
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
// The sample's standard deviation, with n − 1; none for one value.
const deviation = (values) => {
  const middle = mean(values);
  return values.length > 1 ? Math.sqrt(values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (values.length - 1)) : null;
};

// Welch's degrees of freedom of a difference of two means of n runs each: the standard deviations may differ.
const welchFreedom = (a, b, n) => (n - 1) * (a ** 2 + b ** 2) ** 2 / (a ** 4 + b ** 4);

// How many standard errors chance alone exceeds in one case of 20: the quantile of Student's t. With t = √ν tan φ, its
// distribution is the integral of cos(φ)^(ν − 1).
function studentLimit(freedom) {
  const steps = 4000;
  const heights = Array.from({ length: steps }, (_empty, at) => Math.cos((at + 0.5) / steps * Math.PI / 2) ** (freedom - 1));
  let left = 0.95 * heights.reduce((sum, height) => sum + height, 0);
  let at = 0;
  while (left > heights[at]) { left -= heights[at]; at += 1; }
  return Math.sqrt(freedom) * Math.tan((at + left / heights[at]) / steps * Math.PI / 2);
}

// The mean of a few values, and how far from it chance leaves the mean of many in 19 of 20 cases.
function meanInterval(values) {
  return { mean: mean(values), reach: studentLimit(values.length - 1) * deviation(values) / Math.sqrt(values.length) };
}

// The difference of the means of two lists of equal length with its interval by Welch's t test, and whether it is more than chance.
function meanDifference(one, other) {
  const [first, second] = [deviation(one), deviation(other)];
  const difference = mean(one) - mean(other);
  const reach = first + second > 0 ? studentLimit(welchFreedom(first, second, one.length)) * Math.sqrt((first ** 2 + second ** 2) / one.length) : 0;
  return { difference, reach, isReal: Math.abs(difference) > reach };
}
