# SPDX-License-Identifier: MIT OR Apache-2.0
"""Reads and writes pictures with `vyre run`:  check.py SOURCE BUILD

The encoders below are the oracle. They are written from the PNG and Netpbm
specifications and use Python's zlib, so they share no code with tools/.
"""
import os
import random
import struct
import subprocess
import sys
import tempfile
import zlib

source, build = sys.argv[1:3]
vyre = os.path.join(build, 'vyre')
kernels = os.path.join(source, 'tests/images/pictures.vyre')
passed = failed = 0
rng = random.Random(1)


def check(name, good, why=''):
    global passed, failed
    if good:
        passed += 1
        print('ok   ' + name)
    else:
        failed += 1
        print('FAIL ' + name)
        print('    ' + str(why).replace('\n', '\n    '))


def run(element, given, *more, out='y.bin', text=None):
    """Copies a picture through a kernel. Returns the process and what it wrote."""
    if os.path.exists(out):
        os.unlink(out)
    done = subprocess.run(
        [vyre, 'run', kernels, '-k', 'copy_' + element, '--backend', 'ref',
         '--set', 'x=' + given, *more], capture_output=True, input=text)
    data = None
    if os.path.exists(out):
        with open(out, 'rb') as f:
            data = f.read()
    return done, data


def save(name, data):
    with open(name, 'wb') as f:
        f.write(data)
    return name


# --- an encoder of PNG ------------------------------------------------------------

STORED = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def chunk(kind, data):
    return (struct.pack('>I', len(data)) + kind + data +
            struct.pack('>I', zlib.crc32(kind + data)))


def pack_row(row, depth):
    """row: a list of samples."""
    if depth == 16:
        return b''.join(struct.pack('>H', s) for s in row)
    if depth == 8:
        return bytes(row)
    bits = ''.join(format(s, '0%db' % depth) for s in row)
    bits += '0' * (-len(bits) % 8)
    return bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8))


