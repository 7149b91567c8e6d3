// SPDX-License-Identifier: MIT OR Apache-2.0
// European options, as in the CUDA samples
float cnd(float d) {
  const float k = 1.0f / (1.0f + 0.2316419f * fabs(d));
  const float poly =
      k * (0.31938153f +
           k * (-0.356563782f +
                k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
  const float value = 0.39894228040143267794f * exp(-0.5f * d * d) * poly;
  return (d > 0.0f ? 1.0f - value : value);
}

kernel __attribute__((reqd_work_group_size(128, 1, 1))) void blackscholes(
    global const float *price, global const float *strike,
    global const float *years, global float *call, global float *put,
    float riskfree, float volatility, uint count) {
  const uint opt = (uint)get_global_id(0);
  if (opt >= count) return;
  const float s = price[opt];
  const float x = strike[opt];
  const float t = years[opt];
  const float root = sqrt(t);
  const float d1 =
      (log(s / x) + (riskfree + 0.5f * volatility * volatility) * t) /
      (volatility * root);
  const float d2 = d1 - volatility * root;
  const float cnd1 = cnd(d1);
  const float cnd2 = cnd(d2);
  const float discount = exp(-riskfree * t);
  call[opt] = s * cnd1 - x * discount * cnd2;
  put[opt] = x * discount * (1.0f - cnd2) - s * (1.0f - cnd1);
}
