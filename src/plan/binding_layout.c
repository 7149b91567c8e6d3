/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Fingerprint of a binding plan: two plans with equal fingerprints can share
 * a descriptor layout. */

#include "vyre/binding.h"

#include "base/enum_name.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/sort.h"
#include "base/status.h"

static bool same_slot(vyre_binding_entry a, vyre_binding_entry b) {
  return a.binding == b.binding && a.role == b.role &&
         a.element_size == b.element_size;
}

static vyre_binding_entry slot_of(const vyre_binding *binding) {
  return (vyre_binding_entry){binding->binding, binding->role,
                              binding->element_size};
}

/* Returns the order of @p count bindings by their number, in @p arena; those of
 * one number keep the order of the plan. Returns NULL if memory is exhausted. A
 * plan that vyre made is in this order already. */
static vyre__sort_item *order_of(const vyre_binding_plan *plan,
                                 vyre_arena *arena) {
  size_t count = plan->binding_count;
  vyre__sort_item *order = vyre__arena_array(arena, count, sizeof *order);
  if (!order) return NULL;
  for (size_t i = 0; i < count; i++)
    order[i] = (vyre__sort_item){plan->bindings[i].binding, i};
  vyre__sort(order, count);
  return order;
}

vyre_code vyre_binding_fingerprint_build(const vyre_binding_plan *plan,
                                         vyre_arena *arena,
                                         vyre_binding_fingerprint *out,
                                         vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE_BOTH(st, plan, arena);
  size_t count = plan->binding_count;
  vyre__arena_mark start = vyre__arena_here(arena);
  vyre_binding_entry *slots = vyre__arena_array(arena, count, sizeof *slots);
  vyre__arena_mark results_end = vyre__arena_here(arena);
  vyre__sort_item *order = order_of(plan, arena);
  if (!slots || !order) {
    vyre__arena_rewind(arena, start);
    return vyre__no_memory(st, __func__, "binding slots", count);
  }
  vyre__hasher hasher;
  vyre__hash_begin(&hasher, "vyre.binding_set.1");
  vyre__hash_u64(&hasher, count);
  for (size_t i = 0; i < count; i++) {
    slots[i] = slot_of(&plan->bindings[order[i].tie]);
    vyre__hash_u32(&hasher, slots[i].binding);
    vyre__hash_u8(&hasher, (uint8_t)slots[i].role);
    vyre__hash_u32(&hasher, slots[i].element_size);
  }
  vyre__arena_rewind(arena, results_end);
  *out = (vyre_binding_fingerprint){slots, count, vyre__hash_end(&hasher)};
  return VYRE_OK;
}

bool vyre_binding_fingerprint_equal(const vyre_binding_fingerprint *a,
                                    const vyre_binding_fingerprint *b) {
  if (!a || !b || a->entry_count != b->entry_count) return false;
  for (size_t i = 0; i < a->entry_count; i++) {
    if (!same_slot(a->entries[i], b->entries[i])) return false;
  }
  return true;
}

/* Returns the binding of @p plan with the number of binding @p at of @p like,
 * and as many bindings of that number before it; or NULL. */
static const vyre_binding *counterpart(const vyre_binding_plan *plan,
                                       const vyre_binding_plan *like,
                                       size_t at) {
  uint32_t number = like->bindings[at].binding;
  size_t earlier = 0;
  for (size_t i = 0; i < at; i++)
    earlier += like->bindings[i].binding == number;
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    if (b->binding == number && earlier-- == 0) return b;
  }
  return NULL;
}

bool vyre_binding_plans_share_layout(const vyre_binding_plan *a,
                                     const vyre_binding_plan *b) {
  if (!a || !b || a->binding_count != b->binding_count) return false;
  bool is_in_order = true; /* plans made by hand may be in any order */
  for (size_t i = 0; i < a->binding_count; i++) {
    const vyre_binding *mine = &a->bindings[i], *other = &b->bindings[i];
    is_in_order = is_in_order && mine->binding == other->binding;
    if (!is_in_order) other = counterpart(b, a, i);
    if (!other || !same_slot(slot_of(mine), slot_of(other))) return false;
  }
  return true;
}

