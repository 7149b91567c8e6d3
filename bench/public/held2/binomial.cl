// SPDX-License-Identifier: MIT OR Apache-2.0
// prices of European options on a binomial tree, as in the CUDA samples
#define T     (256u)
#define STEPS (255u)

kernel __attribute__((reqd_work_group_size(T, 1, 1))) void binomial(
    global const float *price, global const float *strike,
    global const float *years, global float *value, float rate,
    float volatility) {
  local float call[T + 1];
  const uint t = (uint)get_local_id(0);
  const uint option = (uint)get_group_id(0);
  const float dt = years[option] / (float)STEPS;
  const float vdt = volatility * sqrt(dt);
  const float grow = exp(rate * dt);
  const float up = exp(vdt);
  const float down = exp(-vdt);
  const float chance = (grow - down) / (up - down);
  const float pu = chance / grow;
  const float pd = (1.0f - chance) / grow;
  const float end = price[option] * exp(vdt * (2.0f * (float)t - (float)STEPS));
  call[t] = max(end - strike[option], 0.0f);
  for (uint i = STEPS; i > 0; i--) {
    barrier(CLK_LOCAL_MEM_FENCE);
    const float next = pu * call[t + 1] + pd * call[t];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (t < i) call[t] = next;
  }
  if (t == 0) value[option] = call[0];
}
