#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Installs missing packages:  scripts/deps.sh LEVEL...
# Levels: build check bench bench-vulkan deb wheel lint fmt sanitize fuzz verify. Prints nothing if
# no package is missing. Without the right to install, it uses sudo on a terminal; elsewhere
# it prints the command that installs everything, and fails.
set -euo pipefail

usage() {
  echo "usage: scripts/deps.sh build|check|bench|bench-vulkan|deb|wheel|lint|fmt|sanitize|fuzz|verify ..." >&2
  exit 2
}

# package:command or package:<header>. A command or header that was installed without the
# package manager counts as well.
level_packages() {
  case $1 in
    build)
      echo gcc:gcc "libc6-dev:<stdio.h>" cmake:cmake ninja-build:ninja \
        pkg-config:pkg-config "libxxhash-dev:<xxhash.h>" \
        "libyajl-dev:<yajl/yajl_parse.h>" "libvulkan-dev:<vulkan/vulkan_core.h>" \
        libllvm19: ;;
    check) level_packages build && echo g++:g++ spirv-tools:spirv-val \
      "spirv-headers:<spirv/unified1/spirv.h>" \
      mesa-vulkan-drivers: vulkan-validationlayers: \
      python3-dev: python3-numpy: python3-pytest: python3-hypothesis: \
      python3-distributed: python3-ipython: python3-mpi4py: openmpi-bin: mypy: ;;
    bench) level_packages build && echo clang-19:clang-19 libomp-19-dev: \
      pocl-opencl-icd: ocl-icd-libopencl1: ;;
    bench-vulkan) level_packages build && echo mesa-vulkan-drivers: \
      glslang-tools:glslangValidator ;;
    verify) level_packages build && echo "libmpfr-dev:<mpfr.h>" ;;
    wheel) echo python3-dev: python3-venv: ;;
    deb) level_packages build && echo dpkg-dev:dpkg-shlibdeps lintian:lintian ;;
    fmt) echo clang-format-19:clang-format-19 ;;
    lint) level_packages build && level_packages fmt &&
      echo clang-tidy-19:clang-tidy-19 ;;
    sanitize | fuzz) level_packages build &&
      echo clang-19:clang-19 libclang-rt-19-dev: llvm-19:llvm-symbolizer-19 ;;
    *) usage ;;
  esac
}

# Without a package manager that we know: is it there?
have() {
  case $1 in
    '') return 0 ;; # nothing to look for
    '<'*) printf '#include %s\n' "$1" | cc -E -x c - >/dev/null 2>&1 ;;
    *) command -v "$1" >/dev/null 2>&1 ;;
  esac
}

installed() {
  dpkg-query -W -f='${db:Status-Abbrev}${Package}\n' "$@" 2>/dev/null |
    sed -n 's/^ii *//p'
}

# Fetches files that are not in a package of their own, and ends the script.
finish() {
  case " $levels " in *" check "*) exec "$(dirname "$0")/swiftshader.sh" ;; esac
  exit 0
}

[ $# -gt 0 ] || usage
levels=$*
entries=()
for level in "$@"; do
  packages=$(level_packages "$level") || exit 2
  read -r -a more <<<"${packages//$'\n'/ }"
  for entry in "${more[@]}"; do
    case " ${entries[*]-} " in *" $entry "*) ;; *) entries+=("$entry") ;; esac
  done
done

present=
if command -v dpkg-query >/dev/null 2>&1; then
  present=$(installed "${entries[@]%%:*}" || true)
fi
missing=()
for entry in "${entries[@]}"; do
  package=${entry%%:*}
  case $'\n'$present$'\n' in *$'\n'"$package"$'\n'*) continue ;; esac
  brings=${entry#*:}
  if [ -n "$brings" ] && have "$brings"; then continue; fi
  if [ -z "$brings" ] && ! command -v dpkg-query >/dev/null 2>&1; then continue; fi
  missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || finish

if ! command -v apt-get >/dev/null 2>&1; then
  echo "missing, by their Debian names: ${missing[*]}" >&2
  echo "Fix: install what your system calls them, and try again" >&2
  exit 1
fi

run_apt() {
  echo "installing ${#missing[@]} packages: ${missing[*]}"
  "$@" apt-get -q update &&
    "$@" apt-get -q -o DPkg::Lock::Timeout=120 install -y \
      --no-install-recommends "${missing[@]}"
}

export DEBIAN_FRONTEND=noninteractive
command="apt-get update && apt-get install -y --no-install-recommends ${missing[*]}"
if [ "$(id -u)" -eq 0 ]; then
  if run_apt env; then finish; fi
else
  command="sudo sh -c '$command'"
  if ! command -v sudo >/dev/null 2>&1; then
    : # nothing to try
  elif sudo -n true 2>/dev/null; then
    if run_apt sudo -n env DEBIAN_FRONTEND=noninteractive; then finish; fi
  elif [ -t 0 ] && [ -t 2 ]; then
    echo "missing: ${missing[*]}; sudo asks for your password to install them" >&2
    if run_apt sudo env DEBIAN_FRONTEND=noninteractive; then finish; fi
  fi
fi
echo "missing: ${missing[*]}" >&2
echo "Fix: $command" >&2
exit 1
