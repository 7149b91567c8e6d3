/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Imports: finding and joining files, and reading the statement. */
#include "lang/import.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "lang/parse/parse.h"

enum { MAX_PATH = 1024, SHOWN_PATH = 200 };

static vyre__id report(vyre__parser *p, const vyre__import *import,
                       const char *fix, const char *message) {
  return vyre__p_error(p, vyre__p_span(&import->path), "V094", fix, "%s",
                       message);
}

/* --- paths -----------------------------------------------------------------*/

typedef enum path_fault { PATH_FINE, PATH_WRONG, PATH_LEAVES } path_fault;

/* Appends the parts of @p path to the path @p out, which has no "." or "..". */
static path_fault append_path(char *out, const char *path, size_t length) {
  size_t used = strlen(out);
  for (size_t at = 0; at < length;) {
    const char *slash = memchr(path + at, '/', length - at);
    const size_t part = slash ? (size_t)(slash - path) - at : length - at;
    const char *text = path + at;
    at += part + 1;
    if (part == 0 || (part == 1 && text[0] == '.')) continue;
    if (part == 2 && text[0] == '.' && text[1] == '.') {
      if (used == 0) return PATH_LEAVES;
      while (used > 0 && out[used - 1] != '/') used--;
      if (used > 0) used--;
      out[used] = '\0';
      continue;
    }
    if (used + part + 2 > MAX_PATH) return PATH_WRONG;
    if (used > 0) out[used++] = '/';
    memcpy(out + used, text, part);
    used += part;
    out[used] = '\0';
  }
  return PATH_FINE;
}

/* Returns the length of the folder of a path, without the last slash. */
static size_t folder_length(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? (size_t)(slash - path) : 0;
}

static bool is_relative(const char *path, size_t length) {
  if (length == 0 || path[0] == '/' || path[length - 1] == '/') return false;
  for (size_t i = 0; i < length; i++) {
    const unsigned char c = (unsigned char)path[i];
    if (c < ' ' || c == '\\' || c == ':' || c == 0x7F) return false;
  }
  return length < MAX_PATH;
}

static const char *join(vyre__parser *p, const char *folder, const char *path) {
  const size_t first = strlen(folder), second = strlen(path);
  char *out = vyre_arena_alloc(&p->arena, first + second + 2, 1);
  if (!out) {
    p->out_of_memory = true;
    return NULL;
  }
  const bool needs_slash = first > 0 && folder[first - 1] != '/';
  (void)snprintf(out, first + second + 2, "%s%s%s", folder,
                 needs_slash ? "/" : "", path);
  return out;
}

/* --- the joined text -------------------------------------------------------*/

static bool append_text(vyre__parser *p, const char *text, size_t length) {
  void *joined = p->joined;
  if (!vyre__reserve(p->allocator, &joined, &p->joined_capacity,
                     p->joined_length + length + 1, 1, false)) {
    p->out_of_memory = true;
    return false;
  }
  p->joined = joined;
  if (length > 0) memcpy(p->joined + p->joined_length, text, length);
  p->joined_length += length;
  return true;
}

static uint32_t count_lines(const char *text, size_t length) {
  uint32_t count = 0;
  for (size_t i = 0; i < length; i++) count += text[i] == '\n';
  return count;
}

/* Appends a file to the joined text. Returns its index, or VYRE_NO_INDEX. */
static uint32_t add_file(vyre__parser *p, const vyre__linked_file *spec,
                         const char *text, size_t length) {
  vyre__scopes *s = p->scopes;
  void *files = s->files;
  if (length >= 3 && s->file_count > 0 &&
      memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
    text += 3;
    length -= 3;
  }
  if (!vyre__reserve(p->allocator, &files, &s->file_capacity, s->file_count + 1,
                     sizeof *s->files, false)) {
    p->out_of_memory = true;
    return VYRE_NO_INDEX;
  }
  s->files = files;
  if (s->file_count > 0 && !append_text(p, "\n", 1)) return VYRE_NO_INDEX;
  vyre__linked_file file = *spec;
  file.start = (uint32_t)p->joined_length;
  file.first_line = 1 + count_lines(p->joined, p->joined_length);
  if (!append_text(p, text, length)) return VYRE_NO_INDEX;
  file.end = (uint32_t)p->joined_length;
  s->files[s->file_count] = file;
  return (uint32_t)s->file_count++;
}

/* --- finding a file --------------------------------------------------------*/

