"""Where things are: paths as people write them, and as Spark takes them.

The rules this file owns:

* A campaign is simulated into, and a trace made in, a folder of a POSIX file system that all machines share: what makes
  each run count once are renames and locks, which object stores do not have. Any scheme but `file:` is refused by name,
  where others would make a local folder named `s3a:`.
* Spark gets every local path with its scheme: a cluster's default file system may be another one.
"""

import re
import urllib.parse
from pathlib import Path
from typing import Final

from roamcast.errors import ConfigError

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
_GLOB: Final = str.maketrans({character: f"\\{character}" for character in "\\{}[]*?"})


def local_path(text: str) -> Path:
    """The path that a text names; `file:` may stand before it."""
    found = _SCHEME.match(text)
    if found is None:
        return Path(text)
    if found[1].lower() != "file":
        raise ConfigError(
            f"{text}: {found[1]}: is no file system that can be written here: name a folder that all machines see "
            "under the same name (NFS, for one), and copy the finished folder to where it should be"
        )
    return Path(urllib.parse.unquote(urllib.parse.urlsplit(text).path))


def spark_uri(path: Path) -> str:
    """A local path for Spark, which would read some characters of a name as a pattern."""
    return f"file://{str(path.resolve()).translate(_GLOB)}"
