"""Files of a given size, as short as their format allows: no picture, only what tells its size."""

import struct
import zlib
from base64 import b64encode
from functools import cache
from io import BytesIO
from typing import Any

from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject


def png(width: int, height: int) -> bytes:
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height) + b"\x08\x02\x00\x00\x00"


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\xf7\x00\x00"


def jpeg(width: int, height: int, frame: int = 0xC0, before: bytes = b"\xff\xe0\x00\x04JF") -> bytes:
    return b"\xff\xd8" + before + b"\xff" + bytes([frame]) + struct.pack(">HBHHB", 17, 8, height, width, 3)


def webp(width: int, height: int, kind: bytes = b"VP8 ") -> bytes:
    lossy = struct.pack("<HH", width & 0xFFFF, height | 0x4000)
    bodies = {
        b"VP8 ": b"\xd0K\x00\x9d\x01*" + lossy,
        b"VP8L": b"/" + struct.pack("<Q", width - 1 | height - 1 << 14) + bytes(5),
        b"VP8X": bytes(4) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little"),
    }
    return b"RIFF" + bytes(4) + b"WEBP" + kind + bytes(4) + bodies[kind]


def pdf(pages: int, shown: bytes, box: str = "[0 0 612 792]", packed: bool = False, tree: bool = True) -> bytes:
    """Pages that all draw `shown`; `packed` puts the pages into a deflated object stream."""
    content = zlib.compress(b"BT\n" + shown + b"\nET\n")
    page = b"<< /Type /Page /MediaBox %s /Contents 9 0 R >>\n" % box.encode()
    root = b"<< /Type /Pages /Kids [1 0 R] /Count %d >>\n" % pages if tree else b""
    objects = page * pages + root
    if packed:
        objects = b"8 0 obj\n<< /Type /ObjStm /N 3 >>\nstream\n" + zlib.compress(objects) + b"\nendstream\nendobj\n"
    return (
        b"%PDF-1.5\n"
        + objects
        + b"9 0 obj\n<< /Filter /FlateDecode >>\nstream\r\n"
        + content
        + b"\nendstream\nendobj\n"
        + b"trailer\n<< /Root 1 0 R >>\n%%EOF\n"
    )


def base64(data: bytes, media_type: str) -> dict[str, str]:
    return {"type": "base64", "media_type": media_type, "data": b64encode(data).decode()}


@cache
def with_pages(*sizes: tuple[int, int], words: str = "") -> bytes:
    """A file that pypdf wrote, its pages of these sizes."""
    writer = PdfWriter()
    for width, height in sizes:
        page = writer.add_blank_page(width, height)
        font = {"/F": {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}}
        page[NameObject("/Resources")] = _named({"/Font": font})
        content = DecodedStreamObject()
        content.set_data(f"BT /F 12 Tf 40 {height - 40} Td ({words}) Tj ET".encode())
        page[NameObject("/Contents")] = writer._add_object(content)
    file = BytesIO()
    writer.write(file)
    return file.getvalue()


def _named(value: dict[str, Any] | str) -> Any:
    if isinstance(value, str):
        return NameObject(value)
    return DictionaryObject({NameObject(key): _named(inner) for key, inner in value.items()})