static vyre_hash128 layout_hash(const vyre_layout_entry *slots, size_t count) {
  vyre__hasher hasher;
  vyre__hash_begin(&hasher, "vyre.layout.1");
  vyre__hash_u64(&hasher, count);
  for (size_t i = 0; i < count; i++) {
    vyre__hash_u32(&hasher, slots[i].group);
    vyre__hash_u32(&hasher, slots[i].binding);
    vyre__hash_u8(&hasher, (uint8_t)slots[i].memory_class);
    vyre__hash_u8(&hasher, slots[i].read_only);
    vyre__hash_u32(&hasher, slots[i].element_size);
  }
  return vyre__hash_end(&hasher);
}

vyre_code vyre_layout_fingerprint_build(const vyre_layout_entry *entries,
                                        size_t entry_count, vyre_arena *arena,
                                        vyre_layout_fingerprint *out,
                                        vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE_ARRAY(st, entries, entry_count);
  VYRE_REQUIRE(st, arena);
  vyre__arena_mark start = vyre__arena_here(arena);
  vyre_layout_entry *sorted =
      vyre__arena_array(arena, entry_count, sizeof *sorted);
  vyre__arena_mark results_end = vyre__arena_here(arena);
  vyre__sort_item *order = vyre__arena_array(arena, entry_count, sizeof *order);
  if (!sorted || !order) {
    vyre__arena_rewind(arena, start);
    return vyre__no_memory(st, __func__, "layout entries", entry_count);
  }
  for (size_t i = 0; i < entry_count; i++) {
    order[i].key = (uint64_t)entries[i].group << 32 | entries[i].binding;
    order[i].tie = i;
  }
  vyre__sort(order, entry_count);
  for (size_t i = 0; i < entry_count; i++) sorted[i] = entries[order[i].tie];
  vyre__arena_rewind(arena, results_end);
  *out = (vyre_layout_fingerprint){sorted, entry_count,
                                   layout_hash(sorted, entry_count)};
  return VYRE_OK;
}

vyre_code vyre_layout_fingerprint_from_plan(const vyre_binding_plan *plan,
                                            vyre_arena *arena,
                                            vyre_layout_fingerprint *out,
                                            vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE_BOTH(st, plan, arena);
  size_t count = plan->binding_count, used = 0;
  vyre_layout_entry *slots = vyre__arena_array(arena, count, sizeof *slots);
  if (!slots) return vyre__no_memory(st, __func__, "layout slots", count);
  bool is_sorted = true;
  for (size_t i = 0; i < count; i++) {
    const vyre_binding *binding = &plan->bindings[i];
    if (binding->role == VYRE_ROLE_SHARED) continue; /* not bound */
    is_sorted =
        is_sorted && (used == 0 || slots[used - 1].binding <= binding->binding);
    slots[used++] =
        (vyre_layout_entry){.group = 0,
                            .binding = binding->binding,
                            .memory_class = binding->role == VYRE_ROLE_UNIFORM
                                                ? VYRE_LAYOUT_UNIFORM
                                                : VYRE_LAYOUT_STORAGE,
                            .read_only = binding->read_only,
                            .element_size = binding->element_size};
  }
  vyre__arena_trim(arena, slots, count, used, sizeof *slots);
  if (!is_sorted)
    return vyre_layout_fingerprint_build(slots, used, arena, out,
                                         vyre__status_open(st));
  *out = (vyre_layout_fingerprint){slots, used, layout_hash(slots, used)};
  return VYRE_OK;
}

bool vyre_layout_fingerprint_equal(const vyre_layout_fingerprint *a,
                                   const vyre_layout_fingerprint *b) {
  if (!a || !b || a->entry_count != b->entry_count) return false;
  for (size_t i = 0; i < a->entry_count; i++) {
    const vyre_layout_entry *x = &a->entries[i], *y = &b->entries[i];
    if (x->group != y->group || x->binding != y->binding ||
        x->memory_class != y->memory_class || x->read_only != y->read_only ||
        x->element_size != y->element_size) {
      return false;
    }
  }
  return true;
}

VYRE__ENUM_NAME(vyre_layout_class_name, vyre_layout_class,
                VYRE_LAYOUT_CLASS_MAP)