/* Search for one import. */
typedef struct search {
  vyre__parser *p;
  const vyre__import *import;
  const char *path; /* as written, not terminated */
  size_t length;
  char tried[VYRE__FIX_TEXT]; /* files that do not exist */
  bool leaves;                /* a candidate leaves its folder */
} search;

static uint32_t find_file(const vyre__scopes *s, const char *name) {
  for (size_t i = 0; i < s->file_count; i++) {
    if (strcmp(s->files[i].name, name) == 0) return (uint32_t)i;
  }
  return VYRE_NO_INDEX;
}

static void add_tried(search *s, const char *name) {
  const size_t used = strlen(s->tried);
  snprintf(s->tried + used, sizeof s->tried - used, "%s'%.100s'",
           used ? ", " : "", name);
}

/* Checks the limits of the joined text. Returns false after a report. */
static bool has_room(search *s, size_t length) {
  vyre__parser *p = s->p;
  if (p->scopes->file_count > VYRE__MAX_IMPORTS) {
    report(p, s->import, "put declarations into fewer files",
           "a module has at most 256 imported files");
    return false;
  }
  if (length > VYRE__MAX_SOURCE ||
      p->joined_length + length + 1 > VYRE__MAX_SOURCE) {
    report(p, s->import, "import fewer or smaller files",
           "a file and its imports are larger than 16 MiB together");
    return false;
  }
  return true;
}

/* Reads the file @p path below @p folder. Returns its index; VYRE_NO_INDEX if
 * it does not exist, or after a report, which sets *is_done. */
static uint32_t try_file(search *s, const char *folder, const char *base,
                         size_t base_length, bool *is_done) {
  vyre__parser *p = s->p;
  char path[MAX_PATH] = "";
  path_fault fault = append_path(path, base, base_length);
  if (fault == PATH_FINE) fault = append_path(path, s->path, s->length);
  if (fault == PATH_LEAVES) s->leaves = true;
  if (fault != PATH_FINE || !path[0]) return VYRE_NO_INDEX;
  const char *name = join(p, folder, path);
  if (!name) return VYRE_NO_INDEX;
  const uint32_t known = find_file(p->scopes, name);
  if (known != VYRE_NO_INDEX) return known;
  const char *text = NULL;
  size_t length = 0, at;
  if (p->scopes->file_count > VYRE__MAX_IMPORTS) {
    *is_done = true;
    p->scopes->is_refused = !has_room(s, 0);
    return VYRE_NO_INDEX;
  }
  if (!p->options.import_read(p->options.import_context, name, &p->arena, &text,
                              &length)) {
    add_tried(s, name);
    return VYRE_NO_INDEX;
  }
  *is_done = true;
  p->scopes->is_refused = !has_room(s, length);
  if (p->scopes->is_refused) return VYRE_NO_INDEX;
  if (length > 0 && vyre__source_check(text, length, &at)) {
    char message[VYRE__FIX_TEXT];
    snprintf(message, sizeof message,
             "'%.*s' is not UTF-8 text without control characters", SHOWN_PATH,
             name);
    report(p, s->import, "save the file as UTF-8", message);
    p->scopes->is_refused = true;
    return VYRE_NO_INDEX;
  }
  const char *below = vyre__arena_text(&p->arena, path);
  if (!below) p->out_of_memory = true;
  if (!below) return VYRE_NO_INDEX;
  return add_file(
      p, &(vyre__linked_file){.name = name, .folder = folder, .path = below},
      text, length);
}

static void report_missing(search *s, const char *folder) {
  char message[512], fix[VYRE__FIX_TEXT];
  if (s->tried[0]) {
    snprintf(message, sizeof message, "cannot read %s", s->tried);
    report(s->p, s->import, "correct the path, or add its folder with -I",
           message);
    return;
  }
  snprintf(message, sizeof message, "'%.*s' leaves the folder '%.100s'",
           (int)(s->length > SHOWN_PATH ? SHOWN_PATH : s->length), s->path,
           *folder ? folder : ".");
  snprintf(fix, sizeof fix,
           "add the folder that has the file with -I, and write the path below "
           "it");
  report(s->p, s->import, fix, message);
}

