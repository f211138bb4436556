"""Paths on an object storage or another remote file system, with the methods of :class:`pathlib.Path` that a
log needs.

pyarrow reaches S3, Google Cloud Storage, Azure and HDFS itself, and others through fsspec.  A file appears
whole or not at all, and a list has each file that was written before: S3 promises both since 2020 (Amazon,
`Amazon S3 data consistency model
<https://docs.aws.amazon.com/AmazonS3/latest/userguide/Welcome.html#ConsistencyModel>`_).
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit
from uuid import uuid4

from icemigrate.errors import MissingExtra, UsageError, extra_hint
from icemigrate.frozen import Frozen
from icemigrate.redaction import redact_secrets, register_secret
from icemigrate.system.file_writes import replace_durable

_S3 = ("s3", "s3a", "s3n")
_OBJECT_STORAGES = (*_S3, "gs", "gcs", "abfs", "abfss")
"""A file appears when its upload is complete; elsewhere it gets its name when it is complete."""
_CONNECT_SECONDS, _ANSWER_SECONDS = 5, 15
_AWS_ERROR = re.compile(r"AWS Error ([A-Z_0-9]+)(?: during \w+ operation)?: ([^;\n]*)")
_NO_LIBRARY = "Unable to load lib"
"""How pyarrow begins its message without ``libjvm`` or ``libhdfs``."""
_LONGEST_REASON = 200
_SECRETS = ("s3.secret-access-key", "s3.session-token")
_UNFINISHED = ".unfinished"


class StoredFile(Frozen):
    """A file of a folder.

    :param size: in bytes.
    :param modified_s: when it was written, in seconds since 1970, by the clock of the storage.
    """

    path: StoragePath
    size: int
    modified_s: float


class StoragePath(Frozen):
    """A file or folder on a remote storage.

    Every method raises :class:`OSError` where the storage does not answer or refuses.

    :param url: without a slash at its end, such as ``s3://bucket/log``.
    :param settings: how to sign in, by PyIceberg's keys, such as ``s3.endpoint``.
    """

    url: str
    settings: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return self.url

    def __repr__(self) -> str:
        return f"StoragePath({self.url!r})"  # the settings have secrets

    def __lt__(self, other: StoragePath) -> bool:
        return self.url < other.url

    def __truediv__(self, name: str) -> StoragePath:
        """A file or folder in this folder."""
        return StoragePath(f"{self.url}/{name}", self.settings)

    @property
    def name(self) -> str:
        """The last part."""
        return self.url.rpartition("/")[2]

    @property
    def parent(self) -> StoragePath:
        """The folder."""
        return StoragePath(self.url.rpartition("/")[0], self.settings)

    def with_name(self, name: str) -> StoragePath:
        """Another file or folder in the same folder."""
        return self.parent / name

    def read_bytes(self) -> bytes:
        """The content of a file.

        :raises FileNotFoundError: there is none.
        """
        with _errors(self):
            system, path = self._place()
            with system.open_input_stream(path) as stream:
                return bytes(stream.read())

    def write_bytes(self, content: bytes) -> None:
        """Write a file, which replaces one of the same name; readers see all of it or nothing."""
        with _errors(self):
            system, path = self._place()
            if self._is_object:
                _write(system, path, content)
                return
            beside = f"{path}.{uuid4().hex}{_UNFINISHED}"
            try:
                _write(system, beside, content)
                system.move(beside, path)
            except BaseException:
                with suppress(Exception):
                    system.delete_file(beside)
                raise

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove a file."""
        try:
            with _errors(self):
                system, path = self._place()
                system.delete_file(path)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def rename(self, new: StoragePath) -> None:
        """Give a file a new name, which no other file has.

        An object is copied and removed: a process that ends between both leaves both.
        """
        with _errors(self):
            system, path = self._place()
            if not self._is_object:
                system.move(path, new._place()[1])
                return
            system.copy_file(path, new._place()[1])
            system.delete_file(path)

    def copy(self, new: StoragePath) -> None:
        """Copy a file of a storage, which replaces one of the new name."""
        if not self._is_object:  # pyarrow cannot copy files of HDFS
            new.write_bytes(self.read_bytes())
            return
        with _errors(self):
            system, path = self._place()
            system.copy_file(path, new._place()[1])

    def remove_folder(self) -> None:
        """Remove a folder with all that is below it, if it exists."""
        with suppress(FileNotFoundError), _errors(self):
            system, path = self._place()
            system.delete_dir(path)

    def mkdir(self, *, parents: bool, exist_ok: bool) -> None:
        """Create a folder, unless it exists; an object storage gets a marker of it."""
        assert (parents, exist_ok) == (True, True), "an object storage has no folders without files"
        if not self.is_dir():
            with _errors(self):
                system, path = self._place()
                system.create_dir(path, recursive=True)

    def exists(self) -> bool:
        """Whether it is a file or a folder."""
        import pyarrow.fs

        with _errors(self):
            system, path = self._place()
            return bool(system.get_file_info(path).type != pyarrow.fs.FileType.NotFound)

    def is_dir(self) -> bool:
        """Whether it is a folder; on an object storage, whether a file is below it or it was created."""
        import pyarrow.fs

        with _errors(self):
            system, path = self._place()
            return bool(system.get_file_info(path).type == pyarrow.fs.FileType.Directory)

    def files(self, *, is_recursive: bool = False) -> Iterator[StoredFile]:
        """The files of a folder, in no order.

        :param is_recursive: whether those of folders in it are among them.
        :raises FileNotFoundError: there is no such folder.
        """
        import pyarrow.fs

        with _errors(self):
            system, path = self._place()
            found = system.get_file_info(pyarrow.fs.FileSelector(path, recursive=is_recursive))
        for info in found:
            if info.type == pyarrow.fs.FileType.File and not info.base_name.endswith(_UNFINISHED):
                # The folder can be a whole bucket, whose path ends with a slash.
                below = info.path.lstrip("/").removeprefix(f"{path.strip('/')}/")
                yield StoredFile(
                    self / (below if is_recursive else info.base_name), info.size, (info.mtime_ns or 0) / 1e9
                )

    def file(self) -> StoredFile:
        """The size and the time of a file.

        :raises FileNotFoundError: there is none.
        """
        import pyarrow.fs

        with _errors(self):
            system, path = self._place()
            info = system.get_file_info(path)
        if info.type != pyarrow.fs.FileType.File:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self))
        return StoredFile(self, info.size, (info.mtime_ns or 0) / 1e9)

    def open_file(self) -> Any:
        """A ``pyarrow.NativeFile`` to read parts of a file.

        :raises FileNotFoundError: there is none.
        """
        with _errors(self):
            system, path = self._place()
            return system.open_input_file(path)

    def iterdir(self) -> Iterator[StoragePath]:
        """The paths of :meth:`files`."""
        return (one.path for one in self.files())

    @property
    def _is_object(self) -> bool:
        return urlsplit(self.url).scheme in _OBJECT_STORAGES

    def _place(self) -> tuple[Any, str]:
        """The ``pyarrow.fs.FileSystem`` and the path in it."""
        # The names of files may have the characters of a query.
        scheme, _, place = self.url.partition("://")
        host, _, path = place.partition("/")
        system, base = file_system(f"{scheme}://{host}", self.settings)
        return system, f"{base.rstrip('/')}/{path.strip('/')}"


