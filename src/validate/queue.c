/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rules V111 to V114: queue kernels. */
#include "analyze/queue/queue.h"

#include "analyze/inline/inline.h"
#include "analyze/walk.h"
#include "base/status.h"
#include "validate/validate.h"

static const vyre__node *node_at(const vyre__validation *v, vyre__id id) {
  return &v->program->nodes[id];
}

/* Reports a queue that could need any number of places. */
static void check_pushes(vyre__validation *v) {
  uint32_t pushes;
  vyre__id site;
  if (vyre__queue_has_keys(v->program->queue)) return;
  if (vyre__queue_pushes(v->program, &pushes, &site)) return;
  vyre__find(v, "V111", (vyre__validation_site){site, 0, NULL},
             "add pushes(P) to the header, with the largest number of pushes "
             "of one item; the run stops if an item exceeds it",
             "the number of pushes of an item of '%.100s' is not known: this "
             "push is in a loop without constant bounds",
             v->program->name);
}

/* Returns why queue kernels do not have an operation, or NULL. */
static const char *reason_against(const vyre__node *node) {
  switch ((vyre__op)node->op) {
    case VYRE__OP_GLOBAL_ID:
    case VYRE__OP_LOCAL_ID:
    case VYRE__OP_WORKGROUP_ID:
    case VYRE__OP_WORKGROUP_SIZE:
    case VYRE__OP_GRID_SIZE:
      return "an item has no place in a grid";
    case VYRE__OP_PRINT:
      return "items run in any order";
    default:
      return NULL;
  }
}

static void check_node(vyre__validation *v, vyre__id id) {
  const char *reason = reason_against(node_at(v, id));
  if (reason) {
    vyre__find(v, "V112", (vyre__validation_site){id, 0, NULL},
               "use item, item_index and window, or store to a buffer",
               "%s in queue kernel '%.100s': %s",
               vyre__ops[node_at(v, id)->op].text, v->program->name, reason);
    return;
  }
  vyre__id storage[3];
  const vyre__id *ids;
  const uint32_t count =
      vyre__children(v->program, node_at(v, id), storage, &ids);
  for (uint32_t i = 0; i < count; i++) check_node(v, ids[i]);
}

static void check_head(vyre__validation *v) {
  const vyre_program *p = v->program;
  const uint32_t *size = p->workgroup;
  const bool is_one = size[0] == 1 && size[1] == 1 && size[2] == 1;
  if (!is_one || p->over != VYRE_NO_INDEX) {
    vyre__find(v, "V112", (vyre__validation_site){0, 0, NULL},
               "remove workgroup(...) and over(...) from the header",
               "queue kernel '%.100s' has %s, but its items have no grid",
               p->name, is_one ? "over(...)" : "a workgroup size");
  }
}

static void check_shared_memory(vyre__validation *v) {
  for (size_t i = 0; i < v->program->buffer_count; i++) {
    if (!vyre__is_shared(&v->program->buffers[i]) ||
        vyre__is_private(v->program, (uint32_t)i)) {
      continue;
    }
    vyre__find(v, "V113", (vyre__validation_site){0, 0, NULL},
               "use a global buffer, or a local",
               "'%.100s' is shared memory, which queue kernels do not have",
               v->program->buffers[i].name);
    return;
  }
}

/* Reports effects in `by`, whose value must depend on nothing but the window
 * before it, and pushes in `pull` of other keys than the item. */
static void check_part(vyre__validation *v, vyre__id id, bool is_pull) {
  const vyre__node *node = node_at(v, id);
  const uint8_t changes = VYRE__OPF_WRITES | VYRE__OPF_ATOMICS;
  if (!is_pull && (vyre__ops[node->op].flags & changes) &&
      !vyre__is_private(v->program, node->a)) {
    vyre__find(v, "V114", (vyre__validation_site){id, 0, NULL},
               "compute the priority from loads only",
               "%s in by(...): a priority changes no memory",
               vyre__ops[node->op].text);
    return;
  }
  if (is_pull && node->op == VYRE__OP_PUSH &&
      node_at(v, node->a)->op != VYRE__OP_ITEM) {
    vyre__find(v, "V114", (vyre__validation_site){id, 0, NULL},
               "write push(item)",
               "'pull' decides whether its own key joins the set, so it pushes "
               "'item' only");
    return;
  }
  const uint32_t count = vyre__child_count(v->program, id);
  for (uint32_t i = 0; i < count; i++) {
    check_part(v, vyre__child(v->program, id, i), is_pull);
  }
}

void vyre__check_queue(vyre__validation *v) {
  const vyre_program *p = v->program;
  const vyre__queue_clauses *queue = p->queue;
  if (!queue) return;
  check_head(v);
  check_shared_memory(v);
  check_node(v, p->functions[0].body);
  if (queue->by) {
    check_node(v, p->functions[queue->by].body);
    check_part(v, p->functions[queue->by].body, false);
  }
  if (queue->pull) {
    check_node(v, p->functions[queue->pull].body);
    check_part(v, p->functions[queue->pull].body, true);
  }
  if (!queue->part) check_pushes(v);
}

static vyre_code check_inlined(vyre__validation *v, const vyre_program *program,
                               vyre__queue_part_kind kind, vyre_status *st) {
  const vyre_allocator allocator = program->arena.allocator;
  const vyre_program *before = v->program;
  vyre_program *part, *inlined;
  VYRE_TRY(vyre__queue_part(program, kind, allocator, &part, st));
  vyre_code code = vyre__inline(part, allocator, &inlined, st);
  vyre_program_release(part);
  VYRE_TRY(code);
  v->program = inlined;
  check_node(v, inlined->functions[0].body);
  check_part(v, inlined->functions[0].body, kind == VYRE__QUEUE_PART_PULL);
  v->program = before;
  vyre_program_release(inlined);
  return VYRE_OK;
}

vyre_code vyre__check_queue_parts(vyre__validation *v,
                                  const vyre_program *program,
                                  vyre_status *st) {
  const vyre__queue_clauses *queue = program->queue;
  if (queue && queue->by)
    VYRE_TRY(check_inlined(v, program, VYRE__QUEUE_PART_BY, st));
  if (queue && queue->pull)
    VYRE_TRY(check_inlined(v, program, VYRE__QUEUE_PART_PULL, st));
  return VYRE_OK;
}
