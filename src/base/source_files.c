/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "base/source_files.h"

#include "base/memory.h"

const vyre__source_file *vyre__source_file_of(const vyre__source_files *files,
                                              uint32_t *line) {
  if (!files) return NULL;
  for (size_t i = files->count; i-- > 1;) {
    if (*line < files->items[i].first_line) continue;
    *line -= files->items[i].first_line - 1;
    return &files->items[i];
  }
  return NULL;
}

const vyre__source_files *vyre__source_files_copy(
    const vyre__source_files *files, vyre_arena *arena) {
  vyre__source_files *out = vyre__arena_filled(arena, 1, sizeof *out, 0);
  vyre__source_file *items =
      vyre__arena_copy(arena, files->items, files->count, sizeof *items);
  if (!out || !items) return NULL;
  for (size_t i = 0; i < files->count; i++) {
    items[i].name = vyre__arena_text(arena, items[i].name);
    if (!items[i].name) return NULL;
    if (i == 0 || items[i].length == 0) {
      items[i].text = "";
      items[i].length = 0;
      continue;
    }
    items[i].text = vyre__arena_copy(arena, items[i].text, items[i].length, 1);
    if (!items[i].text) return NULL;
  }
  *out = (vyre__source_files){items, files->count};
  return out;
}