AnyPath: TypeAlias = "Path | StoragePath"
"""A path on this machine or elsewhere."""


def open_path(text: str, settings: Mapping[str, str] | None = None) -> AnyPath:
    """The path that a user writes: of this machine, or a URL such as ``s3://bucket/log``.

    :param settings: how to sign in to a storage, by PyIceberg's keys.
    :raises UsageError: it is a URL that cannot be used.
    """
    if not is_remote(text):
        return Path(text.removeprefix("file://") if text.startswith("file:///") else text)
    parts = urlsplit(text)
    if ":" in parts.netloc.rpartition("@")[0]:
        raise UsageError(
            f"the URL {parts.scheme}://…@{parts.netloc.rpartition('@')[2]}{parts.path} contains a password",
            "give the keys in `storage`",
        )
    if parts.query or parts.fragment or not parts.netloc or "//" in parts.path.rstrip("/"):
        raise UsageError(f"`{text}` is no folder of a storage", "give a URL such as `s3://bucket/folder`")
    known = tuple(sorted((settings or {}).items()))
    for name, value in known:
        if name in _SECRETS:
            register_secret(value)
    return StoragePath(f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}", known)


def replace_file(path: AnyPath, content: bytes) -> None:
    """Write a file, which replaces one of the same name; readers see the old content or the new one.

    :raises OSError: it cannot be written.
    """
    if isinstance(path, StoragePath):
        path.write_bytes(content)
    else:
        replace_durable(path, content)


