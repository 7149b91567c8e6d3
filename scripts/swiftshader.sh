#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Fetches SwiftShader's Vulkan driver, for tests:  scripts/swiftshader.sh
# Debian has it in chromium-common. Its two files are unpacked into build/drivers/swiftshader;
# nothing is installed, so that root is not needed and the rest of the package (68 MB with what
# it depends on) is left out. Does nothing if the driver exists.
#   VYRE_SWIFTSHADER=FILE   use this ICD file (vk_swiftshader_icd.json) instead
#   VYRE_SWIFTSHADER=none   go without: tests on SwiftShader are then skipped
set -euo pipefail
cd "$(dirname "$0")/.."
package=chromium-common
wanted=(./usr/lib/chromium/libvk_swiftshader.so ./usr/lib/chromium/vk_swiftshader_icd.json)
target=build/drivers/swiftshader

if [ "${VYRE_SWIFTSHADER:-}" = none ]; then exit 0; fi
if scripts/vulkan_drivers.sh | grep -q '^swiftshader '; then exit 0; fi
if [ -n "${VYRE_SWIFTSHADER:-}" ]; then
  echo "VYRE_SWIFTSHADER names '$VYRE_SWIFTSHADER', which is no file" >&2
  echo "Fix: name an ICD file of SwiftShader, 'none', or unset VYRE_SWIFTSHADER" >&2
  exit 1
fi

mkdir -p build/drivers
work=$(mktemp -d "$PWD/build/drivers/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT

fail() { # what is wrong
  {
    if [ -s "$work/log" ]; then tail -n 5 "$work/log" | sed 's/^/    /'; fi
    echo "cannot fetch SwiftShader's Vulkan driver: $1"
    echo "Fix: make sure that 'apt-get download $package' works here, or set VYRE_SWIFTSHADER to the file" \
      "vk_swiftshader_icd.json of a driver that you have, or VYRE_SWIFTSHADER=none to test without it"
  } >&2
  exit 1
}

for tool in apt-get dpkg-deb tar; do
  command -v "$tool" >/dev/null 2>&1 || fail "there is no $tool"
done

# Tries the package lists of the system first. If they are missing or outdated, downloads
# private lists, which does not need root either.
download() { # options of apt-get
  (cd "$work" && apt-get -q -o Acquire::Retries=2 -o Acquire::http::Timeout=30 -o APT::Sandbox::User="$(id -un)" \
    "$@" download "$package") >>"$work/log" 2>&1
}
echo "fetching SwiftShader's Vulkan driver ($package, 32 MB) into $target"
if ! download; then
  mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
  own=(-o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" -o Debug::NoLocking=1)
  apt-get -q -o APT::Sandbox::User="$(id -un)" "${own[@]}" update >>"$work/log" 2>&1 || true
  download "${own[@]}" || fail "apt-get cannot download $package"
fi
deb=("$work"/"$package"_*.deb)
[ -f "${deb[0]}" ] || fail "apt-get downloaded no $package"
mkdir "$work/files"
dpkg-deb --fsys-tarfile "${deb[0]}" 2>>"$work/log" |
  tar -x -C "$work/files" --strip-components=4 --no-same-owner "${wanted[@]}" 2>>"$work/log" ||
  fail "${deb[0]##*/} does not hold ${wanted[*]}"
# In one step: another run may do the same at this time.
rm -rf "$target"
mv -T "$work/files" "$target" 2>>"$work/log" || [ -f "$target/vk_swiftshader_icd.json" ] ||
  fail "cannot write $target"
