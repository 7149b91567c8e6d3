/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Turns a public header into a manual page of section 3. A documentation comment, and
 * the declarations that follow it up to an empty line, become one subsection. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "vyre/version.h"

#include "manual/manual.h"

typedef struct span {
  const char *begin, *end;
} span;

static bool starts_with(const char *at, const char *end, const char *word) {
  size_t length = strlen(word);
  return (size_t)(end - at) >= length && memcmp(at, word, length) == 0;
}

/* Returns the start of @p word in the text, or its end. */
static const char *find(const char *at, const char *end, const char *word) {
  while (at < end && !starts_with(at, end, word)) at++;
  return at;
}

static const char *line_end(const char *at, const char *end) {
  while (at < end && *at != '\n') at++;
  return at;
}

/* Writes text with @p name set in italics where the comment has "@p name". */
static void put_marked(span line, sink *out) {
  for (const char *at = line.begin; at < line.end;) {
    const char *mark = find(at, line.end, "@p ");
    put_roff(at, (size_t)(mark - at), out);
    if (mark == line.end) return;
    const char *name = mark + 3, *stop = name;
    while (stop < line.end && (isalnum((unsigned char)*stop) || *stop == '_')) {
      stop++;
    }
    sink_text(out, "\\fI");
    put_roff(name, (size_t)(stop - name), out);
    sink_text(out, "\\fR");
    at = stop;
  }
}

/* Returns the length of a heading such as "Threads:" at the start of the line, or 0. */
static size_t heading(span line) {
  static const char *const words[] = {
      "Ownership:", "Lifetime:", "Threads:", "Blocks:", "Errors:", "Returns:"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (starts_with(line.begin, line.end, words[i])) return strlen(words[i]);
  }
  return 0;
}

/* Code in a comment is indented by CODE_INDENT columns behind the star, after
 * an empty line. */
enum { CODE_INDENT = 6 };

static bool is_code(span line) {
  const char *star = line.begin;
  while (star < line.end && *star == ' ') star++;
  size_t left = (size_t)(line.end - star);
  return left > CODE_INDENT + 1 && *star == '*' &&
         strspn(star + 1, " ") >= CODE_INDENT;
}

/* Writes the code at @p at without its indent, up to the first line that is
 * none. Returns the start of that line. */
static const char *put_code(const char *at, const char *end, sink *out) {
  sink_text(out, ".nf\n");
  while (at < end) {
    span line = {at, line_end(at, end)};
    if (!is_code(line)) break;
    const char *star = find(line.begin, line.end, "*");
    put_roff(star + 1, (size_t)(line.end - star - 1), out);
    sink_text(out, "\n");
    at = line.end < end ? line.end + 1 : end;
  }
  sink_text(out, ".fi\n.PP\n");
  return at;
}

/* Writes the text between the comment's opening and closing marks. */
static void put_comment(span text, sink *out) {
  bool was_empty = true;
  for (const char *at = text.begin; at < text.end;) {
    span line = {at, line_end(at, text.end)};
    if (was_empty && is_code(line)) {
      at = put_code(at, text.end, out);
      continue;
    }
    at = line.end < text.end ? line.end + 1 : text.end;
    while (line.begin < line.end && strchr(" *", *line.begin)) line.begin++;
    while (line.end > line.begin && line.end[-1] == ' ') line.end--;
    if (line.begin == line.end) {
      if (!was_empty) sink_text(out, ".PP\n");
      was_empty = true;
      continue;
    }
    size_t length = heading(line);
    if (length > 0) {
      sink_text(out, ".TP\n.B ");
      put_roff(line.begin, length, out);
      sink_text(out, "\n");
      line.begin += length;
      while (line.begin < line.end && *line.begin == ' ') line.begin++;
    }
    put_marked(line, out);
    sink_text(out, "\n");
    was_empty = false;
  }
}

/* Returns the end of the declarations at @p at: the first empty line that is not
 * between braces, the next documentation comment, or VYRE_END. */
