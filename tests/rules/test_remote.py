"""The name of a remote: one for each repository, however it is reached, and nothing secret in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.cases import cases
from mnemarch.code.home import remote_folder, remote_name

SHOP = cases("remote", "shop")


@pytest.mark.parametrize("url", SHOP)
def test_however_a_repository_is_reached_it_has_one_name(url):
    assert remote_name(url) == "github.com/acme/shop"
    assert remote_folder(url) is None


@pytest.mark.parametrize(("url", "name"), cases("remote", "the name is host and path"))
def test_the_name_is_host_and_path(url, name):
    assert remote_name(url) == name


@pytest.mark.parametrize("host", ["git.acme.io", "github.com"])
def test_two_repositories_have_two_names(host):
    assert len({remote_name(f"git@{host}:{path}") for path in ("a/shop", "b/shop", "a/shop2", "shop", "a/b/shop")}) == 5


@pytest.mark.parametrize(
    ("url", "folder"),
    [
        ("/srv/git/shop.git", "/srv/git/shop.git"),
        ("../shop.git", "../shop.git"),
        ("./a:b", "./a:b"),
        ("file:///srv/my%20shop.git", "/srv/my shop.git"),
        ("FILE://localhost/srv/shop.git", "/srv/shop.git"),
    ],
)
def test_a_folder_is_no_host(url, folder):
    assert remote_name(url) is None
    assert remote_folder(url) == folder


@pytest.mark.parametrize(
    "url",
    [
        *("", " ", "://", "https://", "https:///shop", ":shop", "ext::sshpass -p s3cr3t ssh host %S shop"),
        *("ada:s3cr3t@host/shop", "https://ada:s3cr3t/shop", "https://host/a%0ab", "host:a\x00b"),
    ],
)
def test_nonsense_has_no_name(url):
    assert remote_name(url) is None
    assert remote_folder(url) is None


secrets = st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S"]), min_size=1, max_size=20).map(
    lambda text: f"s3{text}cr3t"
)


@given(secrets, st.sampled_from(["https", "ssh", "git", "HTTP"]), st.booleans())
def test_no_credential_survives(secret, scheme, has_user):
    name = remote_name(f"{scheme}://{'ada:' if has_user else ''}{secret}@git.acme.io:99/acme/shop.git")
    assert name in {"git.acme.io/acme/shop", None}


@given(st.text())
def test_anything_can_be_asked(url):
    name, folder = remote_name(url), remote_folder(url)
    assert name is None or folder is None
    assert name is None or name.strip()
