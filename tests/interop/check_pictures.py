#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares leat's decoded and resized pictures with Pillow's, byte by byte.

Needs Pillow 12 and NumPy (pip install 'pillow<13' numpy) and the program convert_pictures of a build with tests:

    tests/interop/check_pictures.py build/dev/convert_pictures [FOLDER...]

The script writes about 2,300 pictures of all forms into a temporary folder: JPEG (baseline, progressive, arithmetic,
gray, CMYK, 4:4:4 to 4:2:0, EXIF orientations), PNG (all colour types and depths, interlaced, transparent), WebP, GIF,
TIFF, BMP and PPM, of odd sizes.  It adds the pictures of the folders that are named.  Each picture is decoded in three
colours and resized by the six filters.  The reference is Image.open(f).convert(mode).resize(size, filter, box), which
is what keras.utils.load_img does.  Pillow 13 resizes the columns first where a picture shrinks much more in height than
in width; its bytes then differ from those of all other versions, and from leat's.

    tests/interop/check_pictures.py --record tests/golden/pictures

writes a few of the files, with the checksums of Pillow's results, for the test `picture`.
"""

import pathlib
import random
import subprocess
import sys
import tempfile
import warnings
import zlib

import numpy as np
import PIL
from PIL import Image

MODES = {"grayscale": "L", "rgb": "RGB", "rgba": "RGBA"}
FILTERS = {"nearest": Image.NEAREST, "bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC,
           "lanczos": Image.LANCZOS, "box": Image.BOX, "hamming": Image.HAMMING}
SIZES = [(1, 1), (1, 9), (2, 3), (7, 5), (16, 16), (17, 33), (33, 17), (64, 48), (100, 75), (131, 97), (250, 187), (301, 40)]


def content(rng, width, height, channels):
    """Makes pixels with smooth parts, edges and noise."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    planes = []
    for _ in range(channels):
        a, b, c = rng.uniform(0.01, 0.3, 3)
        plane = 127 + 80 * np.sin(a * x + c) * np.cos(b * y) + 40 * ((x + 2 * y) % 37 < rng.integers(5, 30))
        planes.append(plane + rng.normal(0, rng.choice([0, 4, 30]), plane.shape))
    return np.clip(np.stack(planes, -1), 0, 255).astype(np.uint8)


def picture(rng, mode, size):
    channels = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4, "CMYK": 4}[mode]
    pixels = content(rng, *size, channels)
    return Image.fromarray(pixels[..., 0] if channels == 1 else pixels, mode)


class Writer:
    def __init__(self, folder):
        self.folder, self.count, self.paths = folder, 0, []

    def path(self, suffix):
        self.count += 1
        path = self.folder / f"p{self.count:05d}{suffix}"
        self.paths.append(path)
        return path

    def save(self, image, suffix, **options):
        path = self.path(suffix)
        try:
            image.save(path, **options)
        except OSError:  # some sizes that an encoder of Pillow cannot write
            self.paths.pop()
            path.unlink(missing_ok=True)

    def write(self, suffix, data):
        self.path(suffix).write_bytes(data)


def write_jpegs(out, rng):
    for size in SIZES:
        for subsampling in (0, 1, 2):
            for quality in (35, 75, 95):
                for progressive in (False, True):
                    image = picture(rng, "RGB", size)
                    out.save(image, ".jpg", quality=quality, subsampling=subsampling, progressive=progressive)
        for progressive in (False, True):
            out.save(picture(rng, "L", size), ".jpg", quality=80, progressive=progressive)
            out.save(picture(rng, "CMYK", size), ".jpg", quality=90, progressive=progressive)
            out.save(picture(rng, "RGB", size), ".jpg", quality=90, restart_marker_rows=1, progressive=progressive)
            out.save(picture(rng, "RGB", size), ".jpg", quality=90, keep_rgb=True, progressive=progressive)
        for orientation in range(1, 9):
            exif = Image.Exif()
            exif[0x0112] = orientation
            out.save(picture(rng, "RGB", size), ".jpg", exif=exif)


def write_converted_jpegs(out, rng):
    """Files that Pillow cannot write: arithmetic coding and other samplings, by the command jpegtran or cjpeg."""
    for tool, *options in (["jpegtran", "-arithmetic"], ["jpegtran", "-arithmetic", "-progressive"],
                           ["cjpeg", "-sample", "1x2"], ["cjpeg", "-sample", "4x1"], ["cjpeg", "-sample", "1x4"],
                           ["cjpeg", "-sample", "2x2,1x2,2x1"], ["cjpeg", "-dct", "fast"], ["cjpeg", "-rgb"]):
        for size in SIZES:
            source = out.folder / "source"
            picture(rng, "RGB", size).save(source, format="JPEG" if tool == "jpegtran" else "PPM", quality=85)
            try:
                done = subprocess.run([tool, *options, str(source)], capture_output=True, check=False)
            except FileNotFoundError:
                print(f"skipped: {tool} {' '.join(options)} (install libjpeg-turbo-progs)")
                break
            if done.returncode == 0:
                out.write(".jpg", done.stdout)


