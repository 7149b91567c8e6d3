/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compares the needs of a program with the limits of a device, for all
 * backends. */
#include "runtime/compile/device_limits.h"

#include "base/attributes.h"
#include "base/status.h"
#include "ir/ir.h"

typedef struct needs {
  bool f64, u64, print;
} needs;

static void need_type(needs *n, unsigned type) {
  n->f64 |= type == VYRE_TYPE_F64;
  n->u64 |= type == VYRE_TYPE_U64 || type == VYRE_TYPE_I64;
}

/* Collects the features that the program uses. */
static needs find_needs(const vyre_program *program) {
  needs n = {false, false, false};
  for (uint32_t i = 0; i < program->node_count; i++) {
    const vyre__node *node = &program->nodes[i];
    need_type(&n, node->type);
    n.print |= (vyre__ops[node->op].flags & VYRE__OPF_PRINTS) != 0;
  }
  for (uint32_t i = 0; i < program->function_count; i++) {
    const vyre__function *f = &program->functions[i];
    need_type(&n, f->result);
    for (uint32_t k = 0; k < f->local_count; k++) {
      need_type(&n, f->locals[k].type);
    }
  }
  return n;
}

VYRE__RARE
static vyre_code lacks(const vyre_device *device, const vyre_program *program,
                       const char *feature, vyre_status *st) {
  return VYRE_FAIL(
      st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
      "remove it, or use a device that has it; `vyre devices` lists "
      "them",
      "device '%s' cannot compile kernel '%.60s': it has no %s",
      vyre_device_name(device), program->name, feature);
}

VYRE__RARE
static vyre_code too_much_shared(const vyre_device *device,
                                 const vyre_program *program, uint64_t bytes,
                                 vyre_status *st) {
  uint64_t max_bytes = device->caps.max_shared_bytes;
  return VYRE_FAIL_WITH(
      st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED, NULL,
      VYRE_NUMBERS({"shared_bytes", bytes}, {"max_bytes", max_bytes}),
      "use smaller shared buffers, or a device with more shared memory",
      "kernel '%.60s' has %llu bytes of shared buffers; '%s' allows at most "
      "%llu",
      program->name, (unsigned long long)bytes, vyre_device_name(device),
      (unsigned long long)max_bytes);
}

vyre_code vyre__buffer_too_large(const vyre_device *device, const char *name,
                                 uint64_t size, vyre_status *st) {
  uint64_t max_bytes = device->caps.max_buffer_bytes;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"requested_bytes", size}, {"max_bytes", max_bytes}),
      "split the data into several buffers",
      "buffer '%.100s' has %llu bytes; '%s' allows at most %llu", name,
      (unsigned long long)size, vyre_device_name(device),
      (unsigned long long)max_bytes);
}

/* Checks buffers of a fixed size; the others are checked when they are
 * bound. */
static vyre_code check_bytes(const vyre_device *device,
                             const vyre_program *program, vyre_status *st) {
  uint64_t shared = 0;
  for (size_t i = 0; i < program->buffer_count; i++) {
    const vyre_buffer_decl *b = &program->buffers[i];
    uint64_t size = (uint64_t)b->count * vyre_buffer_stride(b);
    if (!vyre__is_shared(b)) {
      if (size > device->caps.max_buffer_bytes) {
        return vyre__buffer_too_large(device, b->name, size, st);
      }
      continue;
    }
    shared = size > UINT64_MAX - shared ? UINT64_MAX : shared + size;
  }
  if (shared <= device->caps.max_shared_bytes) return VYRE_OK;
  return too_much_shared(device, program, shared, st);
}

vyre_code vyre__program_check_caps(const vyre_device *device,
                                   const vyre_program *program,
                                   vyre_status *st) {
  const vyre_device_caps *caps = &device->caps;
  needs n = find_needs(program);
  if (n.f64 && !caps->has_f64) return lacks(device, program, "f64", st);
  if (n.u64 && !caps->has_u64) {
    return lacks(device, program, "u64 and i64", st);
  }
  if (n.print && !caps->has_print) return lacks(device, program, "print", st);
  return check_bytes(device, program, st);
}
