/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "analyze/walk.h"

/* Per form: the position of the children, or the list that holds them. */
#define RUN_NONE    {0, 0}
#define RUN_NULLARY {0, 0}
#define RUN_LITERAL {0, 0}
#define RUN_LOCAL   {0, 0}
#define RUN_CALL    {VYRE__RUN_CALL, VYRE__PREPARED_IN_LIST}
#define RUN_LOAD    {1, 1}
#define RUN_BUFFER  {0, 0}
#define RUN_AXIS    {0, 0}
#define RUN_UNARY   {0, 1}
#define RUN_BINARY  {0, 2}
#define RUN_TERNARY {0, 3}
#define RUN_ATOMIC  {1, 2}
#define RUN_ATOMIC2 {VYRE__RUN_ATOMIC2, VYRE__PREPARED_IN_LIST}
#define RUN_LIST    {VYRE__RUN_LIST, VYRE__PREPARED_IN_LIST}
#define RUN_SET     {1, 1}
#define RUN_STORE   {1, 2}
#define RUN_IF      {0, 3}
#define RUN_FOR     {VYRE__RUN_FOR, VYRE__PREPARED_IN_LIST}
#define RUN_WHILE   {0, 2}
#define RUN_TEXT    {0, 0}

const vyre__child_run vyre__child_runs[VYRE__OP_COUNT] = {
#define OP(name, text, form, rule, flags) [VYRE__OP_##name] = RUN_##form,
#include "ir/ops.def"
#undef OP
};
