// SPDX-License-Identifier: MIT OR Apache-2.0
#define CA   (1.3870398453221474618216191915664f)
#define CB   (1.3065629648763765278566431734272f)
#define CC   (1.1758756024193587169744671046113f)
#define CD   (0.78569495838710218127789736765722f)
#define CE   (0.54119610014619698439972320536639f)
#define CF   (0.27589937928294301233595756366937f)
#define NORM (0.35355339059327376220042218105242f)
#define W    (33u)
kernel __attribute__((reqd_work_group_size(32, 2, 1))) void dct8x8(
    global const float *src, global float *dst, uint stride) {
  local float s[16 * W];
  const uint x = (uint)get_local_id(0);
  const uint y = 8 * (uint)get_local_id(1);
  const uint at =
      ((uint)get_group_id(1) * 16 + y) * stride + (uint)get_global_id(0);
  const uint mx = x % 8;
  const uint v = y * W + x;
  const uint h = (y + mx) * W + x - mx;
  for (uint i = 0u; i < 8; i++) s[v + i * W] = src[at + i * stride];
  barrier(CLK_LOCAL_MEM_FENCE);
  float d0 = s[h + 0];
  float d1 = s[h + 1];
  float d2 = s[h + 2];
  float d3 = s[h + 3];
  float d4 = s[h + 4];
  float d5 = s[h + 5];
  float d6 = s[h + 6];
  float d7 = s[h + 7];
  const float p07a = d0 + d7;
  const float p16a = d1 + d6;
  const float p25a = d2 + d5;
  const float p34a = d3 + d4;
  const float m07a = d0 - d7;
  const float m61a = d6 - d1;
  const float m25a = d2 - d5;
  const float m43a = d4 - d3;
  d0 = NORM * (p07a + p34a + (p16a + p25a));
  d2 = NORM * (CB * (p07a - p34a) + CE * (p16a - p25a));
  d4 = NORM * (p07a + p34a - (p16a + p25a));
  d6 = NORM * (CE * (p07a - p34a) - CB * (p16a - p25a));
  d1 = NORM * (CA * m07a - CC * m61a + CD * m25a - CF * m43a);
  d3 = NORM * (CC * m07a + CF * m61a - CA * m25a + CD * m43a);
  d5 = NORM * (CD * m07a + CA * m61a + CF * m25a - CC * m43a);
  d7 = NORM * (CF * m07a + CD * m61a + CC * m25a + CA * m43a);
  s[h + 0] = d0;
  s[h + 1] = d1;
  s[h + 2] = d2;
  s[h + 3] = d3;
  s[h + 4] = d4;
  s[h + 5] = d5;
  s[h + 6] = d6;
  s[h + 7] = d7;
  barrier(CLK_LOCAL_MEM_FENCE);
  d0 = s[v + 0 * W];
  d1 = s[v + 1 * W];
  d2 = s[v + 2 * W];
  d3 = s[v + 3 * W];
  d4 = s[v + 4 * W];
  d5 = s[v + 5 * W];
  d6 = s[v + 6 * W];
  d7 = s[v + 7 * W];
  const float p07b = d0 + d7;
  const float p16b = d1 + d6;
  const float p25b = d2 + d5;
  const float p34b = d3 + d4;
  const float m07b = d0 - d7;
  const float m61b = d6 - d1;
  const float m25b = d2 - d5;
  const float m43b = d4 - d3;
  d0 = NORM * (p07b + p34b + (p16b + p25b));
  d2 = NORM * (CB * (p07b - p34b) + CE * (p16b - p25b));
  d4 = NORM * (p07b + p34b - (p16b + p25b));
  d6 = NORM * (CE * (p07b - p34b) - CB * (p16b - p25b));
  d1 = NORM * (CA * m07b - CC * m61b + CD * m25b - CF * m43b);
  d3 = NORM * (CC * m07b + CF * m61b - CA * m25b + CD * m43b);
  d5 = NORM * (CD * m07b + CA * m61b + CF * m25b - CC * m43b);
  d7 = NORM * (CF * m07b + CD * m61b + CC * m25b + CA * m43b);
  dst[at + 0 * stride] = d0;
  dst[at + 1 * stride] = d1;
  dst[at + 2 * stride] = d2;
  dst[at + 3 * stride] = d3;
  dst[at + 4 * stride] = d4;
  dst[at + 5 * stride] = d5;
  dst[at + 6 * stride] = d6;
  dst[at + 7 * stride] = d7;
}
