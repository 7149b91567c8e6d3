/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "analyze/walk.h"

/* Per form: the position of the children, or the list that holds them. */
#define CHILDREN_NONE    {0, 0}
#define CHILDREN_NULLARY {0, 0}
#define CHILDREN_LITERAL {0, 0}
#define CHILDREN_LOCAL   {0, 0}
#define CHILDREN_CALL    {VYRE__CHILDREN_CALL, VYRE__CHILDREN_IN_LIST}
#define CHILDREN_LOAD    {1, 1}
#define CHILDREN_BUFFER  {0, 0}
#define CHILDREN_AXIS    {0, 0}
#define CHILDREN_UNARY   {0, 1}
#define CHILDREN_BINARY  {0, 2}
#define CHILDREN_TERNARY {0, 3}
#define CHILDREN_ATOMIC  {1, 2}
#define CHILDREN_ATOMIC2 {VYRE__CHILDREN_ATOMIC2, VYRE__CHILDREN_IN_LIST}
#define CHILDREN_MAKE    {VYRE__CHILDREN_LIST, VYRE__CHILDREN_IN_LIST}
#define CHILDREN_LIST    {VYRE__CHILDREN_LIST, VYRE__CHILDREN_IN_LIST}
#define CHILDREN_SET     {1, 1}
#define CHILDREN_STORE   {1, 2}
#define CHILDREN_IF      {0, 3}
#define CHILDREN_FOR     {VYRE__CHILDREN_FOR, VYRE__CHILDREN_IN_LIST}
#define CHILDREN_WHILE   {0, 2}
#define CHILDREN_TEXT    {0, 0}

const vyre__child_run vyre__child_runs[VYRE__OP_COUNT] = {
#define OP(name, text, form, rule, flags) [VYRE__OP_##name] = CHILDREN_##form,
#include "ir/ops.def"
#undef OP
};
