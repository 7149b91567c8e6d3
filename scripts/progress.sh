# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# Progress of a step that takes long:  . scripts/progress.sh
#   progress_begin                begins to count time
#   progress_show DONE ALL UNIT   on a terminal, a bar on standard error; elsewhere a
#                                 line every PROGRESS_SECONDS, without control characters
#   progress_clear                erases the bar, before a line of others and at the end
# Ctrl-C ends the line of the bar.
PROGRESS_SECONDS=${PROGRESS_SECONDS:-15}
progress_from=$SECONDS progress_next=$((SECONDS + PROGRESS_SECONDS)) progress_at=-1 progress_drawn=

progress_begin() {
  progress_from=$SECONDS progress_next=$((SECONDS + PROGRESS_SECONDS))
  trap 'progress_stop INT' INT
  trap 'progress_stop TERM' TERM
}

progress_stop() { # signal
  [ -z "$progress_drawn" ] || printf '\n' >&2
  progress_drawn=
  trap - "$1"
  kill -"$1" "$BASHPID"
}

progress_clear() {
  [ -z "$progress_drawn" ] || printf '\r\033[K' >&2
  progress_drawn=
}

progress_show() { # done, all, unit
  [ "$SECONDS" -ne "$progress_at" ] || return 0 # once a second is enough
  progress_at=$SECONDS
  local seconds=$((SECONDS - progress_from)) cells='########################' full columns text
  if [ -t 2 ]; then
    full=$(($1 * 24 / ($2 > 0 ? $2 : 1)))
    text=$(printf '[%-24s] %d of %d %s, %d s' "${cells:0:full}" "$1" "$2" "$3" "$seconds")
    columns=$(stty size 2>/dev/null <&2 | cut -d' ' -f2) || columns=
    [ "${columns:-0}" -gt 0 ] || columns=80
    printf '\r\033[K%s' "${text:0:columns-1}" >&2
    progress_drawn=yes
  elif [ "$SECONDS" -ge "$progress_next" ]; then
    printf '  %d of %d %s, %d s\n' "$1" "$2" "$3" "$seconds" >&2
    progress_next=$((SECONDS + PROGRESS_SECONDS))
  fi
}