def is_remote(text: str) -> bool:
    """Whether the path that a user writes is a URL of another machine."""
    return "://" in text and not text.startswith("file:///")


@lru_cache(maxsize=16)
def file_system(root: str, settings: tuple[tuple[str, str], ...]) -> tuple[Any, str]:
    """A ``pyarrow.fs.FileSystem``, and the path of the root in it.

    :param root: a scheme and a host or bucket.
    :raises MissingExtra: pyarrow, or Hadoop's client for HDFS, is not installed.
    :raises UsageError: neither pyarrow nor fsspec knows the scheme.
    """
    try:
        import pyarrow as pa
        import pyarrow.fs
    except ImportError as error:
        raise MissingExtra("pyarrow is not installed", extra_hint("pipeline")) from error

    parts = urlsplit(root)
    if parts.scheme in _S3:
        return _s3(dict(settings), parts.netloc), parts.netloc
    try:
        return pyarrow.fs.FileSystem.from_uri(f"{root}/")  # type: ignore[no-any-return]
    except pa.ArrowInvalid:
        pass
    except OSError as error:
        if _NO_LIBRARY not in str(error):
            raise
        raise MissingExtra(
            f"`{root}` cannot be reached, because Hadoop's client is not installed: {_reason(error)}",
            "install Hadoop and Java, and set `JAVA_HOME`, `HADOOP_HOME` and `CLASSPATH` (`hadoop classpath "
            "--glob`); or use a log on S3 or in a local folder",
        ) from error
    try:
        import fsspec

        found = fsspec.filesystem(parts.scheme)
    except (ImportError, ValueError) as error:
        raise UsageError(
            f"no library reaches `{root}`: {_reason(error)}",
            "use s3, gs, abfs or hdfs, or install the package of fsspec for this storage",
        ) from error
    return pyarrow.fs.PyFileSystem(pyarrow.fs.FSSpecHandler(found)), parts.netloc


def _s3(settings: Mapping[str, str], bucket: str) -> Any:
    from pyarrow import fs

    endpoint = urlsplit(settings.get("s3.endpoint", ""))
    region = settings.get("s3.region") or settings.get("client.region")
    if region is None and not endpoint.netloc:
        with suppress(OSError):  # the bucket's own message follows
            region = fs.resolve_s3_region(bucket)
    options: dict[str, Any] = {
        "access_key": settings.get("s3.access-key-id"),
        "secret_key": settings.get("s3.secret-access-key"),
        "session_token": settings.get("s3.session-token"),
        "region": region,
        "role_arn": settings.get("s3.role-arn"),
        "session_name": settings.get("s3.role-session-name"),
        "proxy_options": settings.get("s3.proxy-uri"),
        "endpoint_override": endpoint.netloc or None,
        "scheme": endpoint.scheme or None,
    }
    return fs.S3FileSystem(
        **{name: value for name, value in options.items() if value},
        force_virtual_addressing=settings.get("s3.force-virtual-addressing", "").lower() == "true",
        connect_timeout=_CONNECT_SECONDS,
        request_timeout=_ANSWER_SECONDS,
    )


def _write(system: Any, path: str, content: bytes) -> None:
    with system.open_output_stream(path) as stream:
        stream.write(content)


@contextmanager
def _errors(path: StoragePath) -> Iterator[None]:
    """A block in which errors of libraries become an :class:`OSError` with a reason of one line."""
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from error
    except (MissingExtra, UsageError):
        raise
    except Exception as error:  # libraries of storages raise their own exceptions
        raise OSError(errno.EIO, _reason(error), str(path)) from error


def _reason(error: Exception) -> str:
    # What follows a missing bucket's message is advice for callers of pyarrow.
    text = redact_secrets(str(error).strip().partition("\n")[0]).partition(". To create buckets")[0]
    if found := _AWS_ERROR.search(text):
        text = f"error {found[1]}: {found[2].strip()}"
    elif isinstance(error, OSError) and error.strerror:
        text = error.strerror
    return text[:_LONGEST_REASON] or type(error).__name__
