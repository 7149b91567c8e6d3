/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Texts of examples/graph, as cmake/kernel_texts.cmake writes them. */
#ifndef VYRE_TOOLS_GRAPH_KERNEL_TEXTS_H
#define VYRE_TOOLS_GRAPH_KERNEL_TEXTS_H

#include <stddef.h>

#define GRAPH_TEXT(name)                   \
  extern const char graph_##name##_text[]; \
  extern const size_t graph_##name##_length;
GRAPH_TEXT(bfs)
GRAPH_TEXT(components)
GRAPH_TEXT(pagerank)
GRAPH_TEXT(sssp)
GRAPH_TEXT(triangles)
#undef GRAPH_TEXT

#endif
