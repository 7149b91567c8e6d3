/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Prints the control flow of the workgroup and the loops over its
 * invocations. */
#include "codegen/c/internal.h"

static void open_loop(c_emitter *e, char axis, uint32_t size) {
  C_LINE(e, "for (uint32_t local_%c = 0; local_%c < %uu; local_%c++) {\n", axis,
         axis, (unsigned)size, axis);
  e->indent++;
}

static void close_blocks(c_emitter *e, unsigned indent) {
  while (e->indent > indent) {
    e->indent--;
    C_LINE(e, "}\n");
  }
}

/* Prints a hint before the loop over a row, for compilers that support it. */
static void hint_row(c_emitter *e, uint32_t subregion) {
  if (!c_is_chain(e, subregion)) return;
  e->uses_rows |= e->is_last;
  C_LINE(e, "VYRE_ROW\n");
}

static void strip_loop(c_emitter *e, uint32_t subregion) {
  uint32_t size = e->kernel->workgroup[0];
  hint_row(e, subregion);
  if (size <= VYRE__STRIP) {
    open_loop(e, 'x', size);
    return;
  }
  C_LINE(e,
         "for (uint32_t local_x = strip; local_x < strip_end; local_x++) {\n");
  e->indent++;
}

/* Prints the subregions one after the other, for one strip of invocations at a
 * time. */
static void print_strips(c_emitter *e, const vyre__region *region) {
  uint32_t size = e->kernel->workgroup[0];
  if (size > VYRE__STRIP) {
    C_LINE(e, "for (uint32_t strip = 0; strip < %uu; strip += %uu) {\n",
           (unsigned)size, (unsigned)VYRE__STRIP);
    e->indent++;
    C_LINE(e, "const uint32_t strip_end = ");
    if (size % VYRE__STRIP) {
      C_PRINT(e, "%uu - strip < %uu ? %uu : strip + %uu;\n", (unsigned)size,
              (unsigned)VYRE__STRIP, (unsigned)size, (unsigned)VYRE__STRIP);
    } else {
      C_PRINT(e, "strip + %uu;\n", (unsigned)VYRE__STRIP);
    }
  }
  if (e->r->done_storage == VYRE__STORAGE_ARRAY) {
    C_LINE(e, "memset(done, 0, %u);\n",
           (unsigned)(size < VYRE__STRIP ? size : VYRE__STRIP));
  }
  for (uint32_t i = 0; i < region->subregion_count; i++) {
    uint32_t subregion = region->first_subregion + i;
    if (e->r->subregions[subregion].is_empty) continue;
    const vyre__subregion *next = &e->r->subregions[subregion + 1];
    bool next_rare =
        i + 1 < region->subregion_count && next->is_rare && !next->is_empty;
    vyre__val asked = next_rare ? c_inst(e, next->begin)->a : 0;
    bool asks = next_rare && c_info(e, asked)->storage >= VYRE__STORAGE_ARRAY &&
                c_info(e, asked)->subregion == subregion;
    unsigned indent = e->indent;
    if (asks) {
      C_LINE(e, "uint32_t rare_%u = 0;\n", (unsigned)subregion + 1);
    }
    strip_loop(e, subregion);
    c_subregion(e, subregion);
    close_blocks(e, indent);
    if (asks) {
      C_LINE(e, "if (rare_%u) {\n", (unsigned)subregion + 1);
      e->indent++;
      strip_loop(e, subregion + 1);
      c_subregion(e, subregion + 1);
      close_blocks(e, indent);
      i++;
    }
  }
}

/* Prints all subregions of a region for one row of invocations in x. */
static void print_row(c_emitter *e, const vyre__region *region) {
  unsigned indent = e->indent;
  if (region->subregion_count > 1) {
    print_strips(e, region);
  } else {
    hint_row(e, region->first_subregion);
    open_loop(e, 'x', e->kernel->workgroup[0]);
    c_subregion(e, region->first_subregion);
  }
  close_blocks(e, indent);
}

