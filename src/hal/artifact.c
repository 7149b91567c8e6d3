/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Writes and reads artifacts. */
#include "hal/artifact.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"

/* The numbers of the plan, stored as one block. */
enum { NUMBERS_SIZE = offsetof(vyre__host_plan, buffers) };

typedef struct head {
  char magic[8];
  uint32_t version, own_size;
  uint64_t code_size;
  unsigned char numbers[NUMBERS_SIZE];
  uint32_t counts[VYRE__ARTIFACT_ARRAYS];
} head;

static_assert(NUMBERS_SIZE == 12 * sizeof(uint32_t),
              "the numbers have no padding");
static_assert(sizeof(head) == 24 + NUMBERS_SIZE + 16,
              "the head has no padding");

vyre_code vyre__artifact_bad(vyre_status *st, const char *defect,
                             uint64_t value) {
  return VYRE_FAIL_WITH(st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NONE, NULL,
                        VYRE_NUMBERS({"number", value}),
                        "run `vyre cache prune --all` and compile again; "
                        "split the kernel if it fails again",
                        "the compiled kernel is corrupt: %s (%llu)", defect,
                        (unsigned long long)value);
}

/* --- writing -------------------------------------------------------------- */

void vyre__artifact_write(const vyre__artifact *a, vyre__bytes *to) {
  const vyre__host_plan *p = a->plan;
  head h = {.version = a->version,
            .own_size = a->own_size,
            .code_size = a->code_size};
  memcpy(h.magic, a->magic, sizeof h.magic);
  memcpy(h.numbers, p, sizeof h.numbers);
  for (uint32_t i = 0; i < a->array_count; i++) {
    h.counts[i] = *a->arrays[i].count;
  }
  vyre__bytes_put(to, &h, sizeof h);
  vyre__bytes_put(to, a->own, a->own_size);
  vyre__bytes_put(to, p->buffers, p->buffer_count * sizeof *p->buffers);
  vyre__bytes_put(to, p->steps, p->step_count * sizeof *p->steps);
  vyre__bytes_put(to, p->host, p->host_count * sizeof *p->host);
  for (uint32_t i = 0; i < a->array_count; i++) {
    const void *elements;
    memcpy(&elements, a->arrays[i].pointer, sizeof elements);
    vyre__bytes_put(to, elements, (size_t)h.counts[i] * a->arrays[i].element);
  }
  vyre__bytes_put(to, a->code, a->code_size);
}

/* --- reading -------------------------------------------------------------- */

typedef struct reader {
  const unsigned char *at;
  size_t left;
  vyre_arena *arena;
  vyre_status *st;
} reader;

/* Copies the next @p count elements to the arena. @p to is the address of a
 * pointer. */
static vyre_code read_array(reader *in, size_t count, size_t element,
                            void *to) {
  size_t size = count * element; /* count < 2^32, element is small */
  if (size > in->left) {
    return vyre__artifact_bad(in->st, "size: bytes left", in->left);
  }
  void *copy = vyre__arena_array(in->arena, count, element);
  if (!copy) return vyre__no_memory(in->st, "a compiled kernel", "bytes", size);
  if (size > 0) memcpy(copy, in->at, size);
  memcpy(to, &copy, sizeof copy);
  in->at += size;
  in->left -= size;
  return VYRE_OK;
}

static vyre_code check_head(const vyre__artifact *a, const head *h,
                            vyre_status *st) {
  if (memcmp(h->magic, a->magic, sizeof h->magic) != 0) {
    return vyre__artifact_bad(st, "magic number, first byte",
                              (unsigned char)h->magic[0]);
  }
  if (h->version != a->version) {
    return vyre__artifact_bad(st, "version", h->version);
  }
  if (h->own_size != a->own_size) {
    return vyre__artifact_bad(st, "size of backend data", h->own_size);
  }
  for (uint32_t i = 0; i < VYRE__ARTIFACT_ARRAYS; i++) {
    uint32_t max_count = i < a->array_count ? a->arrays[i].max_count : 0;
    if (h->counts[i] > max_count) {
      return vyre__artifact_bad(st, "count of array elements", h->counts[i]);
    }
  }
  return VYRE_OK;
}

static vyre_code check_numbers(const vyre__host_plan *p, vyre_status *st) {
  const uint32_t counts[] = {p->phase_count, p->buffer_count, p->step_count,
                             p->host_count, p->loop_count};
  for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
    if (counts[i] > VYRE__ARTIFACT_MAX) {
      return vyre__artifact_bad(st, "count in the plan", counts[i]);
    }
  }
  if (p->phase_count == 0) return vyre__artifact_bad(st, "number of phases", 0);
  if (p->has_fuel > 1) return vyre__artifact_bad(st, "fuel flag", p->has_fuel);
  return VYRE_OK;
}

vyre_code vyre__artifact_read(const void *bytes, size_t size, vyre__artifact *a,
                              vyre_arena *arena, vyre_status *st) {
  reader in = {bytes, size, arena, st};
  vyre__host_plan *p = a->plan;
  head h;
  if (size < sizeof h + a->own_size) {
    return vyre__artifact_bad(st, "size in bytes", size);
  }
  memcpy(&h, bytes, sizeof h);
  VYRE_TRY(check_head(a, &h, st));
  *p = (vyre__host_plan){0};
  memcpy(p, h.numbers, sizeof h.numbers);
  VYRE_TRY(check_numbers(p, st));
  if (a->own_size > 0) memcpy(a->own, in.at + sizeof h, a->own_size);
  in.at += sizeof h + a->own_size;
  in.left -= sizeof h + a->own_size;
  VYRE_TRY(read_array(&in, p->buffer_count, sizeof *p->buffers, &p->buffers));
  VYRE_TRY(read_array(&in, p->step_count, sizeof *p->steps, &p->steps));
  VYRE_TRY(read_array(&in, p->host_count, sizeof *p->host, &p->host));
  for (uint32_t i = 0; i < a->array_count; i++) {
    *a->arrays[i].count = h.counts[i];
    VYRE_TRY(read_array(&in, h.counts[i], a->arrays[i].element,
                        a->arrays[i].pointer));
  }
  if (in.left < h.code_size || (in.left > h.code_size && !a->has_extra)) {
    return vyre__artifact_bad(st, "size in bytes", size);
  }
  a->code = in.at;
  a->code_size = (size_t)h.code_size;
  a->extra = in.at + a->code_size;
  a->extra_size = in.left - a->code_size;
  return vyre__host_plan_check(p, arena, st);
}
