/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "analyze/walk.h"

uint32_t vyre__child_count(const vyre_program *program, vyre__id id) {
  const vyre__node *node = &program->nodes[id];
  switch ((vyre__form)vyre__ops[node->op].form) {
    case VYRE__FORM_CALL:
      return node->c;
    case VYRE__FORM_LIST:
      return node->b;
    case VYRE__FORM_UNARY:
      return node->a != 0;
    case VYRE__FORM_LOAD:
    case VYRE__FORM_SET:
      return 1;
    case VYRE__FORM_BINARY:
    case VYRE__FORM_ATOMIC:
    case VYRE__FORM_STORE:
    case VYRE__FORM_WHILE:
      return 2;
    case VYRE__FORM_IF:
      return node->c != 0 ? 3 : 2;
    case VYRE__FORM_TERNARY:
    case VYRE__FORM_ATOMIC2:
      return 3;
    case VYRE__FORM_FOR:
      return 4;
    case VYRE__FORM_NONE:
    case VYRE__FORM_NULLARY:
    case VYRE__FORM_LITERAL:
    case VYRE__FORM_LOCAL:
    case VYRE__FORM_BUFFER:
    case VYRE__FORM_AXIS:
    case VYRE__FORM_TEXT:
      break;
  }
  return 0;
}

vyre__id vyre__child(const vyre_program *program, vyre__id id, uint32_t index) {
  const vyre__node *node = &program->nodes[id];
  const uint32_t abc[] = {node->a, node->b, node->c};
  switch ((vyre__form)vyre__ops[node->op].form) {
    case VYRE__FORM_CALL:
    case VYRE__FORM_FOR:
      return program->lists[node->b + index];
    case VYRE__FORM_LIST:
      return program->lists[node->a + index];
    case VYRE__FORM_LOAD:
    case VYRE__FORM_SET:
      return node->b;
    case VYRE__FORM_ATOMIC:
    case VYRE__FORM_STORE:
      return abc[index + 1];
    case VYRE__FORM_ATOMIC2:
      return index == 0 ? node->b : program->lists[node->c + index - 1];
    default:
      return abc[index];
  }
}