/* Returns the index of an imported file, or VYRE_NO_INDEX after a report. */
static uint32_t resolve(vyre__parser *p, uint32_t file,
                        const vyre__import *import) {
  const vyre__linked_file from = p->scopes->files[file];
  search s = {.p = p,
              .import = import,
              .path = p->joined + import->path.start + 1,
              .length = import->path.length - 2};
  if (!p->options.import_read) {
    report(p, import, "set import_read in vyre_module_options",
           "imports need a function that reads files");
    return VYRE_NO_INDEX;
  }
  if (!is_relative(s.path, s.length)) {
    report(p, import,
           "write a path below the folder of this file: \"noise.vyre\"",
           "the path of an import is relative, with / between folders");
    return VYRE_NO_INDEX;
  }
  bool is_done = false;
  uint32_t found =
      try_file(&s, from.folder, from.path, folder_length(from.path), &is_done);
  for (size_t i = 0; i < p->options.import_folder_count &&
                     found == VYRE_NO_INDEX && !is_done && !p->out_of_memory;
       i++) {
    found = try_file(&s, p->options.import_folders[i], "", 0, &is_done);
  }
  if (found == VYRE_NO_INDEX && !is_done && !p->out_of_memory) {
    report_missing(&s, from.folder);
  }
  return found;
}

/* --- reading the imports of a file -----------------------------------------*/

static bool is_text(const vyre__parser *p, const vyre__token *token,
                    const char *word) {
  return token->kind == VYRE__T_NAME && token->length == strlen(word) &&
         memcmp(p->joined + token->start, word, token->length) == 0;
}

static bool add_import(vyre__parser *p, uint32_t file, vyre__import import) {
  vyre__linked_file *f = &p->scopes->files[file];
  void *imports = f->imports;
  if (!vyre__reserve(p->allocator, &imports, &f->import_capacity,
                     f->import_count + 1, sizeof *f->imports, false)) {
    p->out_of_memory = true;
    return false;
  }
  f->imports = imports;
  f->imports[f->import_count++] = import;
  return true;
}

/* Finds the imports of a file. */
static void scan_file(vyre__parser *p, uint32_t file) {
  const vyre__linked_file *f = &p->scopes->files[file];
  vyre__lexer lexer;
  vyre__lexer_init(&lexer, p->joined, f->end, NULL);
  if (file > 0) lexer.at = f->start;
  lexer.line = f->first_line;
  lexer.line_start = f->start;
  unsigned depth = 0;
  vyre__token token = vyre__lex(&lexer), next;
  for (; token.kind != VYRE__T_END && !p->out_of_memory; token = next) {
    next = vyre__lex(&lexer);
    if (token.kind == VYRE__T_LBRACE) depth++;
    if (token.kind == VYRE__T_RBRACE && depth > 0) depth--;
    if (depth > 0 || next.kind != VYRE__T_STRING ||
        !is_text(p, &token, "import")) {
      continue;
    }
    vyre__import import = {.path = next, .target = VYRE_NO_INDEX};
    next = vyre__lex(&lexer);
    if (is_text(p, &next, "as")) {
      import.alias = vyre__lex(&lexer);
      next = vyre__lex(&lexer);
      if (import.alias.kind != VYRE__T_NAME) import.alias.kind = VYRE__T_END;
    }
    (void)add_import(p, file, import);
  }
}

/* Reports an import of a file whose imports are being read. */
static void report_cycle(vyre__parser *p, const vyre__import *import,
                         const uint32_t *chain, unsigned depth) {
  const vyre__scopes *s = p->scopes;
  char text[VYRE__FIX_TEXT + 128] = "the imports are a cycle: ";
  unsigned at = depth;
  while (at > 0 && chain[at] != import->target) at--;
  for (; at <= depth; at++) {
    const size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%.60s -> ",
             s->files[chain[at]].name);
  }
  const size_t used = strlen(text);
  snprintf(text + used, sizeof text - used, "%.60s",
           s->files[import->target].name);
  report(p, import, "move what both files need to a third file", text);
}

/* Reads all files that @p chain[depth] imports, and their imports. */
static void read_imports(vyre__parser *p, uint32_t *chain, unsigned depth) {
  const uint32_t file = chain[depth];
  scan_file(p, file);
  p->scopes->files[file].is_open = true;
  for (size_t i = 0; i < p->scopes->files[file].import_count &&
                     !p->out_of_memory && !p->stopped && !p->scopes->is_refused;
       i++) {
    vyre__import import = p->scopes->files[file].imports[i];
    const size_t before = p->scopes->file_count;
    import.target = resolve(p, file, &import);
    if (import.target == VYRE_NO_INDEX) continue;
    if (p->scopes->files[import.target].is_open) {
      report_cycle(p, &import, chain, depth);
      continue;
    }
    if (import.target >= before && depth + 1 >= VYRE__MAX_IMPORT_DEPTH) {
      report(p, &import, "import these files from one file instead",
             "more than 64 files import each other in a row");
      continue;
    }
    p->scopes->files[file].imports[i].target = import.target;
    if (import.target < before) continue; /* read before */
    chain[depth + 1] = import.target;
    read_imports(p, chain, depth + 1);
  }
  p->scopes->files[file].is_open = false;
}