static const char *declarations_end(const char *at, const char *end) {
  int depth = 0;
  for (; at < end; at++) {
    if (*at == '{') depth++;
    if (*at == '}') depth--;
    if (depth > 0) continue;
    if (starts_with(at, end, "\n\n") || starts_with(at, end, "/**") ||
        starts_with(at, end, "\nVYRE_END") ||
        starts_with(at, end, "\n#endif")) {
      break;
    }
  }
  return at;
}

/* Writes the name that a declaration declares, for the title of its subsection: the
 * identifier before the first parenthesis, or the last one. */
static void put_title(span code, sink *out) {
  const char *stop = code.begin;
  bool is_type = starts_with(code.begin, code.end, "typedef");
  if (is_type) {
    stop = code.end;
    while (stop > code.begin && stop[-1] != ';') stop--;
    if (stop > code.begin) stop--;
  } else {
    while (stop < code.end && *stop != '(' && *stop != ';' && *stop != '=') {
      stop++;
    }
  }
  while (stop > code.begin && !isalnum((unsigned char)stop[-1])) stop--;
  const char *start = stop;
  while (start > code.begin &&
         (isalnum((unsigned char)start[-1]) || start[-1] == '_')) {
    start--;
  }
  put_roff(start, (size_t)(stop - start), out);
}

/* Calls @p use with every function that the declarations in @p code declare:
 * the names vyre_... before a parenthesis, outside braces. */
static void each_function(span code, void *self,
                          void (*use)(void *self, span name)) {
  int depth = 0;
  for (const char *at = code.begin; at < code.end; at++) {
    if (*at == '{') depth++;
    if (*at == '}') depth--;
    if (depth > 0 || *at != '(') continue;
    span name = {at, at};
    while (name.begin > code.begin &&
           (isalnum((unsigned char)name.begin[-1]) || name.begin[-1] == '_')) {
      name.begin--;
    }
    if (starts_with(name.begin, name.end, "vyre_")) use(self, name);
  }
}

static void put_section(span comment, span code, sink *out) {
  while (code.begin < code.end && isspace((unsigned char)*code.begin)) {
    code.begin++;
  }
  if (code.begin == code.end || *code.begin == '#') return;
  sink_text(out, ".SS ");
  put_title(code, out);
  sink_text(out, "\n.nf\n");
  put_roff(code.begin, (size_t)(code.end - code.begin), out);
  sink_text(out, "\n.fi\n.PP\n");
  put_comment(comment, out);
}

static void put_function_name(void *self, span name) {
  sink *out = self;
  sink_bytes(out, name.begin, (size_t)(name.end - name.begin));
  sink_text(out, "\n");
}

void put_functions(const char *text, size_t length, sink *out) {
  const char *end = text + length;
  for (const char *at = text; (at = find(at, end, "/**")) < end;) {
    at = find(at, end, "*/");
    span code = {at, declarations_end(at, end)};
    each_function(code, out, put_function_name);
    at = code.end;
  }
}

void put_api(const char *name, const char *text, size_t length, sink *out) {
  const char *end = text + length;
  char upper[64] = "";
  for (size_t i = 0; name[i] && i + 1 < sizeof upper; i++) {
    upper[i] = (char)toupper((unsigned char)name[i]);
  }
  const char *at = find(text, end, "/** @file");
  span intro = {line_end(at, end), find(at, end, "*/")};
  sink_format(out,
              ".\\\" SPDX-License-Identifier: MIT OR Apache-2.0\n"
              ".\\\" Generated from include/vyre/%s.h.\n"
              ".TH VYRE_%s 3 \"\" \"vyre %s\" \"C API\"\n"
              ".SH NAME\nvyre_%s \\- <vyre/%s.h>, part of the C API of vyre\n"
              ".SH SYNOPSIS\n.nf\n#include <vyre/%s.h>\n.fi\n"
              ".SH DESCRIPTION\n",
              name, upper, vyre_version_string(), name, name, name);
  put_comment(intro, out);
  for (at = intro.end; (at = find(at, end, "/**")) < end;) {
    span comment = {at + 3, find(at, end, "*/")};
    at = comment.end < end ? comment.end + 2 : end;
    span code = {at, declarations_end(at, end)};
    put_section(comment, code, out);
    at = code.end;
  }
  sink_text(out, ".SH SEE ALSO\n.BR vyre (1)\n");
}