def filter_row(kind, row, above, unit):
    out = bytearray([kind])
    for i, value in enumerate(row):
        a = row[i - unit] if i >= unit else 0
        b = above[i] if above else 0
        c = above[i - unit] if above and i >= unit else 0
        if kind == 4:
            p = a + b - c
            guess = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
        else:
            guess = (0, a, b, (a + b) // 2)[kind]
        out.append((value - guess) & 255)
    return bytes(out)


ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def encode_png(width, height, colour, depth, pixels, interlaced=False, filters=(0, 1, 2, 3, 4),
               level=6, strategy=zlib.Z_DEFAULT_STRATEGY, before=b'', parts=1):
    """pixels[y][x]: a tuple of stored samples."""
    unit = max(1, STORED[colour] * depth // 8)
    raw = b''
    for x0, y0, dx, dy in ADAM7 if interlaced else [(0, 0, 1, 1)]:
        above = None
        for y in range(y0, height, dy):
            samples = [s for x in range(x0, width, dx) for s in pixels[y][x]]
            if not samples:
                continue
            row = pack_row(samples, depth)
            raw += filter_row(rng.choice(filters), row, above, unit)
            above = row
    packer = zlib.compressobj(level, zlib.DEFLATED, 15, 9, strategy)
    data = packer.compress(raw) + packer.flush()
    step = max(1, -(-len(data) // parts))
    return (b'\x89PNG\r\n\x1a\n' +
            chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, depth, colour, 0, 0, interlaced)) +
            before + b''.join(chunk(b'IDAT', data[i:i + step]) for i in range(0, len(data), step)) +
            chunk(b'IEND', b''))


def random_pixels(width, height, colour, depth, most=None):
    top = most or 1 << depth
    plain = rng.random() < 0.5  # areas of one colour, so that there are matches
    rows, colours = [], [tuple(rng.randrange(top) for _ in range(STORED[colour])) for _ in range(4)]
    for _ in range(height):
        rows.append([rng.choice(colours) if plain else tuple(rng.randrange(top) for _ in range(STORED[colour]))
                     for _ in range(width)])
    return rows


def little(samples, bits):
    return bytes(samples) if bits == 8 else b''.join(struct.pack('<H', s) for s in samples)


SIZES = [(1, 1), (3, 2), (2, 9), (5, 7), (8, 8), (33, 17), (40, 1), (1, 40)]


def test_png():
    kinds = [(0, d) for d in (1, 2, 4, 8, 16)] + [(2, 8), (2, 16)] + [(3, d) for d in (1, 2, 4, 8)]
    kinds += [(4, 8), (4, 16), (6, 8), (6, 16)]
    for colour, depth in kinds:
        for interlaced in (False, True):
            good, why = True, ''
            for size in SIZES:
                width, height = size
                before = b''
                pixels = random_pixels(width, height, colour, depth)
                flat = [p for row in pixels for p in row]
                full = 65535 if depth == 16 else 255
                channels = STORED[colour]
                scale = 255 // ((1 << depth) - 1) if depth < 8 else 1
                want = [s * scale for p in flat for s in p]
                see_through = rng.random() < 0.5
                if colour == 3:
                    palette = [tuple(rng.randrange(256) for _ in range(3)) for _ in range(1 << depth)]
                    before = chunk(b'PLTE', bytes(s for c in palette for s in c))
                    alphas = [255] * len(palette)
                    if see_through:
                        some = rng.randrange(1, len(palette) + 1)
                        alphas[:some] = [rng.randrange(256) for _ in range(some)]
                        before += chunk(b'tRNS', bytes(alphas[:some]))
                    channels = 4 if see_through else 3
                    want = [s for p in flat for s in (*palette[p[0]], alphas[p[0]])[:channels]]
                elif colour in (0, 2) and see_through:
                    key = rng.choice(flat)
                    before = chunk(b'tRNS', b''.join(struct.pack('>H', s) for s in key))
                    channels += 1
                    want = [s for p in flat for s in (*(v * scale for v in p), 0 if p == key else full)]
                if rng.random() < 0.5:
                    before = chunk(b'gAMA', struct.pack('>I', 45455)) + chunk(b'tEXt', b'a\0b') + before
                data = encode_png(width, height, colour, depth, pixels, interlaced,
                                  level=rng.choice((0, 1, 6, 9)), parts=rng.choice((1, 2, 7)), before=before,
                                  strategy=rng.choice((zlib.Z_DEFAULT_STRATEGY, zlib.Z_FIXED, zlib.Z_RLE)))
                element = 'u16' if depth == 16 else 'u8'
                done, got = run(element, save('a.png', data), '--out', 'y=y.bin')
                told = 'read a.png: x, %dx%dx%d of %d bits' % (width, height, channels, 16 if depth == 16 else 8)
                if got != little(want, 16 if depth == 16 else 8) or told not in done.stderr.decode():
                    good, why = False, (size, see_through, done.stderr.decode())
                    break
            check('reads PNG of colour type %d, %d bits%s' % (colour, depth, ', interlaced' if interlaced else ''),
                  good, why)


def test_elements():
    pixels = random_pixels(6, 5, 6, 8)
    flat = [p for row in pixels for p in row]
    save('rgba.png', encode_png(6, 5, 6, 8, pixels))
    done, got = run('u32', 'rgba.png', '--out', 'y=y.bin')
    check('u32 is a pixel, red lowest', got == b''.join(bytes(p) for p in flat), done.stderr)
    done, got = run('f32', 'rgba.png', '--out', 'y=y.bin')
    want = b''.join(struct.pack('<f', s / 255) for p in flat for s in p)
    check('f32 is 0 to 1', got == want, done.stderr)
    grey = random_pixels(6, 5, 0, 8)
    save('grey.png', encode_png(6, 5, 0, 8, grey))
    done, got = run('u32', 'grey.png', '--out', 'y=y.bin')
    want = b''.join(bytes([p[0], p[0], p[0], 255]) for row in grey for p in row)
    check('u32 of a grey picture', got == want, done.stderr)
    wide = random_pixels(6, 5, 0, 16)
    save('wide.png', encode_png(6, 5, 0, 16, wide))
    done, got = run('f32', 'wide.png', '--out', 'y=y.bin')
    want = b''.join(struct.pack('<f', struct.unpack('<f', struct.pack('<f', p[0]))[0] / 65535) for row in wide for p in row)
    check('f32 of 16 bits', got == want, done.stderr)
    for element, name in (('u8', 'wide.png'), ('u32', 'wide.png'), ('u16', 'grey.png')):
        done, got = run(element, name, '--out', 'y=y.bin')
        check('%s refuses %s' % (element, name), done.returncode == 1 and got is None and
              b'bits' in done.stderr and b'Fix: ' in done.stderr, done.stderr)
    done, got = run('u8', 'raw:grey.png', '--out', 'y=y.bin')
    with open('grey.png', 'rb') as f:
        check('raw: takes the bytes of the file', got == f.read(), done.stderr)
    with open('rgba.png', 'rb') as f:
        done, got = run('u8', '-', '--out', 'y=y.bin', text=f.read())
    check('standard input is seen to be PNG', got == bytes(s for p in flat for s in p), done.stderr)


def test_pnm():
    for kind in (2, 3, 5, 6):
        for most in (1, 5, 255, 256, 65535):
            channels = 3 if kind in (3, 6) else 1
            good, why = True, ''
            for width, height in SIZES[:5]:
                samples = [rng.randrange(most + 1) for _ in range(width * height * channels)]
                head = b'P%d\n# made by a test\n%d %d # size\n%d\n' % (kind, width, height, most)
                if kind < 5:
                    body = b'\n'.join(b'%d' % s for s in samples) + rng.choice((b'', b'\n# end\n'))
                elif most < 256:
                    body = bytes(samples)
                else:
                    body = b''.join(struct.pack('>H', s) for s in samples)
                bits = 8 if most < 256 else 16
                full = (1 << bits) - 1
                want = little([(s * full + most // 2) // most for s in samples], bits)
                name = save('a.ppm' if channels == 3 else 'a.pgm', head + body)
                done, got = run('u%d' % bits, name, '--out', 'y=y.bin')
                if got != want:
                    good, why = False, (width, height, done.stderr.decode())
                    break
                done, got = run('f32', name, '--out', 'y=y.bin')
                if got != b''.join(struct.pack('<f', s / most) for s in samples):
                    good, why = False, ('f32', width, height, done.stderr.decode())
                    break
            check('reads P%d of maximum %d' % (kind, most), good, why)


# --- a decoder of what is written --------------------------------------------------

def decode_png(data):
    """(width, height, channels, bits, samples) of a PNG file without filters."""
    assert data[:8] == b'\x89PNG\r\n\x1a\n'
    at, packed = 8, b''
    while at < len(data):
        size, kind = struct.unpack('>I4s', data[at:at + 8])
        body = data[at + 8:at + 8 + size]
        assert struct.unpack('>I', data[at + 8 + size:at + 12 + size])[0] == zlib.crc32(kind + body)
        if kind == b'IHDR':
            width, height, bits, colour = struct.unpack('>IIBB', body[:10])
            assert body[10:] == b'\0\0\0'
        packed += body if kind == b'IDAT' else b''
        at += 12 + size
    raw = zlib.decompress(packed)
    channels = STORED[colour]
    stride = width * channels * bits // 8 + 1
    assert len(raw) == height * stride
    rows = [raw[y * stride:(y + 1) * stride] for y in range(height)]
    assert all(row[0] == 0 for row in rows)
    body = b''.join(row[1:] for row in rows)
    return width, height, channels, bits, body if bits == 8 else list(struct.unpack('>%dH' % (len(body) // 2), body))


def test_write():
    for channels in (1, 2, 3, 4):
        data = bytes(rng.choice((0, 0, 255, rng.randrange(256))) for _ in range(7 * 5 * channels))
        done, got = run('u8', save('in.bin', data), '--out', 'y=y.png:7x5x%d' % channels, out='y.png')
        check('writes PNG of %d channels' % channels, got and decode_png(got) == (7, 5, channels, 8, data), done.stderr)
        done, again = run('u8', save('a.png', got or b''), '--out', 'y=y.bin')
        check('and reads it back', again == data, done.stderr)
        words = [rng.randrange(65536) for _ in range(7 * 5 * channels)]
        done, got = run('u16', save('in.bin', little(words, 16)), '--out', 'y=y.png:7x5x%d' % channels, out='y.png')
        check('writes PNG of %d channels of 16 bits' % channels,
              got and decode_png(got) == (7, 5, channels, 16, words), done.stderr)
        done, got = run('u16', 'in.bin', '--set', 'y=zeros:%d' % len(words), '--out', 'y=y.png:7x5', out='y.png')
        check('takes the %d channels from a size that --set gives' % channels,
              got and decode_png(got) == (7, 5, channels, 16, words), done.stderr)
        done, got = run('u16', 'in.bin', '--out', 'y=y.png:7x5', out='y.png')
        check('takes grey alone from the size of another buffer, not %d channels' % channels,
              (got is not None) == (channels == 1) and (channels == 1 or b'channels?' in done.stderr), done.stderr)
    data = bytes(rng.randrange(256) for _ in range(7 * 5 * 4))
    done, got = run('u32', save('in.bin', data), '--out', 'y=y.png:7x5', out='y.png')
    check('writes u32 as RGBA', got and decode_png(got) == (7, 5, 4, 8, data), done.stderr)
    done, got = run('u32', 'in.bin', '--out', 'y=y.ppm:7x5x3', out='y.ppm')
    check('writes u32 as PPM', got == b'P6\n7 5\n255\n' + b''.join(data[i:i + 3] for i in range(0, len(data), 4)), done.stderr)
    floats = [-1.0, 0.0, 0.25, 0.5, 1.0, 2.0]
    save('in.bin', struct.pack('<6f', *floats))
    done, got = run('f32', 'in.bin', '--out', 'y=y.pgm:3x2', out='y.pgm')
    check('writes f32 as PGM', got == b'P5\n3 2\n255\n' + bytes([0, 0, 64, 128, 255, 255]), (got, done.stderr))
    save('in.bin', struct.pack('<6f', 0, 0, 0, 0, float('nan'), 0))
    done, got = run('f32', 'in.bin', '--out', 'y=y.pgm:3x2', out='y.pgm')
    check('refuses NaN', done.returncode == 1 and got is None and b'element 4 is NaN' in done.stderr, done.stderr)
    save('in.bin', little([0x1234] * 6, 16))
    done, got = run('u16', 'in.bin', '--out', 'y=y.pnm:3x2', out='y.pnm')
    check('writes u16 as PGM', got == b'P5\n3 2\n65535\n' + b'\x12\x34' * 6, (got, done.stderr))


def test_damage():
    pixels = random_pixels(9, 9, 2, 8)
    good = encode_png(9, 9, 2, 8, pixels, parts=2)
    said = []
    for at in list(range(0, len(good) - 1, 11)):
        done, got = run('u8', save('cut.png', good[:at]), '--out', 'y=y.bin')
        if done.returncode != 1 or got is not None or b'Fix: ' not in done.stderr:
            said.append((at, done.returncode, done.stderr))
    check('refuses PNG that is cut short', not said, said[:2])
    said = []
    for at in range(8, len(good), 9):
        damaged = bytearray(good)
        damaged[at] ^= 1 << rng.randrange(8)
        done, got = run('u8', save('bad.png', bytes(damaged)), '--out', 'y=y.bin')
        if done.returncode != 1 or got is not None or b'Fix: ' not in done.stderr:
            said.append((at, done.returncode, done.stderr))
    check('refuses PNG with a bit flipped', not said, said[:2])
    bomb = (b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', 30000, 30000, 8, 0, 0, 0, 0)) +
            chunk(b'IDAT', zlib.compress(bytes(1000))) + chunk(b'IEND', b''))
    done, got = run('u8', save('bomb.png', bomb), '--out', 'y=y.bin')
    check('refuses a header that promises more than the data hold',
          done.returncode == 1 and b'30000 x 30000' in done.stderr, done.stderr)
    for text, name in ((b'P6\n2 2\n255\n' + bytes(11), 'short'), (b'P6\n2 2\n255\n' + bytes(13), 'long'),
                       (b'P5\n0 2\n255\n', 'empty'), (b'P5\n2 2\n65536\n' + bytes(8), 'deep'),
                       (b'P2\n2 1\n9\n10 1', 'above'), (b'P2\n2 1\n9\n1', 'few'),
                       (b'P2\n2 1\n9\n1 2 3', 'more'), (b'P3\n1 1\n9\n1 2 3\n<html>', 'more text'), (b'P4\n8 1\n\0', 'bitmap'),
                       (b'P5\n99999999999999999999 1\n255\n', 'wide'), (b'P5\n2147483647 2147483647\n255\n\0', 'huge')):
        done, got = run('u8', save('a.pnm', text), '--out', 'y=y.bin')
        check('refuses PNM: ' + name, done.returncode == 1 and got is None and b'Fix: ' in done.stderr, done.stderr)


def peak(element, given):
    """Runs a copy. Returns what it printed, and the most memory that it had, in KiB."""
    with open('said', 'wb') as said:
        child = subprocess.Popen([vyre, 'run', kernels, '-k', 'copy_' + element, '--backend', 'ref', '--set', 'x=' + given],
                                 stdout=subprocess.DEVNULL, stderr=said)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    with open('said', 'rb') as said:
        return child.returncode, said.read(), usage.ru_maxrss


def test_memory():
    def one_bit(width, height, packed):
        return (b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 1, 0, 0, 0, 0)) +
                chunk(b'IDAT', packed) + chunk(b'IEND', b''))

    save('small.png', one_bit(1, 1, zlib.compress(bytes(2))))
    _, _, usual = peak('u8', 'small.png:2x2')
    save('bomb.png', one_bit(12000, 12000, zlib.compress(bytes(12000 * 1501), 9)))
    for element, given, words in (('u8', 'bomb.png:1x1', b'the picture is 12000x12000x1; :1x1 requires another shape'),
                                  ('four', 'bomb.png', b'declared with 4 elements; the picture has 144000000'),
                                  ('u16', 'bomb.png', b'u16 elements hold samples of 16 bits; the picture has 8')):
        code, said, most = peak(element, given)
        check('refuses %s for %s before it is decoded' % (given, element),
              code == 1 and words in said and b'Fix: ' in said and most < usual + 60000, (code, said, usual, most))
    # Neither the rows, the samples nor the elements take 2 GiB, but all together.
    save('bomb.png', one_bit(46340, 46340, bytes(270000)))
    for element in ('u8', 'f32'):
        code, said, most = peak(element, 'bomb.png')
        check('refuses a PNG that takes more than 2 GiB in all as ' + element,
              code == 1 and b'reading 46340 x 46340 pixels takes ' in said and most < usual + 60000, (said, usual, most))
    code, said, _ = peak('u8', save('large.pgm', b'P5\n40000 30000\n255\n' + bytes(5)))
    check('does not refuse 1.2 GB of samples as more than 2 GiB',
          code == 1 and b'need 1200000000 bytes; the file has 5' in said, said)
    code, said, _ = peak('u8', save('large.pgm', b'P5\n60000 60000\n255\n' + bytes(5)))
    check('refuses PGM of more than 2 GiB', code == 1 and b'takes at least 3600000000 bytes' in said, said)


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    test_png()
    test_elements()
    test_pnm()
    test_write()
    test_damage()
    test_memory()
print('cases: %d passed, %d failed' % (passed, failed))
sys.exit(failed > 0)
