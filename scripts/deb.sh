#!/usr/bin/env bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds build/vyre_VERSION-1_ARCH.deb with the library, headers, command, manual pages
# and completions, and checks it with lintian.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$(sed -n 's/^#define VYRE_VERSION_STRING "\(.*\)"/\1/p' include/vyre/version.h)
arch=$(dpkg --print-architecture)
triplet=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
build=build/deb root=build/deb/root
mkdir -p "$build"
echo "[1/4] building into $build ..."
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DVYRE_TESTS=OFF -DVYRE_BENCH=OFF \
  -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_LIBDIR="lib/$triplet" -DCMAKE_SKIP_INSTALL_RPATH=ON \
  -DCMAKE_C_FLAGS="-g0 -fstack-protector-strong -D_FORTIFY_SOURCE=2" \
  -DCMAKE_SHARED_LINKER_FLAGS="-Wl,-z,relro,-z,now" -DCMAKE_EXE_LINKER_FLAGS="-Wl,-z,relro,-z,now" >"$build/log"
cmake --build "$build" >>"$build/log"

echo "[2/4] installing into $root ..."
rm -rf "$root"
DESTDIR=$PWD/$root cmake --install "$build" >>"$build/log"
strip --strip-unneeded "$root/usr/lib/$triplet"/libvyre.so.*.* "$root/usr/bin/vyre"
find "$root/usr/share/man" -type f -exec gzip -9n {} +
doc=$root/usr/share/doc/vyre
mkdir -p "$doc" "$root/DEBIAN"
{
  echo 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/'
  echo 'Upstream-Name: vyre'
  echo
  echo 'Files: *'
  echo 'Copyright: the vyre contributors'
  echo 'License: MIT or Apache-2.0'
  echo
  echo 'License: MIT'
  sed 's/^$/./; s/^/ /' LICENSE-MIT
  echo
  echo 'License: Apache-2.0'
  echo ' On Debian systems, the full text of the Apache License 2.0 is in'
  echo ' /usr/share/common-licenses/Apache-2.0.'
} >"$doc/copyright"
gzip -9nc CHANGELOG.md >"$doc/changelog.gz"
# The date of the last commit, so that the same commit gives the same package.
date=$(git log -1 --format=%cD 2>/dev/null || date -R)
{
  printf 'vyre (%s-1) unstable; urgency=medium\n\n' "$version"
  printf '  * Release %s. See changelog.gz.\n\n' "$version"
  printf ' -- vyre maintainers <maintainers@vyre.invalid>  %s\n' "$date"
} | gzip -9n >"$doc/changelog.Debian.gz"

echo "[3/4] packing ..."
mkdir -p "$build/shlibs/debian"
printf 'Source: vyre\n\nPackage: vyre\nArchitecture: any\n' >"$build/shlibs/debian/control"
depends=$(cd "$build/shlibs" && dpkg-shlibdeps -O --ignore-missing-info -l"../root/usr/lib/$triplet" \
  "../root/usr/bin/vyre" ../root/usr/lib/"$triplet"/libvyre.so.*.* 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
so=$(basename "$root/usr/lib/$triplet"/libvyre.so.[0-9]*.[0-9]*.[0-9]*)
so=${so#libvyre.so.}
cat >"$root/DEBIAN/control" <<END
Package: vyre
Version: $version-1
Architecture: $arch
Maintainer: vyre maintainers <maintainers@vyre.invalid>
Depends: $depends
Recommends: libllvm19
Suggests: libvulkan1, mesa-vulkan-drivers
Section: libs
Priority: optional
Description: compute kernels with the same bits on CPU and Vulkan devices
 This library compiles compute kernels once and runs them on the CPU, vectorised and
 multi-threaded, or on Vulkan devices. Every device gives the same bits. The
 package contains the C library, its headers, the vyre command, manual pages
 and shell completions.
END
echo "libvyre ${so%.*} vyre (>= ${version%.*})" >"$root/DEBIAN/shlibs"
echo 'activate-noawait ldconfig' >"$root/DEBIAN/triggers"
(cd "$root" && find usr -type f -exec md5sum {} + | LC_ALL=C sort -k 2) >"$root/DEBIAN/md5sums"
find "$root" -type d -exec chmod 755 {} +
find "$root/usr" -type f -exec chmod u=rwX,go=rX {} +
deb=build/vyre_$version-1_$arch.deb
dpkg-deb --root-owner-group --build "$root" "$deb" >>"$build/log"

echo "[4/4] checking with lintian ..."
lintian --fail-on error --allow-root "$deb"
echo "wrote $deb: $(wc -c <"$deb") bytes"
