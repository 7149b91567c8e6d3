/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Breadth-first search in C: direction optimising, with bits for what was
 * seen, buffers of each thread for what is found, and one parallel region for
 * all levels. Narrow levels run on one thread, without a barrier. */
#include <stdbool.h>
#include <string.h>

#include "flow/twins.h"

enum { NARROW = 256, BLOCK = 64, WORD_BLOCK = 128, ALPHA = 15, BETA = 18 };

typedef struct search {
  const flow_graph *g;
  uint32_t *depth;
  uint64_t *seen, *front, *next;
  uint32_t *items, *found; /* of this level, and of the next one */
  uint32_t words;
  /* state of the level */
  uint32_t level, count;
  uint64_t scout, left;
  bool is_up, is_over;
  /* shared counters */
  uint64_t claim, found_count, found_edges;
} search;

/* Vertices that a thread has found. */
typedef struct buffer {
  uint32_t *items;
  uint32_t count;
  uint64_t edges;
} buffer;

static inline bool claim_vertex(search *s, uint32_t v) {
  uint64_t bit = 1ull << (v & 63);
  uint64_t *word = &s->seen[v >> 6];
  if (__atomic_load_n(word, __ATOMIC_RELAXED) & bit) return false;
  return !(__atomic_fetch_or(word, bit, __ATOMIC_RELAXED) & bit);
}

static inline void visit(search *s, uint32_t u, buffer *out) {
  const flow_graph *g = s->g;
  for (uint32_t e = g->offsets[u]; e < g->offsets[u + 1]; e++) {
    uint32_t v = g->targets[e];
    if (!claim_vertex(s, v)) continue;
    s->depth[v] = s->level + 1;
    out->items[out->count++] = v;
    out->edges += g->offsets[v + 1] - g->offsets[v];
  }
}

/* Looks for a neighbour in this level, for each vertex that was not seen. */
static uint64_t look_up(search *s, uint32_t word) {
  const flow_graph *g = s->g;
  uint64_t todo = ~s->seen[word], got = 0;
  if (word == s->words - 1 && (g->vertices & 63)) {
    todo &= (1ull << (g->vertices & 63)) - 1;
  }
  while (todo) {
    uint32_t bit = (uint32_t)__builtin_ctzll(todo), v = word * 64 + bit;
    todo &= todo - 1;
    for (uint32_t e = g->offsets[v]; e < g->offsets[v + 1]; e++) {
      uint32_t u = g->targets[e];
      if (s->front[u >> 6] >> (u & 63) & 1) {
        got |= 1ull << bit;
        s->depth[v] = s->level + 1;
        break;
      }
    }
  }
  s->next[word] = got;
  return got;
}

static void push_level(search *s, buffer *mine) {
  mine->count = 0;
  mine->edges = 0;
  for (;;) {
    uint64_t at = __atomic_fetch_add(&s->claim, BLOCK, __ATOMIC_RELAXED);
    if (at >= s->count) break;
    uint64_t end = at + BLOCK < s->count ? at + BLOCK : s->count;
    for (; at < end; at++) visit(s, s->items[at], mine);
  }
  uint64_t to =
      __atomic_fetch_add(&s->found_count, mine->count, __ATOMIC_RELAXED);
  __atomic_fetch_add(&s->found_edges, mine->edges, __ATOMIC_RELAXED);
  memcpy(s->found + to, mine->items, mine->count * sizeof *mine->items);
}

static void pull_level(search *s) {
  uint64_t found = 0;
  for (;;) {
    uint64_t at = __atomic_fetch_add(&s->claim, WORD_BLOCK, __ATOMIC_RELAXED);
    if (at >= s->words) break;
    uint64_t end = at + WORD_BLOCK < s->words ? at + WORD_BLOCK : s->words;
    for (; at < end; at++) {
      uint64_t got = look_up(s, (uint32_t)at);
      s->seen[at] |= got;
      found += (uint64_t)__builtin_popcountll(got);
    }
  }
  __atomic_fetch_add(&s->found_count, found, __ATOMIC_RELAXED);
}

static void swap(void *a, void *b) {
  void **x = a, **y = b, *t = *x;
  *x = *y;
  *y = t;
}

static void bits_to_list(search *s) {
  uint32_t count = 0;
  for (uint32_t w = 0; w < s->words; w++) {
    for (uint64_t d = s->front[w]; d; d &= d - 1) {
      s->items[count++] = w * 64 + (uint32_t)__builtin_ctzll(d);
    }
  }
  s->count = count;
}

/* Takes what was found, and runs narrow levels until a wide one is ready. */
static void next_level(search *s, buffer *mine, bool is_first) {
  uint32_t before = s->count;
  if (!is_first && s->is_up) {
    swap(&s->front, &s->next);
    s->level++;
    s->count = (uint32_t)s->found_count;
    if (s->count > 0 && s->count < before &&
        s->count <= s->g->vertices / BETA) {
      s->is_up = false;
      s->scout = 1;
      bits_to_list(s);
    }
  } else if (!is_first) {
    swap(&s->items, &s->found);
    s->level++;
    s->count = (uint32_t)s->found_count;
    s->scout = s->found_edges;
  }
  while (!s->is_up && s->count > 0 && s->count <= NARROW &&
         s->scout <= s->left / ALPHA) {
    s->left -= s->scout < s->left ? s->scout : s->left;
    buffer out = {.items = s->found};
    for (uint32_t i = 0; i < s->count; i++) visit(s, s->items[i], &out);
    swap(&s->items, &s->found);
    s->level++;
    s->count = out.count;
    s->scout = out.edges;
  }
  (void)mine;
  s->is_over = s->count == 0;
  if (!s->is_up && !s->is_over) {
    if (s->scout > s->left / ALPHA) {
      s->is_up = true;
      memset(s->front, 0, s->words * sizeof *s->front);
      for (uint32_t i = 0; i < s->count; i++) {
        s->front[s->items[i] >> 6] |= 1ull << (s->items[i] & 63);
      }
    } else {
      s->left -= s->scout < s->left ? s->scout : s->left;
    }
  }
  s->claim = s->found_count = s->found_edges = 0;
}

void twin_bfs(const flow_graph *g, uint32_t source, uint32_t *depth) {
  search s = {.g = g, .depth = depth, .words = (g->vertices + 63) / 64};
  s.seen = twin_memory(0, s.words * 8ul);
  s.front = twin_memory(1, s.words * 8ul);
  s.next = twin_memory(2, s.words * 8ul);
  s.items = twin_memory(3, g->vertices * 4ul);
  s.found = twin_memory(4, g->vertices * 4ul);
  memset(s.seen, 0, s.words * 8ul);
  memset(depth, 0xff, g->vertices * 4ul);
  depth[source] = 0;
  s.seen[source >> 6] |= 1ull << (source & 63);
  s.items[0] = source;
  s.count = 1;
  s.left = g->edges;
  s.scout = g->offsets[source + 1] - g->offsets[source];
#pragma omp parallel
  {
    buffer mine = {
        .items = twin_memory(5 + omp_get_thread_num(), g->vertices * 4ul)};
    for (bool is_first = true;; is_first = false) {
#pragma omp single
      next_level(&s, &mine, is_first);
      if (s.is_over) break;
      if (s.is_up) {
        pull_level(&s);
      } else {
        push_level(&s, &mine);
      }
#pragma omp barrier
    }
  }
}
