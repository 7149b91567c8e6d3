/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Flags and help of `vyre graph`, for command_table.c only. */
#ifndef VYRE_TOOLS_CLI_GRAPH_FLAGS_H
#define VYRE_TOOLS_CLI_GRAPH_FLAGS_H

static const char graph_body[] =
    "GRAPH is a file, - for standard input, or a generated graph:\n"
    "  rmat:SCALE:FACTOR   2^SCALE vertices, FACTOR edges for each, skewed\n"
    "  uniform:N:FACTOR    N vertices, FACTOR edges for each, at random\n"
    "  grid:WxH            neighbours on a grid\n"
    "  path:N, star:N      N vertices in a row, or around vertex 0\n"
    "Generated graphs are undirected, with weights from 1 to 255.\n"
    "\n"
    "A file is a Matrix Market file (coordinate; pattern, integer or real;\n"
    "general or symmetric), or a list of edges: lines 'FROM TO [WEIGHT]', "
    "with\n"
    "comments that start with #, % or //. Lists and general matrices are\n"
    "directed. Compressed files come through a pipe:\n"
    "  zcat web.mtx.gz | vyre graph components -\n"
    "\n"
    "Edges that occur again count once; the smallest weight stays. With "
    "several\n"
    "backends, one hash is printed for each, and the exit code is 1 if they\n"
    "differ.\n";

#define GRAPH_COMMON_FLAGS                                                  \
  {.name = "--backend",                                                     \
   .value = "NAMES",                                                        \
   .help =                                                                  \
       "devices, separated by commas: auto (the default) or names\n"        \
       "listed by 'vyre devices'",                                          \
   .type = FLAG_TEXT},                                                      \
      SWITCH_FLAG("--one-based",                                            \
                  "vertices of an edge list are numbered from 1"),          \
      {.name = "--runs",                                                    \
       .value = "N",                                                        \
       .help = "runs, at most 1000; the time is their median (default 1)",  \
       .type = FLAG_U64,                                                    \
       .min = 1,                                                            \
       .max = 1000},                                                        \
      SWITCH_FLAG("--no-time", "print no times: equal output in each run"), \
      {.name = "--budget",                                                  \
       .value = "BYTES",                                                    \
       .help =                                                              \
           "limit on the memory of the algorithm on a device: graph,\n"     \
           "results and queue, such as 65536, 64K or 2M",                   \
       .type = FLAG_BYTES},                                                 \
  {                                                                         \
    .name = "--option", .value = "BACKEND.KEY=NUMBER",                      \
    .help =                                                                 \
        "option of a backend; separate several by commas,\n"                \
        "as in $VYRE_OPTIONS",                                              \
    .type = FLAG_TEXT                                                       \
  }

#define GRAPH_OUT_FLAG(what)           \
  {.name = "--out",                    \
   .value = "FILE",                    \
   .help = what                        \
   ": lines of text, or an array of\n" \
   "NumPy if the name ends in .npy",   \
   .type = FLAG_TEXT}

#define GRAPH_UNDIRECTED_FLAG \
  SWITCH_FLAG("--undirected", "add the reverse of every edge")
#define GRAPH_DUPLICATES_FLAG      \
  SWITCH_FLAG("--keep-duplicates", \
              "keep edges that occur again instead of counting them once")

static const flag_doc graph_components_flags[] = {
    GRAPH_COMMON_FLAGS, GRAPH_OUT_FLAG("write the label of each vertex"),
    JSON_FLAG};

static const flag_doc graph_pagerank_flags[] = {
    GRAPH_COMMON_FLAGS,
    GRAPH_UNDIRECTED_FLAG,
    GRAPH_DUPLICATES_FLAG,
    {.name = "--iterations",
     .value = "N",
     .help = "number of iterations, at most 10000 (default 20)",
     .type = FLAG_U64,
     .min = 0,
     .max = 10000},
    {.name = "--damping",
     .value = "D",
     .help = "chance to follow an edge (default 0.85)",
     .type = FLAG_TEXT},
    GRAPH_OUT_FLAG("write the rank of each vertex"),
    JSON_FLAG};

#define GRAPH_SOURCE_FLAG                                \
  {.name = "--source",                                   \
   .value = "V",                                         \
   .help = "vertex where the search begins (default 0)", \
   .type = FLAG_U64,                                     \
   .min = 0,                                             \
   .max = UINT32_MAX - 1}

static const flag_doc graph_bfs_flags[] = {
    GRAPH_COMMON_FLAGS,
    GRAPH_UNDIRECTED_FLAG,
    GRAPH_DUPLICATES_FLAG,
    GRAPH_SOURCE_FLAG,
    GRAPH_OUT_FLAG("write the depth of each vertex"),
    JSON_FLAG};

static const flag_doc graph_sssp_flags[] = {
    GRAPH_COMMON_FLAGS,
    GRAPH_UNDIRECTED_FLAG,
    GRAPH_DUPLICATES_FLAG,
    GRAPH_SOURCE_FLAG,
    {.name = "--delta",
     .value = "N",
     .help = "distances that one window covers (default 16)",
     .type = FLAG_U64,
     .min = 1,
     .max = UINT32_MAX},
    {.name = "--scale",
     .value = "N",
     .help = "multiply the weights by N, and round them to whole numbers\n"
             "(default 1: weights must be whole numbers)",
     .type = FLAG_U64,
     .min = 1,
     .max = 1000000000},
    GRAPH_OUT_FLAG("write the distance of each vertex"),
    JSON_FLAG};

static const flag_doc graph_triangles_flags[] = {
    GRAPH_COMMON_FLAGS, GRAPH_OUT_FLAG("write the number of triangles"),
    JSON_FLAG};

#endif
