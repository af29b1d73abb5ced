"""The size of an image from the head of its file, whole and damaged."""

from base64 import b64encode

import pytest
from files_of_images import gif, jpeg, png, webp
from hypothesis import given
from hypothesis import strategies as st

from cachecost.tokens.images import image_size
from cachecost.tokens.parts import decode_base64

EXIF = b"\xff\xe1\x02\x02" + b"\xff\xc0\x00\x11\x08\x00\x01\x00\x01\x03" * 51 + b"12"
"""A segment of 514 bytes that holds a thumbnail's frame header: not this image's."""
FILES = [
    png(330, 291),
    png(70_000, 1),
    gif(330, 291),
    gif(65_535, 1),
    jpeg(330, 291),
    jpeg(1, 65_535),
    jpeg(640, 480, frame=0xC2),
    jpeg(640, 480, frame=0xCF),
    jpeg(640, 480, before=b""),
    jpeg(640, 480, before=EXIF),
    jpeg(640, 480, before=b"\xff\xc4\x00\x04\x00\x00"),
    jpeg(640, 480, before=b"\xff\xff\xff\x01\xff\xd0"),
    webp(330, 291),
    webp(16_383, 1),
    webp(330, 291, b"VP8L"),
    webp(16_384, 16_384, b"VP8L"),
    webp(330, 291, b"VP8X"),
    webp(16_777_216, 1, b"VP8X"),
]
SIZES = [
    (330, 291),
    (70_000, 1),
    (330, 291),
    (65_535, 1),
    (330, 291),
    (1, 65_535),
    *[(640, 480)] * 6,
    (330, 291),
    (16_383, 1),
    (330, 291),
    (16_384, 16_384),
    (330, 291),
    (16_777_216, 1),
]


@pytest.mark.parametrize(("data", "size"), list(zip(FILES, SIZES, strict=True)))
def test_every_format_tells_its_size(data: bytes, size: tuple[int, int]) -> None:
    assert image_size(data) == size
    assert image_size(data + b"\xff\xd9 what comes after the head does not matter") == size


@pytest.mark.parametrize("data", FILES)
def test_a_file_cut_short_has_its_size_or_none(data: bytes) -> None:
    whole = image_size(data)
    assert image_size(data[:7]) is None
    assert {image_size(data[:length]) for length in range(len(data))} <= {whole, None}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"ABC",
        b"<svg width='3' height='4'/>",
        b"BM" + bytes(60),
        png(0, 5),
        gif(5, 0),
        jpeg(0, 0),
        b"\xff\xd8\xff\xe0\x00\x00" + bytes(40),
        b"\xff\xd8" + b"\xff" * 5000,
        b"RIFF" + bytes(4) + b"WAVE" + bytes(40),
        b"RIFF" + bytes(4) + b"WEBPVP9 " + bytes(40),
    ],
)
def test_what_is_no_image_has_no_size(data: bytes) -> None:
    assert image_size(data) is None


@given(st.sampled_from([b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"RIFF....WEBPVP8"]), st.binary(max_size=80))
def test_noise_never_fails(head: bytes, noise: bytes) -> None:
    size = image_size(head + noise)
    assert size is None or min(size) > 0


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b64encode(b"abcdef").decode(), b"abcdef"),
        (b64encode(b"abcdef").decode() + "Zg", b"abcdef"),
        ("Zg", b""),
        ("Zg=a", b""),
        ("日本", b""),
        ("\ud800abc", b""),
        (None, b""),
        (17, b""),
        (["QUJD"], b""),
    ],
)
def test_base64_is_taken_as_far_as_it_goes(data: object, expected: bytes) -> None:
    assert decode_base64(data) == expected
