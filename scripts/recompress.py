# SPDX-License-Identifier: MIT OR Apache-2.0
"""Compresses the files of a zip archive again, better than its writer did:
recompress.py ARCHIVE. Any program that reads zip archives can read the result."""

import os
import struct
import sys
import zipfile

from zopfli.zlib import compress

LOCAL, CENTRAL, END = "<4s5H3I2H", "<4s6H3I5H2I", "<4s4H2IH"
UTF8, DEFLATED, VERSION, UNIX = 0x800, 8, 20, 3 << 8


def rewrite(path):
    made, entries = b"", []
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            data = archive.read(info)
            packed = compress(data)[2:-4] if data else b""  # without the frame of zlib
            method = DEFLATED if data else 0
            name = info.filename.encode()
            year, month, day, hour, minute, second = info.date_time
            day = (year - 1980) << 9 | month << 5 | day
            time = hour << 11 | minute << 5 | second // 2
            common = (VERSION, UTF8, method, time, day, info.CRC, len(packed), len(data), len(name), 0)
            entries.append((CENTRAL, b"PK\1\2", VERSION | UNIX, *common, 0, 0, 0, info.external_attr, len(made), name))
            made += struct.pack(LOCAL, b"PK\3\4", *common) + name + packed
    central = b"".join(struct.pack(form, *fields) + name for form, *fields, name in entries)
    count = len(entries)
    made += central + struct.pack(END, b"PK\5\6", 0, 0, count, count, len(central), len(made), 0)
    with open(path + ".new", "wb") as file:
        file.write(made)
    with zipfile.ZipFile(path + ".new") as new, zipfile.ZipFile(path) as old:
        assert new.testzip() is None and all(new.read(n) == old.read(n) for n in old.namelist())
    os.replace(path + ".new", path)


rewrite(sys.argv[1])
