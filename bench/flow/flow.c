/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _DEFAULT_SOURCE /* getloadavg; NOLINT(bugprone-reserved-identifier) */
#include "flow/flow.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "cpu/machine.h"

flow_peers flow_peers_open(const char *suite) {
  static const char *const files[] = {"flow_gcc", "flow_clang"};
  static const char *const names[] = {"gcc", "clang"};
  flow_peers out = {.count = 0};
  (void)setenv("KMP_BLOCKTIME", "4", 0);
  for (int i = 0; i < FLOW_MAX_PEERS; i++) {
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/%s.so", VYRE_BENCH_PEERS, files[i]);
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const flow_peer *peer = object ? dlsym(object, FLOW_PEER_SYMBOL) : NULL;
    if (!peer) {
      cpu_missing(suite, names[i], cpu_peer_missing);
      continue;
    }
    out.names[out.count] = names[i];
    out.peers[out.count++] = peer;
  }
  return out;
}

int flow_scale(void) {
  const char *text = getenv("VYRE_BENCH_SCALE");
  int scale = text ? atoi(text) : 20;
  return scale < 8 ? 8 : scale > 26 ? 26 : scale;
}

double flow_load(void) {
  double load[1];
  return getloadavg(load, 1) == 1 ? load[0] : 0;
}

/* Returns the entry with the lowest median. */
static const cpu_entry *fastest(const cpu_entry *entries, int count,
                                int rounds) {
  const cpu_entry *best = entries;
  for (int i = 1; i < count; i++) {
    if (cpu_quartiles_of(entries[i].ns, rounds).median <
        cpu_quartiles_of(best->ns, rounds).median) {
      best = &entries[i];
    }
  }
  return best;
}

void flow_row(const char *suite, const char *name, const cpu_entry *mine,
              const cpu_entry *others, int count, int rounds, double bar) {
  const cpu_entry *peer = fastest(others, count, rounds);
  const cpu_quartiles a = cpu_quartiles_of(mine->ns, rounds);
  const cpu_quartiles b = cpu_quartiles_of(peer->ns, rounds);
  const cpu_quartiles ratio = cpu_paired(mine, peer, rounds);
  char note[64];
  (void)snprintf(note, sizeof note, "bar %.2f, load %.1f", bar, flow_load());
  printf("%-28s %9.3f %9.3f ms  %6.2f [%4.2f %4.2f]  %s  %s%s\n", name,
         a.median / 1e6, b.median / 1e6, ratio.median, ratio.low, ratio.high,
         peer->name, note, ratio.median >= bar ? "" : " <");
  (void)fflush(stdout);
  bench_row_add(&(bench_result){.suite = suite,
                                .name = name,
                                .unit = "ms",
                                .value = a.median / 1e6,
                                .best = a.minimum / 1e6,
                                .peer = peer->name,
                                .peer_value = b.median / 1e6,
                                .peer_best = b.minimum / 1e6,
                                .ratio = ratio.median,
                                .ratio_low = ratio.low,
                                .ratio_high = ratio.high,
                                .note = note});
}
