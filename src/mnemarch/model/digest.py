"""SHA-256 and BLAKE2b without loading OpenSSL.

`hashlib` loads it for 2.5 of the 46 ms that a hook may take; the interpreter's own code gives the same digests.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import blake2b, sha256
else:
    try:
        from _blake2 import blake2b

        try:
            from _sha2 import sha256  # 3.12 and newer
        except ImportError:
            from _sha256 import sha256
    except ImportError:
        from hashlib import blake2b, sha256

__all__ = ["blake2b", "sha256"]