static bool has_word(const char *text, size_t length) {
  static const char word[] = "import";
  const char *at = text, *end = text + length;
  while ((size_t)(end - at) >= sizeof word &&
         (at = memchr(at, 'i', (size_t)(end - at) - sizeof word + 1)) != NULL) {
    if (memcmp(at, word, sizeof word - 1) == 0) return true;
    at++;
  }
  return false;
}

/* Copies the folder and the last part of the name of the parsed file. */
static bool split_name(vyre__parser *p, vyre__linked_file *file) {
  const size_t length = folder_length(p->file);
  char *folder = vyre_arena_alloc(&p->arena, length + 2, 1);
  if (!folder) {
    p->out_of_memory = true;
    return false;
  }
  const bool is_root = p->file[0] == '/' && length == 0;
  memcpy(folder, p->file, length + is_root);
  folder[length + is_root] = '\0';
  file->name = p->file;
  file->folder = folder;
  file->path = p->file + length + (p->file[length] == '/');
  return true;
}

void vyre__p_link(vyre__parser *p) {
  if (p->length == 0 || !has_word(p->text, p->length)) return;
  vyre__scopes *s = vyre__arena_filled(&p->arena, 1, sizeof *s, 0);
  vyre__linked_file root = {0};
  if (!s) p->out_of_memory = true;
  if (!s || !split_name(p, &root)) return;
  s->allocator = p->allocator;
  s->symbols = &p->symbols;
  p->scopes = s;
  uint32_t chain[VYRE__MAX_IMPORT_DEPTH] = {0};
  if (add_file(p, &root, p->text, p->length) == VYRE_NO_INDEX) return;
  read_imports(p, chain, 0);
  if (p->out_of_memory) return;
  if (s->files[0].import_count == 0) { /* a word of another meaning */
    vyre__scopes_deinit(p);
    return;
  }
  p->text = p->joined;
  p->length = (uint32_t)p->joined_length;
  s->text = p->text;
}

void vyre__p_list_files(vyre__parser *p) {
  const size_t count = p->scopes->file_count;
  if (count < 2) return;
  vyre__source_files *out = vyre__arena_filled(&p->arena, 1, sizeof *out, 0);
  vyre__source_file *items = vyre__arena_array(&p->arena, count, sizeof *items);
  if (!out || !items) {
    p->out_of_memory = true;
    return;
  }
  for (size_t i = 0; i < count; i++) {
    const vyre__linked_file *from = &p->scopes->files[i];
    items[i] = (vyre__source_file){.name = from->name,
                                   .text = p->text + from->start,
                                   .length = from->end - from->start,
                                   .first_line = from->first_line};
  }
  *out = (vyre__source_files){items, count};
  p->files = out;
}

/* --- the statement ---------------------------------------------------------*/

bool vyre__p_import(vyre__parser *p) {
  const vyre__token first = p->now.token;
  if (!vyre__p_text_is(p, &first, "import")) return false;
  const vyre__token next = vyre__p_peek(p);
  if (next.kind != VYRE__T_STRING && next.kind != VYRE__T_NAME) return false;
  vyre__p_advance(p);
  if (next.kind == VYRE__T_NAME) {
    char fix[VYRE__FIX_TEXT];
    snprintf(fix, sizeof fix, "write import \"%.*s.vyre\" as %.*s;",
             next.length > 60 ? 60 : (int)next.length, p->text + next.start,
             next.length > 60 ? 60 : (int)next.length, p->text + next.start);
    vyre__p_syntax(p, vyre__p_span(&next), "V094", fix,
                   "an import names a file");
    vyre__p_skip_to_semicolon(p);
    (void)vyre__p_accept(p, VYRE__T_SEMICOLON);
    return true;
  }
  vyre__p_advance(p);
  const vyre__token word = p->now.token;
  if (vyre__p_text_is(p, &word, "as")) {
    vyre__token alias;
    vyre__p_advance(p);
    (void)vyre__p_new_name(p, "an import", &alias);
  }
  vyre__p_semicolon(p, "an import");
  return true;
}
