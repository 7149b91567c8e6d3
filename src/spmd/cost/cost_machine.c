/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Costs of operations by processor. Those of znver5 were fitted to the times of
 * the public benchmark kernels at all widths. Those of other processors are derived: published throughput, with the
 * same ratio between isolated and mixed code as on znver5. */
#include "spmd/cost/cost_machine.h"

#include <string.h>

/*             simple product wide count float convert quotient root
 *             divide by-const wide */
static const vyre__cost_machine machines[] = {
    {.name = "znver5",
     .scalar = {0.22f, 0.4f, 0.6f, 0.5f, 0.4f, 1.0f, 3.5f, 5, 4, 1.2f, 6},
     .vector = {0.4f, 0.5f, 0.8f, 0.6f, 0.45f, 0.7f, 3.5f, 6, 22, 2.5f, 0},
     .wide = 1.0f,
     .load = 0.5f,
     .store = 0.8f,
     .shuffle = 1.0f,
     .gather = 1.5f,
     .narrow_gather = 1.6f,
     .scatter = 3.2f,
     .masked_scatter = 4.0f,
     .lane = 0.9f,
     .atomic = 6,
     .own_atomic = 3,
     .simple_latency = 3,
     .float_latency = 4,
     .product_latency = 5,
     .load_latency = 6,
     .gather_latency = 26},
    {.name = "znver4",
     .scalar = {0.3f, 0.5f, 0.6f, 0.5f, 0.5f, 1.0f, 4, 5, 6, 1.2f, 7},
     .vector = {0.35f, 0.6f, 1.2f, 0.6f, 0.5f, 1.0f, 4, 6, 22, 2.5f, 0},
     .wide = 1.8f,
     .load = 0.5f,
     .store = 1.0f,
     .shuffle = 0.6f,
     .gather = 1.9f,
     .narrow_gather = 2.4f,
     .scatter = 2.4f,
     .masked_scatter = 3.5f,
     .lane = 1.0f,
     .atomic = 6,
     .own_atomic = 2,
     .simple_latency = 1,
     .float_latency = 4,
     .product_latency = 3.5f,
     .load_latency = 6,
     .gather_latency = 24},
    {.name = "sapphirerapids",
     .scalar = {0.25f, 1.0f, 1.0f, 1.0f, 0.5f, 1.0f, 4, 5, 6, 1.5f, 10},
     .vector = {0.4f, 1.0f, 1.6f, 0.8f, 0.5f, 1.0f, 5, 6, 22, 3.5f, 0},
     .wide = 1.4f,
     .load = 0.5f,
     .store = 1.0f,
     .shuffle = 1.0f,
     .gather = 0.8f,
     .narrow_gather = 2.0f,
     .scatter = 1.2f,
     .masked_scatter = 1.6f,
     .lane = 1.5f,
     .atomic = 18,
     .own_atomic = 2,
     .simple_latency = 1,
     .float_latency = 4,
     .product_latency = 10,
     .load_latency = 7,
     .gather_latency = 20},
    /* Registers of 256 bits. */
    {.name = "haswell",
     .scalar = {0.3f, 1.0f, 1.0f, 1.0f, 0.5f, 1.0f, 5, 6, 8, 1.5f, 20},
     .vector = {0.4f, 1.0f, 4.0f, 3.0f, 0.5f, 1.0f, 6, 9, 30, 3.5f, 0},
     .wide = 2.0f,
     .load = 0.5f,
     .store = 1.0f,
     .shuffle = 1.0f,
     .gather = 1.6f,
     .narrow_gather = 2.5f,
     .scatter = 2.0f,
     .masked_scatter = 4.0f,
     .lane = 1.5f,
     .atomic = 18,
     .own_atomic = 2,
     .simple_latency = 1,
     .float_latency = 4,
     .product_latency = 8,
     .load_latency = 7,
     .gather_latency = 24},
    /* Registers of 128 bits, without gathers. */
    {.name = "x86-64-v2",
     .scalar = {0.3f, 1.0f, 1.0f, 1.0f, 1.0f, 1.0f, 6, 8, 10, 1.5f, 25},
     .vector = {0.5f, 2.0f, 5.0f, 6.0f, 1.0f, 1.5f, 8, 10, 40, 5, 0},
     .wide = 4.0f,
     .load = 0.5f,
     .store = 1.0f,
     .shuffle = 1.0f,
     .gather = 2.5f,
     .narrow_gather = 2.5f,
     .scatter = 2.5f,
     .masked_scatter = 4.0f,
     .lane = 1.5f,
     .atomic = 18,
     .own_atomic = 2,
     .simple_latency = 1,
     .float_latency = 4,
     .product_latency = 6,
     .load_latency = 6,
     .gather_latency = 20},
};

enum { MACHINES = sizeof machines / sizeof *machines };

/* Processors that use the costs of a relative. */
static const char *const relatives[][2] = {
    {"znver3", "haswell"},
    {"znver2", "haswell"},
    {"znver1", "haswell"},
    {"emeraldrapids", "sapphirerapids"},
    {"graniterapids", "sapphirerapids"},
    {"icelake-server", "sapphirerapids"},
    {"icelake-client", "sapphirerapids"},
    {"tigerlake", "sapphirerapids"},
    {"cascadelake", "sapphirerapids"},
    {"skylake-avx512", "sapphirerapids"},
};

static const vyre__cost_machine *find(const char *name) {
  for (int i = 0; i < MACHINES; i++) {
    if (strcmp(machines[i].name, name) == 0) return &machines[i];
  }
  for (unsigned i = 0; i < sizeof relatives / sizeof *relatives; i++) {
    if (strcmp(relatives[i][0], name) == 0) return find(relatives[i][1]);
  }
  return 0;
}

const vyre__cost_machine *vyre__cost_machine_of(const char *name,
                                                uint32_t lanes) {
  const char *typical = lanes == 16  ? "sapphirerapids"
                        : lanes == 4 ? "x86-64-v2"
                                     : "haswell";
  const vyre__cost_machine *found = name ? find(name) : 0;
  return found ? found : find(typical);
}
