/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* IR builder: values of queue kernels, and the numbers of lane and subgroup. */
#include "ir/builder/ir_builder.h"
#include "ir/builder/ir_builder_internal.h"

static const vyre__queue_clauses *need_queue(vyre__ir_builder *m,
                                             const char *subject) {
  if (!vyre__need_kernel(m, subject)) return NULL;
  if (m->kernel->queue) return m->kernel->queue;
  vyre__diagnose(m, "V083",
                 "add queue(u32), or another item type, to the kernel",
                 "%s is only valid in a queue kernel", subject);
  return NULL;
}

vyre__id vyre__ir_build_item(vyre__ir_builder *m, uint32_t field) {
  const vyre__queue_clauses *queue = need_queue(m, "'item'");
  if (!queue) return 0;
  if (field >= queue->field_count) {
    return vyre__diagnose(m, "", "use a field of the item",
                          "field %u of an item with %u fields", field,
                          queue->field_count);
  }
  return vyre__append(m,
                      (vyre__node){.op = VYRE__OP_ITEM,
                                   .type = queue->fields[field].type,
                                   .aux = (uint8_t)field},
                      0);
}

vyre__id vyre__ir_build_position(vyre__ir_builder *m, vyre__op op) {
  if (vyre__op_is_lane(op)) {
    return vyre__append(
        m, (vyre__node){.op = (uint8_t)op, .type = VYRE_TYPE_U32}, 0);
  }
  const bool is_window = op == VYRE__OP_WINDOW;
  const vyre__queue_clauses *queue =
      need_queue(m, is_window ? "'window'" : "'item_index'");
  if (!queue) return 0;
  if (queue->kind == VYRE__QUEUE_ANY) {
    return vyre__diagnose(
        m, "V096", "remove 'any', or pass what you need as a field of the item",
        "'%s' does not exist in a queue of kind 'any', which has no order",
        vyre__ops[op].text);
  }
  if (!is_window && (m->in_pull || m->in_by)) {
    return vyre__diagnose(
        m, "V096", "use 'item', which is the key in this body",
        "'item_index' does not exist in '%s'", m->in_pull ? "pull" : "by");
  }
  return vyre__append(m, (vyre__node){.op = (uint8_t)op, .type = VYRE_TYPE_U32},
                      0);
}

vyre__id vyre__ir_build_in_window(vyre__ir_builder *m, vyre__id key) {
  if (!need_queue(m, "in_window()")) return 0;
  if (!m->in_pull && !m->kernel->queue->part) {
    return vyre__diagnose(m, "V096", "use it in the body after 'pull'",
                          "in_window() is only valid in 'pull'");
  }
  key = vyre__expect(m, key, VYRE_TYPE_U32, "V085", "the key of in_window()");
  if (!key) return 0;
  return vyre__append(
      m,
      (vyre__node){.op = VYRE__OP_IN_WINDOW, .type = VYRE_TYPE_BOOL, .a = key},
      vyre__height(m, key));
}

static vyre__id append_push(vyre__ir_builder *m, vyre__id value) {
  return vyre__append(
      m, (vyre__node){.op = VYRE__OP_PUSH, .type = VYRE_TYPE_BOOL, .a = value},
      vyre__height(m, value));
}

/* Checks the pushed values, which are on the stack from @p mark on. */
static bool check_values(vyre__ir_builder *m, const vyre__queue_clauses *queue,
                         uint32_t mark) {
  const uint32_t count = (uint32_t)m->stack_count - mark;
  if (count != queue->field_count) {
    vyre__diagnose(m, "V085", "pass one value for each field of the item",
                   "push() takes %u value%s, not %u", queue->field_count,
                   queue->field_count == 1 ? "" : "s", count);
    return false;
  }
  bool good = true;
  for (uint32_t i = 0; i < count; i++) {
    m->stack[mark + i] =
        vyre__expect(m, m->stack[mark + i], (vyre_type)queue->fields[i].type,
                     "V085", "the pushed value");
    good = good && m->stack[mark + i] != 0;
  }
  return good;
}

vyre__id vyre__ir_build_push(vyre__ir_builder *m, uint32_t mark) {
  const vyre__queue_clauses *queue = need_queue(m, "push()");
  if (queue && m->in_by) {
    vyre__diagnose(m, "V096", "push in the body of the kernel",
                   "push() is not valid in 'by'");
    queue = NULL;
  }
  if (!queue || m->out_of_memory || !check_values(m, queue, mark)) {
    vyre__stack_drop(m, mark);
    return 0;
  }
  if (queue->field_count == 1) {
    const vyre__id value = m->stack[mark];
    vyre__stack_drop(m, mark);
    return append_push(m, value);
  }
  uint32_t list, count;
  unsigned height;
  if (!vyre__take_list(m, mark, &list, &count, &height)) return 0;
  return vyre__append(m,
                      (vyre__node){.op = VYRE__OP_PUSH_FIELDS,
                                   .type = VYRE_TYPE_BOOL,
                                   .a = list,
                                   .b = count},
                      height);
}

vyre__id vyre__ir_build_priority(vyre__ir_builder *m, vyre__id value) {
  if (!need_queue(m, "a priority")) return 0;
  value =
      vyre__expect(m, value, VYRE_TYPE_U32, "V097", "the priority of by(...)");
  return value ? append_push(m, value) : 0;
}
