/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Imports. The texts of the parsed file and of all imported files are joined
 * into one text, so that offsets and line numbers are unique. Each file sees
 * its own declarations and those of the files that it imports. A name that
 * means something else in another file has a symbol for each meaning. */
#ifndef VYRE_LANG_IMPORT_H
#define VYRE_LANG_IMPORT_H

#include "vyre/module.h"

#include "base/source_files.h"
#include "lang/lex.h"

struct vyre__parser;

enum {
  VYRE__MAX_IMPORTS = 256,     /* imported files of a module */
  VYRE__MAX_IMPORT_DEPTH = 64, /* files that import each other in a row */
};

/* import "PATH" [as NAME]; */
typedef struct vyre__import {
  vyre__token path;  /* with its quotes */
  vyre__token alias; /* T_END: none */
  uint32_t target;   /* index of the file; VYRE_NO_INDEX after a report */
} vyre__import;

/* A file of the joined text; file 0 is the parsed one. */
typedef struct vyre__linked_file {
  const char *name;   /* folder and path */
  const char *folder; /* that it must not leave: of the parsed file, or of -I */
  const char *path;   /* below that folder */
  uint32_t start, end;
  uint32_t first_line;
  bool is_open;      /* its imports are being read */
  uint32_t bound_in; /* 1 + the last file that has all its names */
  vyre__import *imports;
  size_t import_count, import_capacity;
} vyre__linked_file;

/* Meanings of names by file. */
typedef struct vyre__scopes {
  vyre_allocator allocator;
  vyre__symbols *symbols;
  const char *text;
  vyre__linked_file *files;
  size_t file_count, file_capacity;
  uint64_t *keys; /* file, symbol; 0: free */
  uint32_t *values;
  size_t count, slot_count;
  bool failed;     /* memory was exhausted */
  bool is_refused; /* a file cannot be used: no more files are read */
} vyre__scopes;

/* Joins the files that the parsed file imports. Sets p->scopes, p->text and
 * p->length if there are any. Reports V094. */
void vyre__p_link(struct vyre__parser *p);
/* Makes the declarations of imported files visible, after all files are
 * indexed. Reports V031. */
void vyre__p_bind_imports(struct vyre__parser *p);
/* Reads import "PATH" [as NAME]; which is next. Returns false for any other
 * text. */
bool vyre__p_import(struct vyre__parser *p);
/* Returns the file of an offset. */
uint32_t vyre__file_at(const vyre__scopes *scopes, uint32_t at);
/* Makes a symbol the declaration of its name in a file. */
void vyre__scope_declare(vyre__scopes *scopes, uint32_t file, uint32_t symbol);
/* Writes the fix for an undeclared name that another file has. Returns false if
 * no file declares it. */
bool vyre__p_import_fix(struct vyre__parser *p, const vyre__token *name,
                        char *fix, size_t size);
/* Sets p->files, for diagnostics and programs, if a file was imported. */
void vyre__p_list_files(struct vyre__parser *p);
/* Returns true for a symbol that the current file does not see. */
bool vyre__p_is_hidden(const struct vyre__parser *p, uint32_t symbol);
void vyre__scopes_deinit(struct vyre__parser *p);

/* Gives a name token of @p lexer the symbol that it has in its file, and joins
 * NAME.member of an import into one token. */
void vyre__scope_name(vyre__lexer *lexer, vyre__token *token);

#endif
