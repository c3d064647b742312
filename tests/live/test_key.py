"""The network's key: its file, its fingerprint, and what is derived from it."""

import hashlib
import hmac
import stat
from pathlib import Path

import pytest

from roamcast.live.key import KeyProblem, NetworkKey, load_owner, save_owner

SECRET = bytes(range(32))
LINE = "roamcast-key-1 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"


def hkdf(secret: bytes, info: bytes) -> bytes:
    """RFC 5869 with SHA-256, no salt, one block."""
    extracted = hmac.new(bytes(32), secret, hashlib.sha256).digest()
    return hmac.new(extracted, info + b"\x01", hashlib.sha256).digest()


def write(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text, encoding="latin-1")
    path.chmod(mode)
    return path


def test_a_saved_key_is_one_line_that_only_its_owner_reads(tmp_path: Path) -> None:
    path = tmp_path / "key"
    NetworkKey(SECRET).save(path)
    assert path.read_text() == LINE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert NetworkKey.load(path) == NetworkKey(SECRET)


def test_a_key_is_never_overwritten(tmp_path: Path) -> None:
    path = write(tmp_path / "key", "precious")
    with pytest.raises(KeyProblem, match="never overwritten"):
        NetworkKey.new().save(path)
    assert path.read_text() == "precious"


def test_new_keys_differ() -> None:
    assert NetworkKey.new() != NetworkKey.new()


def test_derived_keys_are_those_of_rfc_5869() -> None:
    key = NetworkKey(SECRET)
    assert key.derive("frame 1") == hkdf(SECRET, b"roamcast frame 1")
    assert key.fingerprint == hkdf(SECRET, b"roamcast fingerprint")[:8].hex()


def test_a_key_does_not_show_itself() -> None:
    assert SECRET.hex()[:8] not in repr(NetworkKey(SECRET)) + str(NetworkKey(SECRET))


@pytest.mark.parametrize(
    "text",
    ["", "roamcast-key-1", "roamcast-key-2 " + "00" * 32, "roamcast-key-1 " + "00" * 31, "roamcast-key-1 " + "0g" * 32,
     LINE + "more", "\xff" * 40, "x" * 5000],
)  # fmt: skip
def test_what_is_no_key_is_refused_without_showing_it(tmp_path: Path, text: str) -> None:
    with pytest.raises(KeyProblem, match="is not a key") as problem:
        NetworkKey.load(write(tmp_path / "key", text))
    digits = text[15:30]
    assert digits == "" or digits not in str(problem.value)


@pytest.mark.parametrize(
    ("mode", "fine"), [(0o600, True), (0o400, True), (0o640, True), (0o604, False), (0o602, False)]
)
def test_a_key_open_to_everybody_is_refused(tmp_path: Path, mode: int, fine: bool) -> None:
    path = write(tmp_path / "key", LINE, mode)
    if fine:
        assert NetworkKey.load(path).fingerprint == NetworkKey(SECRET).fingerprint
    else:
        with pytest.raises(KeyProblem, match="chmod 600"):
            NetworkKey.load(path)


def test_a_file_that_is_not_there_or_cannot_be_is_named(tmp_path: Path) -> None:
    with pytest.raises(KeyProblem, match=r"nowhere cannot be read: No such file"):
        NetworkKey.load(tmp_path / "nowhere")
    with pytest.raises(KeyProblem, match=r"cannot be written: No such file"):
        NetworkKey.new().save(tmp_path / "nowhere" / "key")


def test_a_secret_of_another_length_is_refused() -> None:
    with pytest.raises(KeyProblem, match="32 octets, not 31"):
        NetworkKey(bytes(31))


def test_the_key_of_a_network_with_an_owner_has_a_second_line(tmp_path: Path) -> None:
    path = tmp_path / "key"
    owner = bytes(range(32, 64))
    NetworkKey(SECRET, owner).save(path)
    assert path.read_text() == f"{LINE}roamcast-owner-1 {owner.hex()}\n"
    loaded = NetworkKey.load(path)
    assert loaded.owner == owner
    assert loaded.fingerprint == NetworkKey(SECRET).fingerprint
    assert loaded != NetworkKey(SECRET)
    for text in (
        f"roamcast-owner-1 {owner.hex()}\n",
        f"{LINE}{LINE}roamcast-owner-1 00\n",
        f"{LINE}roamcast-owner-1\n",
    ):
        with pytest.raises(KeyProblem, match="is not a key"):
            NetworkKey.load(write(tmp_path / "other", text))


def test_an_owners_key_is_not_a_networks_key(tmp_path: Path) -> None:
    path = tmp_path / "owner"
    save_owner(path, SECRET)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert load_owner(path) == SECRET
    with pytest.raises(KeyProblem, match="is not a key"):
        NetworkKey.load(path)
    with pytest.raises(KeyProblem, match="never overwritten"):
        save_owner(path, SECRET)
    with pytest.raises(KeyProblem, match="is not an owner's key"):
        load_owner(write(tmp_path / "key", LINE))