static void print_parallel(c_emitter *e, const vyre__region *region) {
  const uint32_t *size = e->kernel->workgroup;
  unsigned indent = e->indent;
  c_hoisted(e, region);
  if (region->is_empty) return;
  if (e->is_host) {
    for (uint32_t i = 0; i < region->subregion_count; i++) {
      C_LINE(e, "{\n");
      e->indent++;
      c_subregion(e, region->first_subregion + i);
      close_blocks(e, indent);
    }
    return;
  }
  if (size[2] > 1) open_loop(e, 'z', size[2]);
  if (size[1] > 1 || size[2] > 1) open_loop(e, 'y', size[1]);
  if (c_full_condition(e, region)) {
    e->indent++;
    e->is_full = true;
    print_row(e, region);
    e->is_full = false;
    e->indent--;
    C_LINE(e, "} else {\n");
    e->indent++;
  }
  print_row(e, region);
  close_blocks(e, indent);
}

/* Returns true if the step of a loop is more than its label. */
static bool has_step(const vyre__region *loop) {
  return loop->other != 0 || loop->clears_done;
}

static void declare_early(c_emitter *e, const vyre__region *loop) {
  if (!loop->has_continue || !has_step(loop)) return;
  for (uint32_t at = loop->begin + 1; at < c_info(e, loop->begin)->mate; at++) {
    const c_note *note = c_note_of(e, at);
    if (c_info(e, at)->parent != loop->begin || !note->is_early) continue;
    if (c_info(e, at)->storage != VYRE__STORAGE_UNIFORM || !note->used_before)
      continue;
    vyre_type type = (vyre_type)c_inst(e, at)->type;
    C_LINE(e, "%s v%u = %s;\n", c_type(type), (unsigned)at, c_zero(type));
  }
}

static void print_loop(c_emitter *e, const vyre__region *loop) {
  c_source_line(e, loop->begin);
  C_LINE(e, "for (;;) {\n");
  e->indent++;
  if (loop->has_continue && has_step(loop)) {
    e->step_used[loop->begin - e->r->begin] = true;
  }
  declare_early(e, loop);
  c_regions(e, loop->inner);
  if (e->step_used[loop->begin - e->r->begin]) {
    C_PRINT(e, "step_%u:;\n", (unsigned)loop->begin);
  }
  if (loop->clears_done && e->r->done_storage == VYRE__STORAGE_GROUP) {
    C_LINE(e, "memset(done, 0, %u);\n", (unsigned)e->r->invocations);
  }
  c_regions(e, loop->other);
  e->indent--;
  C_LINE(e, "}\n");
}

static void print_if(c_emitter *e, const vyre__region *region) {
  c_source_line(e, region->begin);
  C_LINE(e, "if (");
  c_value(e, c_inst(e, region->begin)->a, C_TOP);
  C_PRINT(e, ") {\n");
  e->indent++;
  c_regions(e, region->inner);
  e->indent--;
  c_line(e);
  if (region->other) {
    C_PRINT(e, "} else {\n");
    e->indent++;
    c_regions(e, region->other);
    e->indent--;
    c_line(e);
  }
  C_PRINT(e, "}\n");
}

/* Prints a jump of the full workgroup. */
static void print_group_jump(c_emitter *e, const vyre__region *region) {
  uint32_t open = c_info(e, region->begin)->parent;
  while (open && c_inst(e, open)->op != VYRE__LIR_LOOP) {
    open = c_info(e, open)->parent;
  }
  c_source_line(e, region->begin);
  c_line(e);
  switch (c_inst(e, region->begin)->op) {
    case VYRE__LIR_BREAK:
      C_PRINT(e, "break;\n");
      break;
    case VYRE__LIR_CONTINUE:
      if (e->step_used[open - e->r->begin]) {
        C_PRINT(e, "goto step_%u;\n", (unsigned)open);
      } else {
        C_PRINT(e, "continue;\n");
      }
      break;
    default: /* EXIT */
      if (open) {
        e->used.next_group = true;
        C_PRINT(e, "goto next_group;\n");
      } else {
        C_PRINT(e, "continue;\n");
      }
  }
}

void c_regions(c_emitter *e, uint32_t first) {
  for (uint32_t i = first; i; i = e->r->regions[i].next) {
    const vyre__region *region = &e->r->regions[i];
    switch (region->kind) {
      case VYRE__REGION_PARALLEL:
        print_parallel(e, region);
        break;
      case VYRE__REGION_IF:
        print_if(e, region);
        break;
      case VYRE__REGION_LOOP:
        print_loop(e, region);
        break;
      case VYRE__REGION_BARRIER:
        C_LINE(e, "/* barrier */\n");
        break;
      default:
        print_group_jump(e, region);
    }
  }
}