def png_bytes(width, height, depth, color_type, lines, interlace=0, chunks=()):
    """Encodes a PNG of any depth; `lines` are the bytes of the lines without filters, or the passes of Adam7."""
    def chunk(kind, data):
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")
    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([depth, color_type, 0, 0, interlace])
    body = b"".join(chunk(kind, data) for kind, data in chunks)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + body +
            chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


def png_lines(values, depth):
    """Packs samples (height, count) into lines, each behind the number of its filter, which is 0."""
    lines = b""
    for row in values:
        if depth == 16:
            data = row.astype(">u2").tobytes()
        elif depth == 8:
            data = row.astype(np.uint8).tobytes()
        else:
            bits = "".join(format(int(v), f"0{depth}b") for v in row)
            bits += "0" * (-len(bits) % 8)
            data = int(bits, 2).to_bytes(len(bits) // 8, "big")
        lines += b"\0" + data
    return lines


ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def write_pngs(out, rng):
    forms = [(0, d, 1) for d in (1, 2, 4, 8, 16)] + [(3, d, 1) for d in (1, 2, 4, 8)]
    forms += [(2, 8, 3), (2, 16, 3), (4, 8, 2), (4, 16, 2), (6, 8, 4), (6, 16, 4)]
    for size in SIZES:
        width, height = size
        for color_type, depth, samples in forms:
            for interlace in (0, 1):
                for transparent in (False, True):
                    if transparent and color_type in (4, 6):
                        continue
                    values = rng.integers(0, 1 << depth, (height, width, samples))
                    if depth == 16 and rng.integers(2):
                        values = values // 200
                    chunks = []
                    if color_type == 3:
                        palette = rng.integers(0, 256, (1 << depth, 3)).astype(np.uint8)
                        chunks.append((b"PLTE", palette.tobytes()))
                    if transparent and color_type == 3:
                        chunks.append((b"tRNS", rng.integers(0, 256, 1 << (depth - 1)).astype(np.uint8).tobytes()))
                    elif transparent:
                        chunks.append((b"tRNS", values[0, 0].astype(">u2").tobytes()))
                    if interlace:
                        lines = b"".join(png_lines(values[y::h, x::w].reshape(len(values[y::h]), -1), depth)
                                         for x, y, w, h in ADAM7 if values[y::h, x::w].size)
                    else:
                        lines = png_lines(values.reshape(height, -1), depth)
                    out.write(".png", png_bytes(width, height, depth, color_type, lines, interlace, chunks))
        for mode in ("L", "LA", "RGB", "RGBA"):
            out.save(picture(rng, mode, size), ".png", optimize=True)


def write_others(out, rng):
    for size in SIZES:
        for mode in ("RGB", "RGBA", "L"):
            out.save(picture(rng, mode, size), ".webp", quality=70)
            out.save(picture(rng, mode, size), ".webp", lossless=True)
            out.save(picture(rng, mode, size), ".webp", quality=20, method=0)
        frames = [picture(rng, "RGBA", size) for _ in range(3)]
        out.save(frames[0], ".webp", save_all=True, append_images=frames[1:], duration=40)
        for colors in (2, 5, 16, 200, 256):
            palette = picture(rng, "RGB", size).quantize(colors)
            out.save(palette, ".gif")
            out.save(palette, ".gif", transparency=1, interlace=False)
            out.save(palette, ".png")
            out.save(palette, ".bmp")
            out.save(palette, ".tif")
        out.save(picture(rng, "L", size), ".gif")
        frames = [picture(rng, "RGB", size).quantize(20) for _ in range(3)]
        out.save(frames[0], ".gif", save_all=True, append_images=frames[1:])
        for mode in ("L", "RGB"):
            image = picture(rng, mode, size)
            out.save(image, ".bmp")
            out.save(image, ".ppm" if mode == "RGB" else ".pgm")
            out.save(image.convert("1"), ".pbm")
            out.save(image.convert("1"), ".bmp")
            out.save(image.convert("1"), ".png")
            out.save(image.convert("1"), ".gif")
        out.save(picture(rng, "RGBA", size), ".bmp")
        for mode in ("L", "LA", "RGB", "RGBA", "CMYK"):
            for compression in (None, "tiff_lzw", "tiff_adobe_deflate", "packbits"):
                out.save(picture(rng, mode, size), ".tif", compression=compression)
        out.save(picture(rng, "L", size).convert("1"), ".tif", compression="group4")
        out.save(picture(rng, "RGB", size), ".tif", compression="jpeg")
        write_text_pictures(out, rng, size)


def write_text_pictures(out, rng, size):
    width, height = size
    for most in (1, 15, 100, 255, 1023, 65535):
        gray = rng.integers(0, most + 1, (height, width))
        color = rng.integers(0, most + 1, (height, width, 3))
        if most > 255 and rng.integers(2):
            gray //= 50
        head = f"{width} {height}\n# comment\n{most}\n"
        out.write(".pgm", f"P2\n{head}{' '.join(map(str, gray.ravel()))}\n".encode())
        out.write(".ppm", f"P3\n{head}{' '.join(map(str, color.ravel()))}\n".encode())
        kind = np.uint8 if most < 256 else ">u2"
        out.write(".pgm", f"P5\n{width} {height}\n{most}\n".encode() + gray.astype(kind).tobytes())
        out.write(".ppm", f"P6\n{width} {height}\n{most}\n".encode() + color.astype(kind).tobytes())


def jobs_of(path, picker):
    """Chooses what is computed from a file: each colour unchanged, and some sizes."""
    jobs = [(path, color, 0, 0, "nearest", "stretch") for color in MODES]
    for name in FILTERS:
        size = picker.choice([(224, 224), (8, 8), (150, 20), (31, 90), (3, 1)])
        jobs.append((path, picker.choice(list(MODES)), *size, name, picker.choice(["stretch", "crop", "pad"])))
    return jobs


def reference(job):
    path, color, width, height, name, fit = job
    image = Image.open(path)
    image = image.convert(MODES[color]) if image.mode != MODES[color] else image
    image.load()
    if width:
        image = fitted(image, width, height, FILTERS[name], fit)
    return f"{image.width} {image.height} {zlib.crc32(image.tobytes()):08x}"


def fitted(image, width, height, resample, fit):
    """Keras's keep_aspect_ratio of load_img for `crop`, its pad_to_aspect_ratio for `pad`."""
    if fit == "crop":
        crop_height = min(image.height, image.width * height // width)
        crop_width = min(image.width, image.height * width // height)
        x, y = (image.width - crop_width) // 2, (image.height - crop_height) // 2
        box = (x, y, x + max(crop_width, 1), y + max(crop_height, 1))
        return image.resize((width, height), resample, box)
    if fit == "pad":
        size = (max(image.width, image.height * width // height), max(image.height, image.width * height // width))
        padded = Image.new(image.mode, size, 0 if image.mode == "L" else (0,) * len(image.mode))
        padded.paste(image, ((size[0] - image.width) // 2, (size[1] - image.height) // 2))
        image = padded
    return image.resize((width, height), resample)


def compare(program, jobs):
    lines = "".join("\t".join(map(str, job)) + "\n" for job in jobs)
    ours = subprocess.run([program], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    failures, refused = [], set()
    for job, mine in zip(jobs, ours):
        try:
            theirs = reference(job)
        except Exception as error:  # noqa: BLE001  Pillow's refusals are of many types
            theirs = f"error: {error}"
        if mine.startswith("error") and theirs.startswith("error"):
            refused.add(job[0])
        elif mine != theirs:
            failures.append((job, mine, theirs))
    return failures, refused


def record(folder):
    """Writes small files of all forms, and results.txt: FILE COLOR WIDTH HEIGHT FILTER FIT, then the result."""
    global SIZES
    SIZES = [(17, 33)]
    picker, out = random.Random(2), Writer(folder)
    for write in (write_jpegs, write_converted_jpegs, write_pngs, write_others):
        write(out, np.random.default_rng(2))
    (folder / "source").unlink(missing_ok=True)
    results = []
    for number, path in enumerate(out.paths):
        if number % (2 if path.suffix in (".webp", ".jpg") else 4):
            path.unlink()
            continue
        for job in jobs_of(path, picker):
            size = (min(job[2], 31), min(job[3], 40))
            job = (path, job[1], *size, *job[4:])
            results.append(" ".join(map(str, (path.name, *job[1:]))) + " " + reference(job))
    (folder / "results.txt").write_text("\n".join(results) + "\n")


def main():
    warnings.simplefilter("ignore")
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if sys.argv[1] == "--record":
        pathlib.Path(sys.argv[2]).mkdir(exist_ok=True)
        record(pathlib.Path(sys.argv[2]))
        return
    rng, picker = np.random.default_rng(1), random.Random(1)
    with tempfile.TemporaryDirectory() as name:
        out = Writer(pathlib.Path(name))
        for write in (write_jpegs, write_converted_jpegs, write_pngs, write_others):
            write(out, rng)
        for folder in sys.argv[2:]:
            suffixes = {".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm", ".pgm", ".pbm"}
            out.paths += [p for p in sorted(pathlib.Path(folder).rglob("*")) if p.suffix.lower() in suffixes]
        jobs = [job for path in out.paths for job in jobs_of(path, picker)]
        failures, refused = compare(sys.argv[1], jobs)
        for job, mine, theirs in failures[:40]:
            print(f"{job[0].name} {job[1:]}\n    leat:   {mine}\n    Pillow: {theirs}")
        broken = {job[0] for job, _, _ in failures}
        print(f"Pillow {PIL.__version__}: {len(out.paths)} files, {len(jobs)} results, {len(failures)} differ, "
              f"in {len(broken)} files; both refuse {len(refused)} files")
        sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
