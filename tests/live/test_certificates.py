"""Certificates and revocations: who is who, by the owner's word or by the first use."""

from pathlib import Path

import msgspec
import pytest

from live.memory_store import MemoryStore, authors
from roamcast.live.authors import MOST, Authors
from roamcast.live.certificates import MAX_REVOKED, Certificate, MembersFile, Revocations
from roamcast.live.identity import Identity
from roamcast.live.key import KeyProblem

OWNER, STRANGER = Identity.new(), Identity.new()
KEYS = [Identity.new() for _ in range(4)]


def certified(node: int, number: int, key: Identity, by: Identity = OWNER) -> Certificate:
    return Certificate(node, key.public, number).signed(by)


def test_only_the_owner_certifies() -> None:
    known = authors(1, OWNER)
    assert not known.take(certified(2, 1, KEYS[0], STRANGER))
    assert not known.take(certified(2, 0, KEYS[0], KEYS[0]))  # its own word
    assert known.key(2) is None
    true = certified(2, 1, KEYS[0])
    for change in ({"node": 3}, {"number": 2}, {"key": KEYS[1].public}, {"signature": bytes(64)}):
        assert not known.take(msgspec.structs.replace(true, **change))
    assert known.take(true)
    assert known.certificate(2) == true
    assert not known.take(true)  # not news


def test_of_two_certificates_the_later_counts_whatever_came_first() -> None:
    early, late = certified(2, 1, KEYS[0]), certified(2, 2, KEYS[1])
    for order in ((early, late), (late, early)):
        known = authors(1, OWNER)
        for certificate in order:
            known.take(certificate)
        key = known.key(2)
        assert key is not None
        assert key.octets == KEYS[1].public


def test_a_revoked_node_is_nobody_until_it_is_added_again() -> None:
    members = MembersFile().add(2, KEYS[0].public, OWNER).add(3, KEYS[2].public, OWNER)
    known = authors(1, OWNER)
    known.take_members(members)
    revoked = members.revoke(2, OWNER)
    assert known.take_revocations(revoked.revocations)
    assert not known.take_revocations(revoked.revocations)  # not news
    assert (known.key(2), known.is_revoked(2), known.is_settled(2)) == (None, True, True)
    assert known.key(3) is not None
    known.take_members(members)  # its old certificate does not help
    assert known.key(2) is None
    known.take_members(revoked.add(2, KEYS[1].public, OWNER))
    key = known.key(2)
    assert key is not None
    assert key.octets == KEYS[1].public
    assert not known.is_revoked(2)


def test_a_list_of_revocations_is_the_owners_and_an_older_one_changes_nothing() -> None:
    known = authors(1, OWNER)
    known.take(certified(2, 1, KEYS[0]))
    assert not known.take_revocations(Revocations(7, {2: 1}).signed(STRANGER))
    late, early = Revocations(7, {2: 1}).signed(OWNER), Revocations(6, {}).signed(OWNER)
    assert not known.take_revocations(msgspec.structs.replace(late, void={3: 1}))
    assert known.take_revocations(late)
    assert not known.take_revocations(early)
    assert known.is_revoked(2)
    assert not authors(1).take_revocations(Revocations(7, {2: 1}).signed(OWNER))  # a network without an owner


def test_a_restart_forgets_nobody_and_another_owner_knows_nobody() -> None:
    store = MemoryStore()
    known = authors(1, OWNER, store)
    known.take_members(MembersFile().add(1, known.identity.public, OWNER).add(2, KEYS[0].public, OWNER))
    known.take_revocations(Revocations(9, {3: 2}).signed(OWNER))
    again = authors(1, OWNER, store)
    assert again.identity.public == known.identity.public
    assert again.own == known.own
    assert again.own is not None
    assert again.certificate(2) == known.certificate(2)
    assert again.revocations == known.revocations
    elsewhere = authors(1, STRANGER, store)
    assert (len(elsewhere), elsewhere.own, elsewhere.revocations.number) == (0, None, 0)


def test_a_certificate_for_this_number_and_another_key_is_not_its_own() -> None:
    known = authors(1, OWNER)
    known.take(certified(1, 1, KEYS[0]))
    assert known.own is None


def test_without_an_owner_the_first_key_counts() -> None:
    known = authors(1)
    assert known.own is not None
    first, second = certified(2, 0, KEYS[0], KEYS[0]), certified(2, 0, KEYS[1], KEYS[1])
    assert not known.take(certified(2, 0, KEYS[0], KEYS[1]))  # not signed by the key that it names
    assert known.take(first)
    assert not known.take(second)
    assert known.certificate(2) == first
    assert known.conflicts == 1
    assert known.forget(2)
    assert known.take(second)
    assert not known.forget(1)  # itself


def test_without_an_owner_nobody_makes_room_for_a_stranger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roamcast.live.authors.MOST", 3)
    known, owned = authors(1), authors(1, OWNER)
    for number, key in enumerate(KEYS, 2):
        known.take(certified(number, 0, key, key))
        owned.take(certified(number, number, key))
    assert [known.certificate(number) is not None for number in range(1, 6)] == [True, True, True, False, False]
    assert [owned.certificate(number) is not None for number in range(2, 6)] == [False, True, True, True]
    assert MOST == 4096


def test_what_was_kept_and_cannot_be_read_is_passed_over() -> None:
    store = MemoryStore()
    known = authors(1, None, store)
    store.keep("authors", "node/7", b"nonsense")
    store.keep("authors", "node/8", msgspec.msgpack.encode(Certificate(8, bytes(32), 0)))
    assert len(Authors(1, known.identity, None, store)) == 1


def test_a_members_file_reads_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "network.members"
    members = MembersFile().add(7, KEYS[0].public, OWNER).add(2, KEYS[1].public, OWNER).revoke(7, OWNER)
    assert [(one.node, one.number) for one in members.certificates] == [(2, 2)]
    assert (members.revocations.number, members.revocations.void) == (3, {7: 3})
    members.save(path)
    assert MembersFile.load(path) == members
    assert members.add(7, KEYS[2].public, OWNER).certificates[-1].number == 4
    path.write_text(path.read_text() + "roamcast-member-1 7 x y z\n")
    with pytest.raises(KeyProblem, match=r"network.members, line 3: not a line of a members file"):
        MembersFile.load(path)
    path.write_bytes(b"\xff")
    with pytest.raises(KeyProblem, match="is not a members file"):
        MembersFile.load(path)
    with pytest.raises(KeyProblem, match="cannot be read: No such file"):
        MembersFile.load(tmp_path / "none")


def test_revocations_are_bounded() -> None:
    full = MembersFile((), Revocations(1, dict.fromkeys(range(MAX_REVOKED), 1)))
    full.revoke(0, OWNER)
    with pytest.raises(KeyProblem, match="1024 nodes are revoked already"):
        full.revoke(MAX_REVOKED, OWNER)
