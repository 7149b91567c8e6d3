/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Flags and help of `vyre flow`, for command_table.c only. */
#ifndef VYRE_TOOLS_CLI_FLOW_FLAGS_H
#define VYRE_TOOLS_CLI_FLOW_FLAGS_H

static const char flow_body[] =
    "A flow file has one statement per line; # starts a comment:\n"
    "  kernels PATH                          a file of kernels\n"
    "  resource NAME : TYPE[COUNT] ROLES     memory; ROLES: input [SPEC],\n"
    "                                        output, kept\n"
    "  wave [LABEL =] KERNEL(ARGUMENTS) [grid X [Y [Z]]]\n"
    "                                        one dispatch\n"
    "  order LABEL before LABEL              one more dependency\n"
    "  repeat while NAME[INDEX] max N        repeats all waves\n"
    "  budget BYTES                          limit, such as 64K or 2M\n"
    "An argument is a resource, a part of it (x[0..100]), or a value for a\n"
    "uniform. Waves run in groups; a wave waits for those before it that use\n"
    "the same elements. SPEC is that of 'vyre run'.\n";

#define FLOW_COMMON_FLAGS                                           \
  SWITCH_FLAG("--separate", "give every resource its own bytes"), { \
    .name = "--option", .value = "BACKEND.KEY=NUMBER",              \
    .help =                                                         \
        "option of a backend; separate several by commas,\n"        \
        "as in $VYRE_OPTIONS",                                      \
    .type = FLAG_TEXT                                               \
  }

static const flag_doc flow_plan_flags[] = {
    {.name = "--backend",
     .value = "NAME",
     .help = "device: auto (the default) or a name listed by 'vyre devices'",
     .type = FLAG_DEVICE},
    FLOW_COMMON_FLAGS,
    {.name = "--svg",
     .value = "FILE",
     .help = "write a drawing of the groups and the memory",
     .type = FLAG_TEXT},
    JSON_FLAG};

static const flag_doc flow_run_flags[] = {
    {.name = "--set",
     .value = "NAME=SPEC",
     .help = "contents of an input, instead of those in the file",
     .type = FLAG_LIST},
    {.name = "--out",
     .value = "NAME=FILE",
     .help = "write an output: raw bytes, or an array of NumPy if the\n"
             "name ends in .npy",
     .type = FLAG_LIST},
    {.name = "--backend",
     .value = "NAMES",
     .help = "devices, separated by commas: auto (the default) or names\n"
             "listed by 'vyre devices'; one hash is printed for each, and\n"
             "the exit code is 1 if they differ",
     .type = FLAG_TEXT},
    FLOW_COMMON_FLAGS,
    {.name = "--runs",
     .value = "N",
     .help = "runs, at most 1000; the time is their median (default 1)",
     .type = FLAG_U64,
     .min = 1,
     .max = 1000},
    SWITCH_FLAG("--no-time", "print no times: equal output in each run"),
    JSON_FLAG};

#endif
